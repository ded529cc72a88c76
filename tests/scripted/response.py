"""From an entry of the script to the bytes of a response: pure, so it can be tested without a socket."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from scripted.faults import (
    Entry,
    Frames,
    HttpError,
    Interrupted,
    Joined,
    Recut,
    StreamingRefused,
    Whole,
)
from scripted.wire import Wire, encode
from ybs.core.messages import ToolCall
from ybs.testing.script import ScriptedAnswer, as_answer


class Response(Struct, frozen=True, kw_only=True):
    """What goes over the socket.

    `chunks` are sent one by one. `pauses_after` chunks the server waits to be resumed; a response that
    `is_broken` ends by closing the connection.
    """

    status: int = 200
    headers: dict[str, str] = {}
    chunks: tuple[bytes, ...] = ()
    is_chunked: bool = False
    pauses_after: int | None = None
    is_broken: bool = False


class Asked(Struct, frozen=True):
    """The request that is answered: its body, and which of the script's answers it gets."""

    body: Mapping[str, Any]
    number: int


def respond(wire: Wire, entry: Entry, asked: Asked) -> Response:
    """Make the response that an entry stands for."""
    match entry:
        case str() | ToolCall() | ScriptedAnswer():
            if not wire.is_streamed(asked.body):
                return _json(200, _whole(wire, as_answer(entry), asked))
            return _stream(wire, [*_frames(wire, as_answer(entry), asked), wire.end_mark])
        case Whole():
            return _json(200, _whole(wire, as_answer(entry.answer), asked))
        case Frames():
            end = wire.end_mark if entry.is_ended else b""
            return _stream(wire, [*(wire.frame(bytes(raw)) for raw in entry.frames), end])
        case HttpError() | StreamingRefused():
            return _error(wire, entry)
        case Interrupted() | Recut() | Joined():
            return _faulty(wire, entry, asked)


def _faulty(wire: Wire, entry: Interrupted | Recut | Joined, asked: Asked) -> Response:
    frames = _frames(wire, as_answer(entry.answer), asked)
    match entry:
        case Recut():
            data = b"".join(frames) + wire.end_mark
            cuts = [0, *sorted(entry.at), len(data)]
            return _stream(wire, [data[a:b] for a, b in pairwise(cuts)])
        case Joined():
            values = _values(wire, as_answer(entry.answer), asked)
            pairs = [values[at : at + 2] for at in range(0, len(values), 2)]
            return _stream(wire, [*(wire.frame(*pair) for pair in pairs), wire.end_mark])
        case Interrupted():
            return _interrupted(wire, entry, frames)


def _interrupted(wire: Wire, entry: Interrupted, frames: Sequence[bytes]) -> Response:
    sent, rest = [*frames[: entry.after_frames]], [*frames[entry.after_frames :], wire.end_mark]
    match entry.how:
        case "break":
            return replace(_stream(wire, [*sent, _half(rest[0])]), is_broken=True)
        case "half_frame":
            return _stream(wire, [*sent, _half(rest[0])])
        case "stall":
            return replace(_stream(wire, [*sent, *rest]), pauses_after=len(sent))
        case "garbage":
            garbage = wire.frame(entry.garbage.encode(errors="surrogateescape"))
            return _stream(wire, [*sent, garbage, *rest])
        case "error":
            error = wire.error(200, entry.kind, entry.message)
            return _stream(wire, [*sent, wire.frame(encode(error))])


def _half(frame: bytes) -> bytes:
    return frame[: len(frame) // 2]


def _values(wire: Wire, answer: ScriptedAnswer, asked: Asked) -> list[bytes]:
    message = answer.message(str(asked.body.get("model", "scripted")), asked.number)
    return [encode(value) for value in wire.frames(answer, message, asked.body)]


def _frames(wire: Wire, answer: ScriptedAnswer, asked: Asked) -> list[bytes]:
    return [wire.frame(value) for value in _values(wire, answer, asked)]


def _whole(wire: Wire, answer: ScriptedAnswer, asked: Asked) -> Mapping[str, Any]:
    message = answer.message(str(asked.body.get("model", "scripted")), asked.number)
    return wire.whole(answer, message, asked.body)


def _stream(wire: Wire, chunks: Sequence[bytes]) -> Response:
    headers = {"content-type": wire.content_type, "cache-control": "no-cache"}
    kept = tuple(chunk for chunk in chunks if chunk)  # an empty chunk would end the HTTP body
    return Response(headers=headers, chunks=kept, is_chunked=True)


def _json(status: int, value: Mapping[str, Any]) -> Response:
    headers = {"content-type": "application/json"}
    return Response(status=status, headers=headers, chunks=(encode(value),))


def _error(wire: Wire, entry: HttpError | StreamingRefused) -> Response:
    if isinstance(entry, StreamingRefused):
        entry = HttpError(status=entry.status, message=entry.message)
    response = _json(entry.status, wire.error(entry.status, entry.kind, entry.message))
    chunks = response.chunks
    if entry.body is not None:
        chunks = (entry.body.encode(errors="surrogateescape"),)
    headers = {name.lower(): value for name, value in entry.headers.items()}
    return replace(response, headers=response.headers | headers, chunks=chunks)
