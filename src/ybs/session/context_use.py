"""Where the tokens go: what fills the model's window, by whose words it is."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, assert_never

from msgspec import Struct

from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)

if TYPE_CHECKING:
    from ybs.session.session import Session

#: Four characters are taken for a token, and a picture for so many tokens: providers differ, and none tells before.
_CHARS: Final = 4
IMAGE_TOKENS: Final = 1_000
#: Who speaks in the messages, in the order of the rows.
VOICES: Final = ("yours", "attached", "commands", "model", "results", "reminders")
_VOICE_OF: Final = {"person": "yours", "shell": "commands", "guard": "reminders"}


class Share(Struct, frozen=True, kw_only=True):
    """One part of what is sent; `parts` is what it is made of."""

    name: str
    tokens: int
    parts: "tuple[Share, ...]" = ()


class ContextUse(Struct, frozen=True, kw_only=True):
    """What fills the window. `tokens` is the provider's number where `is_counted`, else the `estimate`.

    The shares are estimates, scaled to it.
    """

    tokens: int
    estimate: int
    window: int
    shares: tuple[Share, ...]
    cached: int
    is_counted: bool


def measure(session: "Session") -> ContextUse:
    """Estimate the shares of a session's next request, scaled to the provider's own count where there is one."""
    messages = session.conversation.messages
    chars: Counter[str] = Counter()
    for message in messages:
        chars += _chars_of(message)
    system, tools = len(session.conversation.system), _of_tools(session)
    estimate = (system + tools + chars.total()) // _CHARS
    counted = session.counted_tokens
    scale = counted / estimate if counted and estimate else 1.0

    def share(name: str, size: int) -> Share:
        return Share(name=name, tokens=round(size / _CHARS * scale))

    voices = tuple(share(name, chars[name]) for name in VOICES if chars[name])
    said = Share(name="messages", tokens=share("", chars.total()).tokens, parts=voices)
    return ContextUse(
        tokens=counted or estimate,
        estimate=estimate,
        window=session.rooms.model.window,
        shares=(share("system", system), share("tools", tools), said),
        cached=_cached(messages),
        is_counted=bool(counted),
    )


class Estimate:
    """The estimated size of a conversation, counted on as it grows."""

    def __init__(self) -> None:
        self._messages: Sequence[Message] = ()
        self._count = self._chars = 0

    def tokens(self, session: "Session") -> int:
        """Estimate as `measure` does, from what was added since the last time."""
        messages = session.conversation.messages
        if messages is not self._messages:  # another history stands in its place
            self._messages, self._count, self._chars = messages, 0, 0
        self._chars += sum(_chars_of(message).total() for message in messages[self._count :])
        self._count = len(messages)
        return (len(session.conversation.system) + _of_tools(session) + self._chars) // _CHARS


def _of_tools(session: "Session") -> int:
    return sum(
        len(spec.name) + len(spec.description) + len(bytes(spec.parameters))
        for spec in session.rooms.toolbox.specs()
    )


def _chars_of(message: Message) -> Counter[str]:
    """Count what each voice has in a message, a picture as the characters that it weighs."""
    match message:
        case UserMessage():
            first, *rest = (_weight(part) for part in message.content) if message.content else (0,)
            return Counter({_VOICE_OF[message.origin]: first, "attached": sum(rest)})
        case AssistantMessage():
            return Counter(model=sum(map(_written, message.content)))
        case ToolResult():
            pictures = len(message.images) * IMAGE_TOKENS * _CHARS
            return Counter(results=len(message.output) + pictures)
        case _:
            assert_never(message)


def _written(part: AssistantPart) -> int:
    match part:
        case Text():
            return len(part.text)
        case Thinking():
            return len(part.text) + len(part.signature) + len(part.redacted)
        case ToolCall():
            return len(part.name) + len(bytes(part.arguments)) + len(part.invalid)
        case _:
            assert_never(part)


def _weight(part: Text | Image) -> int:
    return len(part.text) if isinstance(part, Text) else IMAGE_TOKENS * _CHARS


def _cached(messages: Sequence[Message]) -> int:
    """Return how much of the last request the provider had in its cache."""
    answers = (each for each in reversed(messages) if isinstance(each, AssistantMessage))
    last = next(answers, None)
    return 0 if last is None else last.usage.cached_tokens
