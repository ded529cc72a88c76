"""The pipe to the editor, as a transport of the SDK.

Only whole requests, notifications and responses reach the SDK; what makes no sense is answered here, and so is `initialize`.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TextIO

from ybs.core.errors import ToolError
from ybs.frontends.json_rpc import INVALID_REQUEST, Message, Senseless, encoded, message_of
from ybs.frontends.lines import Lines
from ybs.security.gate import put_json
from ybs.tools.calls.supervise import called

#: So many requests may wait for their answers; more are refused.
MOST_OPEN: Final = 1_000
#: Who sends more than this waits until the editor has read some of it.
_MOST_UNREAD_BYTES: Final = 1_000_000
_CHUNK_BYTES: Final = 65_536
#: So long what is on its way out has at the end: nobody may be there to read it.
_FLUSH_SECONDS: Final = 1.0


class Wire:
    """Reads and writes messages. `greet` answers `initialize`, from its parameters."""

    def __init__(
        self, read_from: int, write_to: TextIO, greet: Callable[[Message], Message]
    ) -> None:
        self._read_from, self._write_to, self._greet = read_from, write_to, greet
        self._lines, self._came = Lines(), deque[Message]()
        self._open = set[int | str]()
        self._out, self._out_bytes = deque[bytes](), 0
        self._more, self._room = asyncio.Event(), asyncio.Event()
        self._is_gone = False
        self._writer = asyncio.create_task(self._write())

    async def opened(self) -> bool:
        """Wait for the first message and answer it where it is `initialize`; return whether any came."""
        while not self._came:
            if not await self._read():
                return False
        return True

    async def receive(self) -> Message | None:
        """Return the next message for the SDK; None where the editor has gone."""
        await asyncio.sleep(0)  # what came before begins first, also in a flood
        while not self._came:
            if self._is_gone or not await self._read():
                return None
        return self._came.popleft()

    async def _read(self) -> bool:
        """Read what has come; return whether more can come."""
        try:
            data = await called(lambda: os.read(self._read_from, _CHUNK_BYTES), "stdin", None)
        except ToolError:
            return False
        for line in self._lines.feed(data):
            try:
                if line is None or line.strip():
                    self._take(message_of(line))
            except Senseless as error:
                self._put(error.answer)
                await self._flushed()  # who floods is read no faster than they read
        return bool(data)

    def _take(self, message: Message) -> None:
        if message.get("method") == "initialize" and "id" in message:
            params = message.get("params", {})
            self._put({"jsonrpc": "2.0", "id": message["id"], **self._greet(params)})
        elif self.take(message, self._open):
            self._came.append(message)

    @staticmethod
    def take(message: Message, waiting: set[int | str]) -> bool:
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

    async def send(self, message: Message) -> None:
        """Send a message, behind those before it. Raises ConnectionError where the editor has gone."""
        if self._is_gone:
            raise ConnectionError("the editor has gone")
        if "method" not in message:
            self._open.discard(message["id"])
        self._put(message)
        await self._flushed()

    def _put(self, message: Message) -> None:
        data = encoded(message) + b"\n"
        self._out.append(data)
        self._out_bytes += len(data)
        self._more.set()

    async def _flushed(self) -> None:
        while self._out_bytes > _MOST_UNREAD_BYTES and not self._is_gone:
            self._room.clear()
            await self._room.wait()

    async def _write(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            data = b"".join(self._out)
            self._out.clear()
            try:
                await called(lambda data=data: put_json(data, self._write_to), "stdout", None)
            except ToolError:  # nobody reads any more
                self._is_gone = True
            self._out_bytes -= len(data)
            self._room.set()

    async def close(self) -> None:
        """Let what was sent go out, for a moment, and send nothing more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                while self._out_bytes and not self._is_gone:
                    self._room.clear()
                    await self._room.wait()
        self._is_gone = True
        self._writer.cancel()
        await asyncio.wait((self._writer,))
