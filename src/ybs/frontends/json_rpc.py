"""JSON-RPC 2.0 messages, a line each."""

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeAlias

import msgspec

from ybs.config.tree import is_object

#: A message of more bytes than this is not read.
MOST_BYTES: Final = 32_000_000


class LineReader:
    """Cuts what comes in into lines. Of one that is too long nothing is kept."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Yield the lines that are whole now; None for one that was too long."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add(end)
            yield None if self._size > self._most else b"".join(self._pieces)
            self._pieces, self._size = [], 0
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._most:
            self._pieces.append(piece)
        else:
            self._pieces = []


PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
_NO_MESSAGE: Final = "The line is not a JSON-RPC message."

RpcMessage: TypeAlias = dict[str, Any]
#: Sends a message. Raises ConnectionError where the other end has gone.
Send: TypeAlias = Callable[[RpcMessage], Awaitable[None]]


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
