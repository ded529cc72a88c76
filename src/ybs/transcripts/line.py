"""The one encoder of events: a line of JSON for a transcript, for `stream-json` and for whoever listens elsewhere.

A line of a transcript has the event's number and that of the line that it follows. `docs/events.schema.json` says what events hold.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any, BinaryIO, Final, cast, get_args

from msgspec import DecodeError, Raw, Struct, json, structs

from ybs.core.decoding import decodable
from ybs.core.envelope import MAIN
from ybs.core.events import Event

#: The version of the format that is written. Older and newer lines are read as far as they are understood.
VERSION: Final = 1
#: ybs writes no longer line: of one that is longer, no more is held in memory.
MOST_LINE_BYTES: Final = 100_000_000
_SKIPPED_BYTES: Final = 1_000_000


class TranscriptLine(Struct, frozen=True, kw_only=True):
    """A line that was read: `event` is its own number (0: it has none), `parent` that of the line it follows.

    `said` is None where this version does not know the type; `agent` said it, which the call `started_by` has started.
    """

    event: int
    parent: int
    timestamp: str
    said: Event | None
    agent: str = MAIN
    started_by: str = ""


class _Head(Struct, frozen=True):
    """What a line says of itself. No event has a field of these names."""

    type: str
    timestamp: str = ""
    event: int = 0
    parent: int = 0
    agent: str = MAIN
    started_by: str = ""


_UNREADABLE: Final = (DecodeError, UnicodeDecodeError, RecursionError)
_head: Final = json.Decoder(decodable(_Head)).decode
_encode: Final = json.Encoder().encode


def encoded(
    event: Event, *, number: int, parent: int, at: datetime, agent: str = MAIN, started_by: str = ""
) -> bytes:
    """Write an event as one line, its line end with it. What is written can be read.

    Only a sub-agent is named (ADR 0023). Half a surrogate, from a broken file name or terminal, becomes a question mark.
    """
    tail = b',"event":%d,"parent":%d' % (number, parent)
    if agent != MAIN:
        tail += _origin(agent, started_by)
    return _line(event, at, tail)


def told(
    event: Struct, *, session: str, at: datetime, agent: str = MAIN, started_by: str = ""
) -> bytes:
    """Write an event as one line for whoever listens: with the session that it is of, unless it names that itself."""
    has_own = "session" in event.__struct_fields__
    tail = b"" if has_own else b',"session":' + _encode(_whole(session))
    return _line(event, at, tail + _origin(agent, started_by))


def json_of(value: Any) -> bytes:
    """Write a record that is no event as JSON, in one line. What is no text in it becomes a question mark."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_whole(value))


def _origin(agent: str, started_by: str) -> bytes:
    tail = b',"agent":' + _encode(_whole(agent))
    return tail + (b',"started_by":' + _encode(_whole(started_by)) if started_by else b"")


def _line(event: Struct, at: datetime, tail: bytes) -> bytes:
    try:
        data = _joined(_encode(event))
    except (UnicodeEncodeError, *_UNREADABLE):
        data = _joined(_encode(_whole(event)))
    when = at.astimezone(UTC).isoformat(timespec="milliseconds")[:23].encode()
    return b'{"timestamp":"%sZ",%s,"v":%d%s}\n' % (when, data[1:-1], VERSION, tail)


def lines_in(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file; of one that is too long only the beginning, which cannot be decoded."""
    while line := file.readline(MOST_LINE_BYTES):
        yield line
        while not line.endswith(b"\n") and (line := file.readline(_SKIPPED_BYTES)):
            pass


def decoded(line: bytes) -> TranscriptLine | None:
    """Read a line; None where it is torn or corrupt. Never raises."""
    line = line.strip(b"\0 \t\r\n")  # a machine that lost its power leaves zeros
    try:
        head = _head(line)
        said = _decoder().decode(line) if head.type in _tags() else None
    except _UNREADABLE:
        return None
    number, parent = max(head.event, 0), max(head.parent, 0)
    return TranscriptLine(
        event=number,
        parent=parent,
        timestamp=head.timestamp,
        said=said,
        agent=head.agent or MAIN,
        started_by=head.started_by,
    )


@cache
def _tags() -> frozenset[str]:
    return frozenset(kind.__struct_config__.tag for kind in get_args(Event))


@cache
def _decoder() -> json.Decoder[Event]:
    return json.Decoder(decodable(Event))  # who only writes needs none


def _joined(data: bytes) -> bytes:
    """Return an event's JSON in one line. Raises where a part that came as JSON is invalid."""
    if b"\n" in data:  # between the values of arguments, as a model wrote them
        return json.format(data, indent=-1)
    _head(data)
    return data


def _whole(value: Any) -> Any:
    """Return the value with no half surrogate in its texts, and nothing but JSON in its JSON."""
    match value:
        case str():
            return value.encode(errors="replace").decode()
        case tuple() | list():
            items = cast("tuple[Any, ...] | list[Any]", value)
            return type(items)(map(_whole, items))
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            return {_whole(key): _whole(inner) for key, inner in pairs}
        case Raw():
            return _whole_json(bytes(value))
        case Struct():
            changes = {name: _whole(getattr(value, name)) for name in value.__struct_fields__}
            return structs.replace(value, **changes)
        case _:
            return value


def _whole_json(data: bytes) -> Raw:
    try:
        _joined(b'{"type":"","":' + data + b"}")
    except _UNREADABLE:
        pass
    else:
        return Raw(data)
    from json import loads  # it takes half a surrogate and NaN

    try:
        return Raw(_encode(_whole(loads(data, strict=False))))
    except (ValueError, RecursionError):
        return Raw(_encode(data.decode(errors="replace")))
