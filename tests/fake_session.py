"""A session without a model, tools or files: it plays what a test writes, and remembers what a frontend asked of it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Raw

from hosts import this_host
from ybs.commands.open import SlashCommands
from ybs.config.schema import Config
from ybs.core.envelope import MAIN, Envelope, Sink
from ybs.core.errors import ModelError, YbsError
from ybs.core.events import (
    AssistantSaid,
    Event,
    RequestStarted,
    SessionEnded,
    SessionStarted,
    TextStreamed,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import ToolCall, Usage
from ybs.core.ports import Answer, Confirm, Effect, Preview, Question
from ybs.session.inbox import Inbox
from ybs.session.own_commands import RunOwn
from ybs.session.reply import Outcome, Reply, TerminalActions
from ybs.session.session import Session
from ybs.session.status import Status, View

Cue: TypeAlias = "Callable[[FakeSession], Awaitable[None]]"
USED = Usage(input_tokens=1200, output_tokens=34, cost_usd=0.0)


async def nobody(_question: Question) -> Answer:
    return Answer(is_allowed=False, reason="nobody asked")


class FakeSession:
    """Plays one cue per turn; a cue emits events, asks, fails or waits."""

    def __init__(
        self, *script: Cue, config: Config | None = None, warnings: tuple[str, ...] = ()
    ) -> None:
        self.script = list(script)
        self.config, self.host = config or Config(), this_host()
        self.folder, self.loaded = (
            Path("/proj/shop"),
            SimpleNamespace(review=None, host=self.host, plugins=()),
        )
        self.warnings = warnings
        self.environment = SimpleNamespace(has_skills=lambda: False, tell_left_out=print)
        self.mode = "ask"
        self.confirm: Confirm = nobody
        self.lines: list[str] = []
        self.sent: list[str] = []  # by `send` alone: not as a typed line
        self.answers: list[Answer] = []
        self.is_closed = False
        self.model = "scripted"
        self.is_incognito = False
        self.stays = False
        self.view = View(streams=self.config.ui.stream_responses)
        self.frontend_help = ""
        self.steered: list[str] = []
        self.steered_in: list[str] = []  # where files are looked for
        self.replies: dict[str, Reply] = {}
        self.resumed: Reply | None = None
        self.jobs = 0
        self._sinks: list[Sink] = []
        self.commands = SlashCommands()
        self.inbox = Inbox(self, lambda: None)
        self._turn: asyncio.Task[None] | None = None
        self._text = ""
        self._refusals = 0
        self._has_started = False

    @property
    def as_session(self) -> Session:
        return cast("Session", self)

    async def __aenter__(self) -> "FakeSession":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    @property
    def id(self) -> str:
        return "session-1"

    @property
    def is_busy(self) -> bool:
        return self._turn is not None

    @property
    def is_ending(self) -> bool:
        return False

    async def prepare(self, *, has_time: bool = True) -> None:
        """There is nothing to look at."""

    def attach(self, confirm: Confirm, *, keys: str = "", run_own: RunOwn | None = None) -> None:
        del run_own  # it runs no commands
        self.confirm, self.frontend_help = confirm, keys

    def subscribe(self, sink: Sink, *, follows: bool = False) -> Callable[[], None]:
        del follows  # it tells no state
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    def emit(self, event: Event, *, agent: str = MAIN, started_by: str = "") -> None:
        if isinstance(event, AssistantSaid):
            self._text = event.content
        if isinstance(event, ToolFinished) and event.is_refused:
            self._refusals += 1
        for sink in self._sinks:
            sink(Envelope("session-1", agent, event, started_by))

    async def handle(self, line: str, images: Sequence[Any] = ()) -> Reply | Outcome:
        if line == "/quit":
            return Reply(terminal=TerminalActions(wants_quit=True))
        if line.startswith("/"):
            self.lines.append(line)
            if line in self.replies:
                return self.replies[line]
            return Reply(text=f"answer to {line}", is_error=line == "/wrong")
        return await self._take_turn(line)

    async def send(
        self,
        text: str,
        images: Sequence[Any] = (),
        *,
        typed: str | None = None,
        linked: Any = None,
    ) -> Outcome:
        self.sent.append(text if typed is None else typed)
        return await self._take_turn(text)

    async def _take_turn(self, text: str) -> Outcome:
        if self._turn is not None:
            raise YbsError("A turn is running.")
        self.lines.append(text)
        self._text, self._refusals = "", 0
        if not self._has_started:
            self._has_started = True
            config = {"provider": "fake", "model": self.model}
            self.emit(SessionStarted(session="session-1", folder="/p", config=config))
        self.emit(UserSaid(content=text))
        finished = await self._play(self.script.pop(0))
        self.emit(finished)
        return Outcome(finished=finished, text=self._text, refusals=self._refusals)

    async def _play(self, cue: Cue) -> TurnFinished:
        self._turn = asyncio.ensure_future(cast("Any", cue(self)))
        try:
            await self._turn
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            return TurnFinished(reason="interrupted", steps=1, usage=USED)
        except ModelError as error:
            return TurnFinished(
                reason="error",
                message=str(error),
                remedies=error.remedies,
                is_temporary=error.temporary,
            )
        except EndTurn as end:
            return end.finished
        finally:
            self._turn = None
        return TurnFinished(reason="done", steps=1, usage=USED, duration_seconds=1.5)

    def steer(self, text: str, *, typed: str | None = None) -> bool:
        if self._turn is not None:
            self.steered.append(text)
            self.steered_in.append(text if typed is None else typed)
        return self._turn is not None

    def kept(self, text: str) -> str | None:
        return None if self.is_incognito else text

    def take_back(self) -> str:
        return self.steered.pop() if self.steered else ""

    def unread(self) -> tuple[str, ...]:
        words = tuple(self.steered)
        self.steered.clear()
        return words

    def note_given_back(self, words: str, *, is_own: bool) -> None:
        """It names no files."""

    @property
    def unread_count(self) -> int:
        return len(self.steered)

    def cancel(self) -> bool:
        return self._turn is not None and self._turn.cancel()

    def status(self) -> Status:
        return Status(
            provider="fake",
            model=self.model,
            mode=cast("Any", self.mode),
            sandbox="no sandbox",
            folder="/proj/shop",
            branch="main",
            window=10_000,
            context_tokens=300,
            usage=Usage(),
            jobs=self.jobs,
            incognito=self.is_incognito,
        )

    async def close(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
        was_closed, self.is_closed = self.is_closed, True
        if self._has_started and not was_closed:
            self.emit(SessionEnded(reason="user_exit", message_count=2))


class EndTurn(Exception):
    """Ends a fake turn in a chosen way."""

    def __init__(self, reason: str, message: str = "") -> None:
        self.finished = TurnFinished(reason=cast("Any", reason), message=message, usage=USED)


def says(text: str, *, size: int = 7) -> Cue:
    """Answer in streamed pieces."""

    async def cue(session: FakeSession) -> None:
        session.emit(RequestStarted(model=session.model, step=1))
        for start in range(0, len(text), size):
            session.emit(TextStreamed(text=text[start : start + size]))
            await asyncio.sleep(0)
        session.emit(AssistantSaid(content=text, usage=USED))

    return cue


def asks(question: Question, then: str = "done") -> Cue:
    """Ask the person, run the tool if allowed, and say something."""

    async def cue(session: FakeSession) -> None:
        call = question.call
        session.emit(RequestStarted(model=session.model, step=1))
        session.emit(ToolStarted(id=call.id, name=call.name, arguments=call.arguments))
        answer = await session.confirm(question)
        session.answers.append(answer)
        session.emit(
            ToolFinished(
                id=call.id,
                name=call.name,
                success=answer.is_allowed,
                is_refused=not answer.is_allowed,
                output="ran" if answer.is_allowed else answer.reason,
            )
        )
        await says(then)(session)

    return cue


def fails(error: ModelError) -> Cue:
    """Fail as a provider does."""

    async def cue(_session: FakeSession) -> None:
        raise error

    return cue


def ends(reason: str, message: str = "") -> Cue:
    """End the turn with a reason."""

    async def cue(_session: FakeSession) -> None:
        raise EndTurn(reason, message)

    return cue


async def hangs(session: FakeSession) -> None:
    """Say something and never end."""
    session.emit(RequestStarted(model=session.model, step=1))
    session.emit(TextStreamed(text="so far"))
    await asyncio.Event().wait()


def question_of(
    name: str = "run_shell",
    effect: Effect = "execute",
    body: str = "pytest -q",
    *,
    title: str = "",
    warnings: tuple[str, ...] = (),
    grant: str = "run_shell(pytest -q)",
    is_diff: bool = False,
    **arguments: Any,
) -> Question:
    """Make a question about a call."""
    given = arguments or {"command": body}
    return Question(
        call=ToolCall(id="c1", name=name, arguments=Raw(msgspec.json.encode(given))),
        effect=effect,
        # A tool for files names them; a command names another folder than the project's alone.
        preview=Preview(
            title=title or f"{name} {body}",
            body=body,
            is_diff=is_diff,
            paths=() if effect == "execute" else ("/srv/shop/a",),
        ),
        warnings=warnings,
        grant=grant,
    )
