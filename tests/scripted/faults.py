"""What a scripted server plays: answers, and the faults that real ones show.

Every entry is a tagged Struct (or plain text), so a script can be Python or a JSON file:
`["Hello", {"type": "tool_call", "id": "c1", "name": "read_file", "arguments": {"path": "a.py"}}]`.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from ybs.core.messages import ToolCall
from ybs.testing.script import ScriptedAnswer


class HttpError(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag="http_error",
    forbid_unknown_fields=True,
):
    """A response that is not an answer. Without `body` it is the wire format's own error object.

    In `body`, the characters U+DC80 to U+DCFF stand for single bytes that are not UTF-8.
    """

    status: int = 500
    message: str = "the server is unwell"
    kind: str = ""
    body: str | None = None
    headers: dict[str, str] = {}


class Interrupted(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag="interrupted",
    forbid_unknown_fields=True,
):
    """A stream that goes wrong after `after_frames` whole frames.

    `break`: half of the next frame, then the connection closes. `half_frame`: the same, but HTTP ends well.
    `stall`: nothing more until `server.resume()`. `garbage`: `garbage` in place of a frame, then the rest.
    `error`: the wire format's error frame, with `kind` and `message`, then the end.
    """

    how: Literal["break", "half_frame", "stall", "garbage", "error"]
    answer: str | ScriptedAnswer = "Half of this text never arrives."
    after_frames: int = 2
    garbage: str = "{]"
    kind: str = "api_error"
    message: str = "something broke on our side"


class Recut(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag="recut", forbid_unknown_fields=True
):
    """An answer whose bytes arrive in other pieces than frames: cut at the byte offsets `at`."""

    answer: str | ScriptedAnswer
    at: tuple[int, ...]


class Joined(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag="joined", forbid_unknown_fields=True
):
    """An answer whose frames come two JSON values on one line."""

    answer: str | ScriptedAnswer


class Whole(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag="whole", forbid_unknown_fields=True
):
    """An answer in one JSON value, although streaming was asked for."""

    answer: str | ToolCall | ScriptedAnswer


class StreamingRefused(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag="streaming_refused",
    forbid_unknown_fields=True,
):
    """A request to stream gets this error; the next request gets the next entry."""

    status: int = 400
    message: str = "streaming is not supported by this model"


class Frames(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag="frames", forbid_unknown_fields=True
):
    """Exactly these JSON values, one frame each; `is_ended` adds the wire format's end mark."""

    frames: tuple[Raw, ...]
    is_ended: bool = True

    @classmethod
    def of(cls, *values: Any, is_ended: bool = True) -> "Frames":
        """Make frames of plain data."""
        encode = msgspec.json.encode
        return cls(frames=tuple(Raw(encode(value)) for value in values), is_ended=is_ended)


#: What a server's script is made of.
Entry: TypeAlias = (
    str
    | ToolCall
    | ScriptedAnswer
    | HttpError
    | Interrupted
    | Recut
    | Joined
    | Whole
    | StreamingRefused
    | Frames
)


def html_page(status: int = 502) -> HttpError:
    """Make what a proxy in front of a server answers when the server is away."""
    body = f"<html><head><title>{status}</title></head><body><h1>Bad Gateway</h1></body></html>"
    return HttpError(status=status, body=body, headers={"content-type": "text/html"})


def read_script(data: bytes) -> Sequence[Entry]:
    """Decode a script from JSON. Raises msgspec.ValidationError naming the place of a mistake."""
    return msgspec.json.decode(data, type=list[Entry])
