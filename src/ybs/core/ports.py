"""The protocols that everything else satisfies. A policy wraps one and is one: a router is a Model, a firewall wraps a Model and a Toolbox. So a feature never edits the loop."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from time import monotonic
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Raw, Struct, structs

from ybs.core.changes import FileChange
from ybs.core.conversation import Conversation, Draft
from ybs.core.envelope import MAIN
from ybs.core.errors import NO_FAILURE, Failure
from ybs.core.events import AssistantSaid, Emit, EndReason, Event, TurnFinished, UserSaid
from ybs.core.messages import Image, Message, ToolCall, ToolResult, Usage, UserMessage
from ybs.core.remedies import Remedy

#: What a tool may do to the world; modes and confirmation are decided by it.
Effect: TypeAlias = Literal["read", "write", "edit", "delete", "execute"]


class ToolSpec(Struct, frozen=True, kw_only=True):
    """What is known of a tool before it is called. `parameters` is a JSON Schema of type object; models do not see `effect`."""

    name: str
    description: str
    parameters: Raw
    effect: Effect = "execute"


class Request(Struct, frozen=True):
    """One request to a model: all that it sees. An answer is JSON of `answer_schema` and fits `grammar` (llama.cpp's), where these are given."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    answer_schema: Raw | None = None
    grammar: str = ""


class Model(Protocol):
    """Something that answers a request."""

    @property
    def name(self) -> str:
        """The model's name as the person knows it, such as `qwen3:14b`."""
        ...

    @property
    def window(self) -> int:
        """The tokens that a request and its answer may have together."""
        ...

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield streamed pieces and, last, exactly one `AssistantSaid`. Raises ModelError. To stop it, close it (`aclosing`)."""
        ...


class Toolbox(Protocol):
    """Tools that a model may call. Toolboxes compose: one may stand around another one or around several."""

    async def open(self, emit: Emit) -> None:
        """Start what the tools need; emit a `Noticed` of what cannot be used. Raises ToolError where nothing can."""

    async def aclose(self) -> None:
        """End what `open` has started. A second time does nothing; it may be opened again."""

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools on offer: asked at every step, they may change; the same list as long as they do not."""
        ...

    def is_read_only(self, call: ToolCall) -> bool:
        """Return whether the call changes nothing, so that it may run beside others."""
        ...

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        """Run one call to its end. Failures are returned, never raised (but cancellation passes)."""
        ...


class ToolOutput(Struct, frozen=True, kw_only=True):
    """What a tool returns: `output` for the model; for the person a line, `summary`, the result object, `display` (plain data), and `changes`."""

    output: str
    summary: str = ""
    display: Any = None
    images: tuple[Image, ...] = ()
    changes: tuple[FileChange, ...] = ()
    is_error: bool = False


class Preview(Struct, frozen=True, kw_only=True):
    """What a call is about to do: `body` is the whole command, or unified diffs (`is_diff`), in which secrets of the files as they are can be hidden; `paths` are the files it touches, absolute."""

    title: str
    body: str = ""
    paths: tuple[str, ...] = ()
    said: str = ""  # what another program says of its call, in words of its own
    is_diff: bool = False
    writes: tuple[str, ...] | None = None  # of the paths; None: all, if its effect changes files
    command_line: str = ""  # one that does the same: hooks go by it and by `writes`


class Tool(Protocol):
    """One tool: data and a function, to which `tools/toolbox.py` names what it may add. Its arguments fit `parameters`, or are its class `arguments`, a Struct."""

    @property
    def name(self) -> str:
        """What the model calls it: letters, digits, `_` and `-`, 64 at most."""
        ...

    @property
    def description(self) -> str:
        """What the model is told about the tool."""
        ...

    @property
    def effect(self) -> Effect:
        """The most that the tool may do; whether the person is asked depends on it."""
        ...

    @property
    def parameters(self) -> Raw:
        """The JSON Schema of its arguments, of type object."""
        ...

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        """Do it. Raises ToolError for what the model should read; `print_live` takes output as it comes."""
        ...


class Question(Struct, frozen=True, kw_only=True):
    """What the person is asked, and why. `grant` is what "always" stores, else `withheld` says why nothing; `remedies` help too."""

    call: ToolCall
    effect: Effect
    preview: Preview
    warnings: tuple[str, ...] = ()
    grant: str = ""
    can_be_kept: bool = False  # by an "always" for this project
    withheld: str = ""
    reason: str = ""  # a line, as each warning is: no words in it pass for one of ybs's own
    remedies: tuple[Remedy, ...] = ()
    offers_network: bool = False  # the command would have none, and the answer may give it
    needs_network: bool = False  # it is of no use without: the terminal offers that first
    network_grant: str = ""  # what "always" stores with the network
    outside: Literal["", "offered", "needed"] = ""  # whether it may be let run outside the sandbox
    offers_asking: bool = False  # of an edit: the answer may have each edit asked about from now on
    agent: str = MAIN  # whose call it is
    choices: tuple[str, ...] | None = None  # a question of who asks itself: what may be picked
    server: str = ""  # the MCP server that asks, where neither the model nor a sub-agent does
    takes_reason: bool = True  # somebody reads why a no was said
    is_unshown: bool = False  # what the tool needs is shown here first: no hook says yes to it

    def __post_init__(self) -> None:
        structs.force_setattr(self, "reason", self.reason.replace("\n", " "))
        lines = tuple(each.replace("\n", " ") for each in self.warnings)
        structs.force_setattr(self, "warnings", lines)


class Answer(Struct, frozen=True, kw_only=True):
    """The person's answer; `reason` is what the model reads after a no, or the answer to its own question. `is_unattended`: nobody was there."""

    is_allowed: bool
    is_for_session: bool = False
    is_for_project: bool = False
    reason: str = ""
    is_unattended: bool = False
    with_network: bool = False  # for the command, where the question offers it
    asks_edits: bool = False  # before each, from now on, where the question offers it
    is_outside: bool = False  # the sandbox, for this once, where the question offers it


#: Asks the person. A frontend that has nobody to ask answers no, says so in `reason` and sets `is_unattended`.
Confirm: TypeAlias = Callable[[Question], Awaitable[Answer]]


class Turn:
    """One turn as guards see it: the conversation, what was used so far, and a way to say something."""

    def __init__(self, conversation: Conversation, emit: Emit) -> None:
        self.conversation, self.emit = conversation, emit
        self._first: UserMessage | None = None
        self.steps, self.usage, self._started_at = 0, Usage(), monotonic()

    @property
    def messages(self) -> Sequence[Message]:
        """The messages of this turn, the person's own first; all there are if that one is gone."""
        messages = self.conversation.messages
        places = (at for at in reversed(range(len(messages))) if messages[at] is self._first)
        return messages[next(places, 0) :]

    @property
    def elapsed_seconds(self) -> float:
        """Time since the turn began."""
        return monotonic() - self._started_at

    def say(self, message: UserMessage) -> None:
        """Add words on the person's side: the prompt, a reminder, a steering remark."""
        self._first = self._first or message
        self.conversation.append(message)
        self.emit(UserSaid.of(message))

    def add(self, draft: Draft) -> None:
        """Add what the model said and count what it used; say so if it was cut off. Raises ModelError for a failed answer."""
        if draft.is_cut_off:
            self.emit(AssistantSaid.of(draft.message))
        self.conversation.append(draft.message)
        self.steps += 1
        self.usage += draft.message.usage
        draft.check()

    async def wants_more(self, guards: "Sequence[Guard]") -> bool:
        """Ask every guard whether the turn should go on although no tool was asked for."""
        return any([await guard.wants_more(self) for guard in guards])

    def finished(self, reason: EndReason, failure: Failure = NO_FAILURE) -> TurnFinished:
        """Sum the turn up; `failure` is what ended it early."""
        return TurnFinished(
            reason=reason,
            message=failure.message,
            remedies=failure.remedies,
            is_temporary=failure.is_temporary,
            steps=self.steps,
            usage=self.usage,
            duration_seconds=self.elapsed_seconds,
        )


class Guard(Protocol):
    """Watches a turn. It may append messages to the conversation or end the turn with StopTurn."""

    async def before_step(self, turn: Turn) -> None:
        """Look at the turn before the next request goes out."""

    async def wants_more(self, turn: Turn) -> bool:
        """Return whether to go on although the model asks for no tool, having appended a reason to."""
        return False
