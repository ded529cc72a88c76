"""Bytes to frames: one tolerant reader for SSE, for JSON lines and for an answer that came whole.

httpx2's EventSource is not used: it insists on the content type `text/event-stream`, which local servers do not
always send, and cannot read an answer that came in one piece. Lines are split on bytes, so a character cut
between two chunks is whole again before anything is decoded. Only `data` counts: no format needs event names.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from ybs.providers.wire.adapter import Frame
from ybs.providers.wire.loose_json import as_list, as_object

#: What `data: [DONE]` becomes: the server's last word. Compare with `is`.
DONE: Final[Frame] = {}
_decode_any: Final = msgspec.json.Decoder[Any]().decode
#: Where a text stands in a frame.
_Path: TypeAlias = tuple[str | int, ...]
_LARGEST_FRAME_BYTES: Final = 16 * 1024 * 1024


class BrokenFrame(Exception):
    """The bytes at hand are not a JSON object; `sample` is their beginning."""

    def __init__(self, sample: bytes) -> None:
        super().__init__()
        self.sample = sample[:600]


class FrameReader:
    """Cuts a body into frames. Feed it chunks, then `close` it."""

    def __init__(self) -> None:
        self._rest = bytearray()  # a line without its end
        self._value = b""  # a JSON value without its end
        self._has_return = False  # a carriage return came last: a line feed may belong to it
        self._halves: dict[_Path, str] = {}  # of characters whose other half the next frame has

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yield the frames that the chunk completes. Raises BrokenFrame."""
        chunk = self._with_line_feeds(chunk)
        if b"\n" not in chunk:
            self._rest += chunk
            return
        *lines, rest = (bytes(self._rest) + chunk if self._rest else chunk).split(b"\n")
        self._rest = bytearray(rest)
        for line in lines:
            # Nearly every line is one object, so that is tried first, and without a call.
            data = line if line[:1] == b"{" else line[6:] if line[:7] == b"data: {" else b""
            if data and not self._value:
                try:
                    frame = _decode_any(data)
                except (ValueError, RecursionError):
                    pass
                else:
                    yield frame
                    continue
            if line or self._value:
                yield from self._read_line(line)

    def close(self) -> Iterator[Frame]:
        """Yield the rest that has no line end. Raises BrokenFrame for half a frame."""
        yield from self._read_line(bytes(self._rest))
        yield from self._read_line(b"")

    def _with_line_feeds(self, chunk: bytes) -> bytes:
        """Return the chunk with every line end as one character; a carriage return at its end waits for what follows."""
        if len(self._rest) + len(self._value) + len(chunk) > _LARGEST_FRAME_BYTES:
            raise BrokenFrame(b"a frame of more than 16 MB")
        if not self._has_return and b"\r" not in chunk:
            return chunk
        if self._has_return:
            chunk = b"\r" + chunk
        self._has_return = chunk.endswith(b"\r")
        chunk = chunk[:-1] if self._has_return else chunk
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read_line(self, line: bytes) -> Iterator[Frame]:
        if data := _data_of(line):
            self._value = self._value + b"\n" + data if self._value else data
            if data[-1:] in b"}]":  # else it cannot be whole yet
                yield from self._read_value(must_be_whole=False)
        elif self._value:
            yield from self._read_value(must_be_whole=True)

    def _read_value(self, *, must_be_whole: bool) -> Iterator[Frame]:
        if self._value == b"[DONE]":
            self._value = b""
            yield DONE
            return
        try:
            values = self._decode(self._value)
        except (ValueError, RecursionError) as error:
            if must_be_whole:
                raise BrokenFrame(self._value) from error
            return
        self._value = b""
        yield from values

    def _decode(self, value: bytes) -> list[Frame]:
        """Decode a JSON object, several on one line, or a list of them. Raises ValueError."""
        try:
            found: list[Any] = [msgspec.json.decode(value)]
        except ValueError:
            found = [self._joined(each, ()) for each in _decode_loosely(value.decode())]
        if isinstance(found[0], list):
            found = as_list(found[0])
        found = [each for each in found if each is not None]  # some say it to keep the line open
        if not all(isinstance(each, dict) for each in found):
            raise ValueError("not a JSON object")
        return found

    def _joined(self, value: Any, path: _Path) -> Any:
        """Return the value without half surrogates, which msgspec refuses: two halves in a row, at one place, are a character."""
        if isinstance(value, dict):
            return {k: self._joined(each, (*path, k)) for k, each in as_object(value).items()}
        if isinstance(value, list):
            return [self._joined(each, (*path, n)) for n, each in enumerate(as_list(value))]
        if not isinstance(value, str):
            return value
        half = self._halves.pop(path, "")
        if value and "\ud800" <= value[-1] <= "\udbff":
            self._halves[path], value = value[-1], value[:-1]
        return (half + value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _data_of(line: bytes) -> bytes:
    """Return the payload of a line: the value of `data:`, or the line itself if it is JSON."""
    line = line.strip().removeprefix(b"\xef\xbb\xbf")
    if line.startswith(b"data:"):
        return line[5:].strip()
    is_field = line.startswith((b":", b"event:", b"id:", b"retry:"))
    return b"" if is_field else line


def _decode_loosely(text: str) -> Iterator[Any]:
    """Decode values that stand side by side, and half surrogates."""
    import json  # needed for odd servers only

    decoder, position = json.JSONDecoder(), 0
    while position < len(text):
        value, end = decoder.raw_decode(text, position)
        yield value
        position = end + (len(text[end:]) - len(text[end:].lstrip()))
