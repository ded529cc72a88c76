"""JSON-RPC 2.0 messages, a line each: read from whoever sends them, and written."""

import asyncio
import json
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TextIO, TypeAlias

import msgspec

from ybs.config.tree import is_object
from ybs.core.errors import ToolError
from ybs.frontends.lines import MOST_BYTES, Lines
from ybs.security.gate import put_json
from ybs.tools.calls.supervise import called

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
#: Who sends more than this waits until some of it was read.
_MOST_UNREAD_BYTES: Final = 1_000_000
_CHUNK_BYTES: Final = 65_536
#: So long what is on its way out has at the end: nobody may be there to read it.
_FLUSH_SECONDS: Final = 1.0
_NO_MESSAGE: Final = "The line is not a JSON-RPC message."

RpcMessage: TypeAlias = dict[str, Any]


class Senseless(Exception):
    """A line that is not a message; `answer` is what its sender is told."""

    def __init__(self, code: int, text: str, number: object = None) -> None:
        super().__init__(text)
        error = {"code": code, "message": text}
        self.answer: RpcMessage = {"jsonrpc": "2.0", "id": number, "error": error}


def message_of(line: bytes | None) -> RpcMessage:
    """Return the message in a line. Raises Senseless."""
    if line is None:
        raise Senseless(INVALID_REQUEST, f"The message has more than {MOST_BYTES:,} bytes.")
    try:
        message: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Senseless(PARSE_ERROR, "The line is not JSON.") from None
    number: Any = message.get("id") if is_object(message) else []
    if isinstance(number, bool) or not isinstance(number, int | str | None):
        raise Senseless(INVALID_REQUEST, _NO_MESSAGE)
    if "method" in message:
        is_sound = isinstance(message["method"], str) and is_object(message.get("params", {}))
    else:
        is_sound = "id" in message and ("result" in message or is_object(message.get("error")))
    if not is_sound:
        raise Senseless(INVALID_REQUEST, _NO_MESSAGE, number)
    return message


def encoded(message: RpcMessage) -> bytes:
    """Return a message as JSON. A part of a character, as names of files may have, becomes the sign for an unknown one."""
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        text = json.dumps(message, ensure_ascii=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class MessagePipe:
    """Two ends of pipes: messages come from one, and go to the other in the order in which they are put.

    `take` gets what comes, and raises Senseless for what it has no use for. What makes no sense is answered.
    """

    def __init__(
        self, read_from: int, write_to: TextIO, take: Callable[[RpcMessage], None]
    ) -> None:
        self._read_from, self._write_to, self._take = read_from, write_to, take
        self._lines, self._out, self._out_bytes = Lines(), deque[bytes](), 0
        self._more, self._room = asyncio.Event(), asyncio.Event()
        #: Whether nobody reads any more.
        self.is_gone = False
        self._writer = asyncio.create_task(self._write())

    async def read(self) -> bool:
        """Read what has come, or wait for it; return whether more can come."""
        try:
            data = await called(lambda: os.read(self._read_from, _CHUNK_BYTES), "stdin", None)
        except ToolError:
            return False
        for line in self._lines.feed(data):
            try:
                if line is None or line.strip():
                    self._take(message_of(line))
            except Senseless as error:
                self.put(error.answer)
                await self.flushed()  # who floods is read no faster than they read
        return bool(data) and not self.is_gone

    def put(self, message: RpcMessage) -> None:
        """Send a message, behind those before it."""
        data = encoded(message) + b"\n"
        self._out.append(data)
        self._out_bytes += len(data)
        self._more.set()

    async def flushed(self, most_bytes: int = _MOST_UNREAD_BYTES) -> None:
        """Wait until no more than this is on its way out, or nobody reads."""
        while self._out_bytes > most_bytes and not self.is_gone:
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
            except ToolError:
                self.is_gone = True
            self._out_bytes -= len(data)
            self._room.set()

    async def close(self) -> None:
        """Let what was put go out, for a moment, and send nothing more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self.flushed(0)
        self.is_gone = True
        self._writer.cancel()
        await asyncio.wait((self._writer,))
