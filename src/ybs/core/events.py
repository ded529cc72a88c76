"""Events: one closed union, and `Emit`, with which an agent reports them.

The same values, in an `Envelope`, are the lines of a transcript and of stream-json, and what a frontend draws. Consumers use `match` with
`assert_never`: a new one fails the type check until all handle it. `…Streamed`, `…Printed`, `PromptRead` and `StateChanged` are never stored.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from msgspec import Raw, Struct, structs

from ybs.core.changes import FileChange
from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    Origin,
    StopReason,
    Text,
    ToolResult,
    Usage,
    UserMessage,
    UserPart,
)
from ybs.core.open_question import OpenQuestion
from ybs.core.remedies import Remedy

#: Why a turn ended. `limit`, `loop` and `dry_run` come from guards, `error` from the provider.
EndReason: TypeAlias = Literal["done", "interrupted", "error", "limit", "loop", "dry_run"]
Level: TypeAlias = Literal["info", "warning", "error"]
#: It nearly filled the window, the provider refused it, the person asked, or another model has a smaller window.
CompactionReason: TypeAlias = Literal["full", "refused", "asked", "smaller"]


class SessionStarted(Struct, frozen=True, kw_only=True, tag="session_start"):
    """A session begins, goes on, or has another model: where, and with which configuration (secrets masked)."""

    session: str = ""
    folder: str = ""
    config: dict[str, str] = {}


class SystemPrompted(Struct, frozen=True, kw_only=True, tag="system"):
    """The system prompt that every request of this session begins with."""

    content: str


class UserSaid(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="user"):
    """Words on the person's side; `parts`: all of it, if more than one text and `images` behind it; `typed`: what of it was typed, if not all (`/name`)."""

    content: str
    origin: Origin = "person"
    images: tuple[Image, ...] = ()
    parts: tuple[UserPart, ...] = ()
    typed: str | None = None

    @classmethod
    def of(cls, message: UserMessage) -> "UserSaid":
        """Make the event of a message."""
        images = tuple(part for part in message.content if isinstance(part, Image))
        said = cls(content=message.text, origin=message.origin, images=images, typed=message.typed)
        is_plain = message == said.message
        return said if is_plain else structs.replace(said, images=(), parts=message.content)

    @property
    def message(self) -> UserMessage:
        """The message that was added."""
        if self.parts:
            return UserMessage(content=self.parts, origin=self.origin, typed=self.typed)
        return UserMessage.of(self.content, *self.images, origin=self.origin, typed=self.typed)


class RequestStarted(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="request_start"):
    """A request goes out to the model. One that picks a model adds one with that one's name, `step` 0, and perhaps why."""

    model: str
    step: int = 0
    decision: str = ""
    reason: str = ""


class RequestRetried(Struct, frozen=True, kw_only=True, tag="request_retry"):
    """A request failed and is sent again after a pause, which may be `asked` for; what came of its answer is given up. `message` is why."""

    attempt: int
    wait_seconds: float
    message: str
    pause: Literal["backoff", "asked", "loading"] = "backoff"


class PromptRead(Struct, frozen=True, kw_only=True, tag="prompt_progress"):
    """A server that reads slowly tells how far it is: tokens of the prompt, those in its cache included."""

    read: int
    total: int


class TextStreamed(Struct, frozen=True, kw_only=True, tag="text_delta"):
    """A piece of the answer."""

    text: str


class ThinkingStreamed(Struct, frozen=True, kw_only=True, tag="thinking_delta"):
    """A piece of the model's thinking."""

    text: str


class ToolCallStreamed(Struct, frozen=True, kw_only=True, tag="tool_call_delta"):
    """A piece of a tool call's arguments, as raw text."""

    id: str
    name: str
    text: str


#: The fields that an `AssistantSaid` shares with its message, and a `ToolFinished` with its result.
_OF_ANSWER = ("stop_reason", "model", "usage", "stop_detail")
_OF_RESULT = tuple(set(ToolResult.__struct_fields__) - {"call_id", "is_error"})


class AssistantSaid(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="assistant"):
    """The model finished a message, or was cut off: `content` is its text, `parts` all of it in order, left out when it is that text alone."""

    content: str
    parts: tuple[AssistantPart, ...] = ()
    stop_reason: StopReason = "end"
    model: str = ""
    usage: Usage = Usage()
    stop_detail: str = ""

    @classmethod
    def of(cls, message: AssistantMessage) -> "AssistantSaid":
        """Make the event of a message."""
        is_text = all(isinstance(part, Text) for part in message.content)
        shared: dict[str, Any] = {name: getattr(message, name) for name in _OF_ANSWER}
        return cls(content=message.text, parts=() if is_text else message.content, **shared)

    @property
    def message(self) -> AssistantMessage:
        """The whole message."""
        content = self.parts or ((Text(text=self.content),) if self.content else ())
        shared: dict[str, Any] = {name: getattr(self, name) for name in _OF_ANSWER}
        return AssistantMessage(content=content, **shared)


