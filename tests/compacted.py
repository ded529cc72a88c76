"""What tests of compaction share: a small scale, a guard, conversations."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ybs.compaction.compaction import Compaction
from ybs.core.conversation import Conversation
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Guard, Model, Request, Turn
from ybs.testing import call

SENTENCE = "The parser reads the next token and looks whether it begins a statement. "


def tokens(request: Request) -> int:
    """Estimate: four characters for a token, and four tokens for each message."""
    return len(request.system) // 4 + sum(4 + _chars(message) // 4 for message in request.messages)


def _chars(message: Message) -> int:
    if isinstance(message, ToolResult):
        return len(message.output) + 1_000 * len(message.images)
    if isinstance(message, UserMessage):
        return len(message.text) + 1_000 * sum(isinstance(p, Image) for p in message.content)
    thoughts = sum(len(part.text) for part in message.content if isinstance(part, Thinking))
    return thoughts + len(message.text) + sum(len(bytes(c.arguments)) for c in message.calls)


class Shrinking(Guard):
    """Leaves the first message of a turn and its newest step, whose output it cuts."""

    async def before_step(self, turn: Turn) -> None:
        messages = turn.conversation.messages
        if len(messages) > 5:
            at = max(at for at, m in enumerate(messages) if isinstance(m, AssistantMessage))
            newest = (
                replace(m, output="cut") if isinstance(m, ToolResult) else m for m in messages[at:]
            )
            turn.conversation.replace([messages[0], *newest])


def guard(
    room: int,
    *,
    model: Model | None = None,
    keep: Callable[[str], str] = lambda _text: "",
    threshold: float = 0.95,
) -> Compaction:
    compaction = Compaction(
        threshold=threshold, room=lambda: room, size=tokens, specs=list, keep_output=keep
    )
    compaction.model = model
    return compaction


def said(text: str) -> AssistantMessage:
    return AssistantMessage(content=(Text(text=text),))


def step(id: str, output: str, *, name: str = "read_file", **arguments: Any) -> list[Message]:
    """Make a call with its result."""
    asked = ToolCall(id=id, name=name, arguments=call(name, **arguments).arguments)
    result = ToolResult(call_id=id, name=name, output=output)
    return [AssistantMessage(content=(asked,), stop_reason="tool_calls"), result]


def talk(turns: int, *, answer: str = SENTENCE * 4) -> Conversation:
    """Make a conversation of so many turns of some 80 tokens."""
    conversation = Conversation("You help.")
    for turn in range(1, turns + 1):
        conversation.append(UserMessage.of(f"Look at part {turn} of the plan."))
        conversation.append(said(f"Part {turn}. {answer}"))
    return conversation


def size(conversation: Conversation) -> int:
    return tokens(Request(conversation.system, conversation.messages))


def prompt(conversation: Conversation) -> str:
    return "\n".join(m.text for m in conversation.messages if isinstance(m, UserMessage))


def is_valid(conversation: Conversation) -> bool:
    """Return whether it could be sent as it stands: nothing has to be closed, nothing is left open."""
    again = Conversation(conversation.system, conversation.messages)
    return again.messages == conversation.messages and not again.open_calls
