"""The pipe to the editor, as a transport of the SDK.

Only whole requests, notifications and responses reach the SDK; what makes no sense is answered here, and so is `initialize`.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, TextIO

from ybs.frontends.json_rpc import INVALID_REQUEST, MessagePipe, RpcMessage, Senseless

#: So many requests may wait for their answers; more are refused.
MOST_OPEN: Final = 1_000


class EditorPipe:
    """Reads and writes messages. `greet` answers `initialize`, from its parameters."""

    def __init__(
        self, read_from: int, write_to: TextIO, greet: Callable[[RpcMessage], RpcMessage]
    ) -> None:
        self._pipe, self._greet = MessagePipe(read_from, write_to, self._take), greet
        self._came, self._open = deque[RpcMessage](), set[int | str]()
        self._greeted = False

    async def opened(self) -> bool:
        """Wait for the first message, and answer it where it is `initialize`; return whether any came."""
        while not (self._greeted or self._came):
            if not await self._pipe.read():
                return False
        return True

    async def receive(self) -> RpcMessage | None:
        """Return the next message for the SDK; None where the editor has gone."""
        await asyncio.sleep(0)  # what came before begins first, also in a flood
        while not self._came:
            if not await self._pipe.read():
                return None
        return self._came.popleft()

    def _take(self, message: RpcMessage) -> None:
        if message.get("method") == "initialize" and "id" in message:
            self._greeted = True
            params = message.get("params", {})
            self._pipe.put({"jsonrpc": "2.0", "id": message["id"], **self._greet(params)})
        elif self.take(message, self._open):
            self._came.append(message)

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
        if self._pipe.is_gone:
            raise ConnectionError("the editor has gone")
        if "method" not in message:
            self._open.discard(message["id"])
        self._pipe.put(message)
        await self._pipe.flushed()

    async def close(self) -> None:
        """Let what was sent go out, for a moment, and send nothing more."""
        await self._pipe.close()