class ConfirmationAsked(Struct, frozen=True, kw_only=True, tag="confirmation_request"):
    """A call waits for the person, who reads why in `reason`. `grant` is what "always this session" would store."""

    id: str
    name: str
    title: str
    preview: str
    warnings: tuple[str, ...] = ()
    grant: str = ""
    reason: str = ""


class ConfirmationAnswered(Struct, frozen=True, kw_only=True, tag="confirmation"):
    """The person, a rule or the mode decided about a call that needed it."""

    id: str
    is_allowed: bool
    reason: str = ""
    grant: str = ""


class ToolStarted(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tool_call"):
    """A tool call begins, checks and confirmation included: its effect if known, a line for people, and the files that it names, relative to the folder."""

    id: str
    name: str
    arguments: Raw
    effect: str = ""
    title: str = ""
    paths: tuple[str, ...] = ()


class ToolPrinted(Struct, frozen=True, kw_only=True, tag="tool_output"):
    """A piece of a running tool's output, for the screen."""

    id: str
    text: str


class ToolFinished(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tool_result"):
    """A tool call ended. `output` went to the model; `summary`, `display`, `changes` and `remedies` are for the person."""

    id: str
    name: str = ""
    success: bool
    output: str
    is_refused: bool = False
    remedies: tuple[Remedy, ...] = ()
    summary: str = ""
    display: Raw = Raw(b"null")
    images: tuple[Image, ...] = ()
    changes: tuple[FileChange, ...] = ()
    duration_seconds: float = 0.0

    @classmethod
    def of(cls, result: ToolResult) -> "ToolFinished":
        """Make the event of a result."""
        shared: dict[str, Any] = {name: getattr(result, name) for name in _OF_RESULT}
        return cls(id=result.call_id, success=not result.is_error, **shared)

    @property
    def result(self) -> ToolResult:
        """The result as the conversation holds it."""
        shared: dict[str, Any] = {name: getattr(self, name) for name in _OF_RESULT}
        return ToolResult(call_id=self.id, is_error=not self.success, **shared)


class Noticed(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="notice"):
    """Something worth a line to the person, from ybs itself, and what they can do about it."""

    level: Level
    text: str
    remedies: tuple[Remedy, ...] = ()


class TurnFinished(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="turn_end"):
    """A turn is over: why, after how many steps, and what it used; `remedies` are what to do about the message.

    `is_temporary`: the provider failed in a way that may pass, so trying again later makes sense.
    """

    reason: EndReason
    message: str = ""
    remedies: tuple[Remedy, ...] = ()
    is_temporary: bool = False
    steps: int = 0
    usage: Usage = Usage()
    duration_seconds: float = 0.0


class Compacted(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="compaction"):
    """Older parts were set aside or summed up, and `messages` is the conversation now; sizes are in tokens."""

    messages: tuple[Message, ...]
    reason: CompactionReason
    tokens_before: int
    tokens_after: int
    outputs: int = 0
    summarised: int = 0
    is_by_model: bool = False


class Rewound(Struct, frozen=True, kw_only=True, tag="rewind"):
    """The conversation was cut: its first `keeps` messages stay."""

    keeps: int


class Replaced(Struct, frozen=True, kw_only=True, tag="history"):
    """Another history is the conversation now: what was set aside came back, or what was undone."""

    messages: tuple[Message, ...]


class Titled(Struct, frozen=True, kw_only=True, tag="title"):
    """The session has a name for people; the last one counts."""

    title: str


class FilesChanged(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="checkpoint"):
    """What a turn changed in files was kept for an undo, and perhaps committed by ybs."""

    checkpoint: str
    paths: tuple[str, ...] = ()
    commit: str = ""


class FilesRestored(Struct, frozen=True, kw_only=True, tag="undo"):
    """What turns changed in files was taken back, or with `is_redo` done again: the checkpoints, newest first."""

    checkpoints: tuple[str, ...]
    is_redo: bool = False


class StateChanged(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="state"):
    """Where the session stands from now on, whole: told when any part of it has changed. It is never stored.

    `name` is the transcript's, empty before it has one; `waiting` are lines that no turn has taken up; `steps` is what the model noted to do.
    """

    name: str = ""
    title: str = ""
    provider: str = ""
    model: str = ""
    mode: str = ""
    sandbox: str = ""
    is_busy: bool = False
    waiting: tuple[str, ...] = ()
    questions: tuple[OpenQuestion, ...] = ()
    jobs: tuple[str, ...] = ()
    steps: str = ""


class SessionEnded(Struct, frozen=True, kw_only=True, tag="session_end"):
    """The session is over."""

    reason: str
    message_count: int


Event: TypeAlias = (
    SessionStarted
    | SystemPrompted
    | UserSaid
    | RequestStarted
    | RequestRetried
    | PromptRead
    | TextStreamed
    | ThinkingStreamed
    | ToolCallStreamed
    | AssistantSaid
    | ConfirmationAsked
    | ConfirmationAnswered
    | ToolStarted
    | ToolPrinted
    | ToolFinished
    | Noticed
    | TurnFinished
    | Compacted
    | Rewound
    | Replaced
    | Titled
    | FilesChanged
    | FilesRestored
    | StateChanged
    | SessionEnded
)
Emit: TypeAlias = Callable[[Event], None]
