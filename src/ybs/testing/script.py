"""The answers that a scripted model plays."""

from typing import Any

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
    """One whole answer of a model, streamed in pieces of `chunk_size` characters.

    A call without an id gets `call_N_M`: the M-th call of the N-th answer. Without `stop_reason` it is
    `tool_calls` or `end`, as the parts say.
    """

    parts: tuple[AssistantPart, ...] = ()
    stop_reason: StopReason | None = None
    stop_detail: str = ""
    usage: Usage = _USAGE
    chunk_size: int = 8

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

    def chunks(self, text: str) -> list[str]:
        """Cut a text as it is streamed."""
        return [text[at : at + self.chunk_size] for at in range(0, len(text), self.chunk_size)]


def answer(
    *parts: str | AssistantPart,
    stop_reason: StopReason | None = None,
    usage: Usage = _USAGE,
    chunk_size: int = 8,
) -> ScriptedAnswer:
    """Make an answer of texts, thoughts and calls, in that order."""
    whole = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return ScriptedAnswer(parts=whole, stop_reason=stop_reason, usage=usage, chunk_size=chunk_size)


def call(name: str, /, **arguments: Any) -> ToolCall:
    """Make a tool call. It gets its id when it is played."""
    return ToolCall(id="", name=name, arguments=Raw(msgspec.json.encode(arguments)))


def broken_call(name: str, text: str) -> ToolCall:
    """Make a tool call whose arguments are `text`, which is not a JSON object."""
    return ToolCall(id="", name=name, invalid=text)


def thought(text: str, *, signature: str = "", provider: str = "") -> Thinking:
    """Make a piece of thinking."""
    return Thinking(text=text, signature=signature, provider=provider)


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
