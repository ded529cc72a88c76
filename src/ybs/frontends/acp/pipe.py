"""The messages of a connection with an editor, as a transport of the SDK.

Only whole requests, notifications and responses reach the SDK; what makes no sense is answered here, and so is `initialize`.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ybs.frontends.json_rpc import INVALID_REQUEST, RpcMessage, Senseless, encoded, message_of
from ybs.frontends.lines import Lines

#: So many requests may wait for their answers; more are refused.
MOST_OPEN: Final = 1_000
#: Who sends more than this waits until some of it was read.
_MOST_UNREAD_BYTES: Final = 1_000_000
_CHUNK_BYTES: Final = 65_536
#: So long what is on its way out has at the end: nobody may be there to read it.
_FLUSH_SECONDS: Final = 1.0


class EditorPipe:
    """Reads and writes messages. `greet` answers `initialize`, from its parameters."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        greet: Callable[[RpcMessage], RpcMessage],
    ) -> None:
        self._reader, self._writer, self._greet = reader, writer, greet
        self._lines, self._came = Lines(), deque[RpcMessage]()
        self._open, self._greeted = set[int | str](), False
        writer.transport.set_write_buffer_limits(_MOST_UNREAD_BYTES)

    async def opened(self) -> bool:
        """Wait for the first message, and answer it where it is `initialize`; return whether any came."""
        while not (self._greeted or self._came):
            if not await self._read():
                return False
        return True

    async def receive(self) -> RpcMessage | None:
        """Return the next message for the SDK; None where the editor has gone."""
        await asyncio.sleep(0)  # what came before begins first, also in a flood
        while not self._came:
            if not await self._read():
                return None
        return self._came.popleft()

    async def _read(self) -> bool:
        """Read what has come, or wait for it; return whether more can come."""
        try:
            data = await self._reader.read(_CHUNK_BYTES)
            for line in self._lines.feed(data):
                if line is None or line.strip():
                    await self._take(line)
        except OSError:
            return False
        return bool(data)

    async def _take(self, line: bytes | None) -> None:
        try:
            message = message_of(line)
            if message.get("method") == "initialize" and "id" in message:
                self._greeted = True
                params = message.get("params", {})
                answer = {"jsonrpc": "2.0", "id": message["id"], **self._greet(params)}
            elif self.take(message, self._open):
                self._came.append(message)
                return
            else:
                return
        except Senseless as error:
            answer = error.answer
        await self._put(answer)  # who floods is read no faster than they read

    @staticmethod
    def take(message: RpcMessage, waiting: set[int | str]) -> bool:
        """Return whether the SDK should have a message; requests are added to those that wait. Raises Senseless."""
        method, number = message.get("method"), message.get("id")
        if method is None:
            return True
        if "id" not in message:  # others are none of the protocol's, and nobody waits for an answer
            return method == "session/cancel" or method.startswith("_")
        if number is None or number in waiting or len(waiting) >= MOST_OPEN:
            text = "The request has no id, or that of another one, or too many wait."
            raise Senseless(INVALID_REQUEST, text, number)
        waiting.add(number)
        return True

    async def send(self, message: RpcMessage) -> None:
        """Send a message. Raises ConnectionError where the editor has gone."""
        if "method" not in message:
            self._open.discard(message["id"])
        await self._put(message)

    async def _put(self, message: RpcMessage) -> None:
        self._writer.write(encoded(message) + b"\n")
        await self._writer.drain()

    async def close(self) -> None:
        """Let what was sent go out, for a moment, and send nothing more."""
        self._writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._writer.wait_closed()
        self._writer.transport.abort()
