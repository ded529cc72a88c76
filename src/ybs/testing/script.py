"""What a scripted model or server plays: answers, and the faults that real ones show.

Every entry is a tagged Struct (or plain text), so a script can be Python or a JSON file:
`["Hello", {"type": "tool_call", "id": "c1", "name": "read_file", "arguments": {"path": "a.py"}}]`.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
)

_USAGE = Usage(input_tokens=10, output_tokens=5)


class ScriptOver(AssertionError):
    """More was asked for than the script holds: the code under test sent a request too many."""


class ScriptedAnswer(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag="answer", forbid_unknown_fields=True
):
    """One whole answer of a model, streamed in pieces of `piece_size` characters.

    A call without an id gets `call_N_M`: the M-th call of the N-th answer. Without `stop_reason` it is
    `tool_calls` or `end`, as the parts say.
    """

    parts: tuple[AssistantPart, ...] = ()
    stop_reason: StopReason | None = None
    stop_detail: str = ""
    usage: Usage = _USAGE
    piece_size: int = 8

    def message(self, model: str, number: int = 1) -> AssistantMessage:
        """Make the message that this answer amounts to, as the `number`-th of the script."""
        parts: list[AssistantPart] = []
        calls = 0
        for part in self.parts:
            if isinstance(part, ToolCall):
                calls += 1
                parts.append(part if part.id else replace(part, id=f"call_{number}_{calls}"))
            else:
                parts.append(part)
        return AssistantMessage(
            content=tuple(parts),
            stop_reason=self.stop_reason or ("tool_calls" if calls else "end"),
            model=model,
            usage=self.usage,
            stop_detail=self.stop_detail,
        )

    def pieces(self, text: str) -> list[str]:
        """Cut a text as it is streamed."""
        return [text[at : at + self.piece_size] for at in range(0, len(text), self.piece_size)]


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


def answer(
    *parts: str | AssistantPart,
    stop_reason: StopReason | None = None,
    usage: Usage = _USAGE,
    piece_size: int = 8,
) -> ScriptedAnswer:
    """Make an answer of texts, thoughts and calls, in that order."""
    whole = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return ScriptedAnswer(parts=whole, stop_reason=stop_reason, usage=usage, piece_size=piece_size)


def call(name: str, /, **arguments: Any) -> ToolCall:
    """Make a tool call. It gets its id when it is played."""
    return ToolCall(id="", name=name, arguments=Raw(msgspec.json.encode(arguments)))


def broken_call(name: str, text: str) -> ToolCall:
    """Make a tool call whose arguments are `text`, which is not a JSON object."""
    return ToolCall(id="", name=name, invalid=text)


def thought(text: str, *, signature: str = "", provider: str = "") -> Thinking:
    """Make a piece of thinking."""
    return Thinking(text=text, signature=signature, provider=provider)


def html_page(status: int = 502) -> HttpError:
    """Make what a proxy in front of a server answers when the server is away."""
    body = f"<html><head><title>{status}</title></head><body><h1>Bad Gateway</h1></body></html>"
    return HttpError(status=status, body=body, headers={"content-type": "text/html"})


def as_answer(said: str | ToolCall | AssistantMessage | ScriptedAnswer) -> ScriptedAnswer:
    """Turn the short forms of an answer into the long one."""
    match said:
        case str() | ToolCall():
            return answer(said)
        case AssistantMessage():
            return ScriptedAnswer(
                parts=said.content,
                stop_reason=said.stop_reason,
                stop_detail=said.stop_detail,
                usage=said.usage,
            )
        case ScriptedAnswer():
            return said


def read_script(data: bytes) -> Sequence[Entry]:
    """Decode a script from JSON. Raises msgspec.ValidationError naming the place of a mistake."""
    return msgspec.json.decode(data, type=list[Entry])
