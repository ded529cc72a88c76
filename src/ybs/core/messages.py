"""The messages of a conversation, and their parts.

All are frozen and tagged by `type`, so a list of them is JSON that decodes back to the same values.
"""

from typing import Literal, TypeAlias

from msgspec import Raw, Struct

from ybs.core.changes import FileChange
from ybs.core.remedies import Remedy

#: Why an answer ended. Only `end` and `tool_calls` are success; `failed` is every reason that is not known to be good.
StopReason: TypeAlias = Literal["end", "tool_calls", "length", "refusal", "cut_off", "failed"]


class Text(Struct, frozen=True, kw_only=True, tag="text"):
    """Plain text, UTF-8, Markdown where a model wrote it."""

    text: str


class Image(Struct, frozen=True, kw_only=True, tag="image"):
    """A picture: its bytes (base64 in JSON) and its media type, such as `image/png`."""

    media_type: str
    data: bytes


class Thinking(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="thinking"):
    """What a model thought, to be sent back exactly as it came.

    `signature` and `redacted` are Anthropic's opaque proofs. `provider` names the wire format that made it;
    no other one is sent it.
    """

    text: str = ""
    signature: str = ""
    redacted: str = ""
    provider: str = ""


class ToolCall(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tool_call"):
    """A model asks for a tool. `arguments` is always a valid JSON object.

    `invalid` holds the text as it was received when it was not one; `arguments` is then `{}`.
    """

    id: str
    name: str
    arguments: Raw = Raw(b"{}")
    invalid: str = ""

    @property
    def question(self) -> tuple[str, bytes, str]:
        """What the call asks for, without its id: equal for two calls that ask for the same thing."""
        return (self.name, bytes(self.arguments), self.invalid)

    def is_same_call(self, other: "ToolCall") -> bool:
        """Return whether the other call asks for the same thing."""
        return self.question == other.question


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens as the provider counts them, and what they cost in US dollars (None: price unknown).

    `input_tokens` includes those read from (`cached_tokens`) and written to the provider's cache.
    `output_tokens` includes the thinking. Of a sum, `cost_is_partial` says that the price of a part is not known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    cost_is_partial: bool = False

    @property
    def is_used(self) -> bool:
        """Whether there is anything that could have a price."""
        return self.input_tokens + self.output_tokens > 0

    @property
    def _lacks_price(self) -> bool:
        return self.cost_is_partial or (self.cost_usd is None and self.is_used)

    def __add__(self, other: "Usage") -> "Usage":
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            cost_usd=sum(known) if known else None,
            cost_is_partial=bool(known) and (self._lacks_price or other._lacks_price),
        )


UserPart: TypeAlias = Text | Image
AssistantPart: TypeAlias = Text | Thinking | ToolCall

#: Who put words into a user message: the person, a guard (reminders), a `!command`, a compaction (`summary`), or what is
#: known of the project (`context`).
Origin: TypeAlias = Literal["person", "guard", "shell", "summary", "context"]


class UserMessage(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="user"):
    """What the person (or ybs in the person's place, see `origin`) says to the model.

    `typed` is what of it the person typed, where that is not all of the words: a part of them, or `/name` of the command that made them.
    """

    content: tuple[UserPart, ...]
    origin: Origin = "person"
    typed: str | None = None

    @classmethod
    def of(
        cls, text: str, *images: Image, origin: Origin = "person", typed: str | None = None
    ) -> "UserMessage":
        """Make a message of one text, left out where it is empty, and any number of images."""
        words = (Text(text=text),) if text else ()
        return cls(content=(*words, *images), origin=origin, typed=typed)

    @property
    def words(self) -> str:
        """What was said, without what was attached to it."""
        return next((part.text for part in self.content if isinstance(part, Text)), "")

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.content if isinstance(part, Text))


class AssistantMessage(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="assistant"):
    """One whole answer of a model. `stop_reason` is `cut_off` when the stream was cancelled or broke.

    `stop_detail` is the server's own word for a refusal or failure.
    """

    content: tuple[AssistantPart, ...]
    stop_reason: StopReason = "end"
    model: str = ""
    usage: Usage = Usage()
    stop_detail: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether the answer was refused, or ended for a reason that is not known to be good."""
        return self.stop_reason in ("refusal", "failed")

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tools asked for, in order."""
        return tuple(part for part in self.content if isinstance(part, ToolCall))


class ToolResult(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tool_result"):
    """What a tool answered. `output` is for the model; `summary` and `display` are for the person.

    `display` is the specification's result object (section 3) as JSON; `is_error` says that the call failed,
    `is_refused` that it was not allowed; `output` then says why, in words for the model, and `remedies` are what the
    person can do about it. `changes` are the files that the tool changed, as far as it knows them.
    """

    call_id: str
    name: str
    output: str
    is_error: bool = False
    is_refused: bool = False
    remedies: tuple[Remedy, ...] = ()
    summary: str = ""
    display: Raw = Raw(b"null")
    images: tuple[Image, ...] = ()
    changes: tuple[FileChange, ...] = ()
    duration_seconds: float = 0.0


Message: TypeAlias = UserMessage | AssistantMessage | ToolResult
