"""The session: one conversation, one project, one model at a time. Every front door holds one and nothing else.

async with Session.open(".", provider="ollama", model="qwen3:14b") as session:
    outcome = await session.send("What does this project do?")
    print(outcome.text)
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from ybs.config.layers import Loaded
from ybs.config.schema import Config, Mode
from ybs.context.project import branch_of
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.errors import YbsError
from ybs.core.events import (
    Emit,
    Event,
    Noticed,
    SessionEnded,
    SystemPrompted,
    TurnFinished,
)
from ybs.core.messages import Image, Usage, UserMessage
from ybs.core.ports import Confirm
from ybs.session.changes import Changes
from ybs.session.reply import Menu, Outcome, Reply
from ybs.session.tally import MOST_WORDS, Tally, TurnUse, words_of

if TYPE_CHECKING:
    from ybs.session.context_use import Estimate
    from ybs.session.wiring import Rooms


class Status(Struct, frozen=True, kw_only=True):
    """What a status line shows. Token counts are the provider's own where it gave any."""

    provider: str
    model: str
    mode: Mode
    sandbox: str
    folder: str
    branch: str
    window: int
    context_tokens: int
    usage: Usage
    #: How many commands run in the background.
    jobs: int = 0
    incognito: bool = False


class View(Struct, kw_only=True):
    """What the person sees of the work, changed by /stream and /verbose; `columns` is what the door has room for."""

    streams: bool
    is_verbose: bool = False
    columns: int = 80


class Session:
    """Send words, get events. Made by `wiring.open_session` or `Session.open`."""

    def __init__(self, rooms: "Rooms") -> None:
        self._sinks: list[Emit] = []
        self._turn: asyncio.Task[None] | None = None
        self._command: asyncio.Task[Reply] | None = None
        self._is_closed = self._is_moving = False
        self._begin_in(rooms)
        self.view = View(streams=self.config.ui.stream_responses)
        #: What the door adds to /help: its keys.
        self.door_help = ""

    def _begin_in(self, rooms: "Rooms") -> None:
        self.rooms = rooms
        self.usage = Usage()
        self.turns: list[TurnUse] = []
        self._estimate: Estimate | None = None
        self.changes = Changes()
        #: The menu that each command gave last, so that a number can choose from it.
        self.offered: dict[str, Menu] = {}
        rooms.composer.tell = self.emit
        rooms.limits.spent_usd = lambda: self.usage.cost_usd or 0.0
        self.conversation = Conversation(rooms.system_prompt)
        self._context_tokens = 0
        self._tally = Tally()
        self._has_started = False

    @classmethod
    def open(cls, folder: str | Path = ".", **options: Any) -> "Session":
        """Open a session for a Python program; the options are those of `Options`.

        `provider`, `model`, `endpoint` and `mode` may be given by these short names. Nobody can confirm
        anything unless `session.confirm` is set, so choose a mode or allow tools. Raises ConfigError.
        """
        from ybs.session.options import Options
        from ybs.session.wiring import open_session  # the wiring imports this module

        return open_session(Options.of(Path(folder), options))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self.rooms.loaded.config

    @property
    def loaded(self) -> Loaded:
        """The configuration with the origin of every value."""
        return self.rooms.loaded

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was wrong with the configuration."""
        return self.rooms.loaded.warnings

    @property
    def confirm(self) -> Confirm:
        """Who is asked before a call that needs it. As long as none is set, the answer is no."""
        return self.rooms.confirm

    @confirm.setter
    def confirm(self, confirm: Confirm) -> None:
        self.rooms.confirm = confirm

    @property
    def mode(self) -> Mode:
        """What is allowed without asking."""
        return self.rooms.policy.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self.rooms.policy.mode = mode

    @property
    def is_busy(self) -> bool:
        """Tell whether a turn is running."""
        return self._turn is not None

    def subscribe(self, sink: Emit) -> Callable[[], None]:
        """Have `sink` called with every event, at once and in order; return the way to end that."""
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    def emit(self, event: Event) -> None:
        """Tell every sink."""
        self._tally.add(event)
        self.changes.add(event)
        for sink in tuple(self._sinks):
            sink(event)

    async def handle(self, line: str, images: Sequence[Image] = ()) -> Reply | Outcome:
        """Take one line of input: a /command, a !command or !!command, or words for the model."""
        from ybs.session.commands.registry import is_command, run_command  # a prompt needs none

        if is_command(line):
            return await run_command(self, line)
        if not line.strip():
            return Reply(text="")
        if line.startswith("!!"):
            return await self.run_shell(line[2:].strip())
        if line.startswith("!"):
            return await self.send_shell(line[1:].strip())
        return await self.send(line, images)

    async def send(
        self, text: str, images: Sequence[Image] = (), *, typed: str | None = None
    ) -> Outcome:
        """Take a turn with the person's words. Raises YbsError when one is running already.

        Files that the words name as `@path` go with them; `typed` is the part to look in, where that is not all.
        """
        return await self._take_turn(text, lambda: self.rooms.composer.compose(text, typed, images))

    async def send_shell(self, command: str) -> Reply | Outcome:
        """Run a command that the person typed and let the model answer to its output."""
        from ybs.session.shell import USAGE, injected

        if not command:
            return Reply(text=USAGE, is_error=True)

        async def run() -> UserMessage:
            return UserMessage.of(await injected(self.rooms, command, self.emit), origin="shell")

        return await self._take_turn(f"!{command}", run)

    async def run_shell(self, command: str) -> Reply:
        """Run a command for the person alone: the model is told nothing. Raises YbsError while a turn is running."""
        from ybs.session.shell import shown_only

        self._check_idle()
        task = self._command = asyncio.create_task(shown_only(self.rooms, command, self.emit))
        try:
            return await task
        except asyncio.CancelledError:
            if not task.cancelled() or _is_cancelling():
                raise
            return Reply(text="stopped by you", is_error=True)
        finally:
            self._command = None

    def send_to_background(self) -> int:
        """Let the running commands go on as jobs, so that the turn goes on too; return how many. Raises ToolError."""
        return self.rooms.workspace.shells.send_to_background()

    def cancel(self) -> bool:
        """Stop the running turn, whose history stays valid, or command. Tell whether there was one."""
        task = self._turn or self._command
        return task is not None and task.cancel()

    def steer(self, text: str, *, typed: str | None = None) -> bool:
        """Give words to the running turn, which reads them at its next step; tell whether one runs.

        `typed` is the part in which named files are looked for, where that is not all.
        """
        if self._turn is not None:
            self.rooms.steering.add(text, typed)
        return self._turn is not None

    def take_back(self) -> str:
        """Return the newest words for the running turn that it has not read, and forget them."""
        return self.rooms.steering.take_back()

    def unread(self) -> tuple[str, ...]:
        """Return all words that a turn did not read before it ended, and forget them."""
        return self.rooms.steering.take_all()

    @property
    def unread_count(self) -> int:
        """How many words for the running turn it has not read."""
        return len(self.rooms.steering)

    def prompts(self) -> list[tuple[int, str]]:
        """List what the person said: the place in the conversation, and the words without what was attached."""
        said = enumerate(self.conversation.messages)
        return [
            (place, words_of(message))
            for place, message in said
            if isinstance(message, UserMessage) and message.origin == "person"
        ]

    def rewind(self, place: int) -> None:
        """Forget the conversation from that place on. Raises YbsError while a turn is running."""
        self._cut(place)

    def status(self) -> Status:
        """Say where things stand."""
        return Status(
            provider=self.rooms.provider,
            model=self.rooms.model.name,
            mode=self.mode,
            sandbox=self.rooms.sandbox.word,
            folder=str(self.rooms.folder),
            branch=branch_of(self.rooms.folder),
            window=self.rooms.model.window,
            context_tokens=self.counted_tokens or self.estimated_tokens(),
            usage=self.usage + self._tally.usage if self.is_busy else self.usage,
            jobs=len(self.rooms.workspace.shells.running_jobs),
            incognito=self.rooms.incognito.is_on,
        )

    @property
    def counted_tokens(self) -> int:
        """The size of the conversation as the provider counted it last; 0 where it has not."""
        return (self._tally.context_tokens if self.is_busy else 0) or self._context_tokens

    def estimated_tokens(self) -> int:
        """Estimate the size of the conversation: four characters to a token."""
        from ybs.session.context_use import Estimate

        self._estimate = self._estimate or Estimate()
        return self._estimate.tokens(self)

    def clear(self) -> None:
        """Forget the conversation; the session goes on. Raises YbsError while a turn is running."""
        self._cut(0)

    def _cut(self, place: int) -> None:
        self._check_idle()
        self.conversation.replace(tuple(self.conversation.messages[:place]))
        self._context_tokens = 0
        self.unread()  # they were about what is gone

    async def switch_model(self, *, provider: str | None, model: str | None) -> None:
        """Use another model from now on; the conversation stays.

        Raises ConfigError or ModelError, and YbsError while a turn is running; nothing has changed then.
        """
        self._check_idle()
        await self.rooms.switch_model(provider=provider, model=model)
        self._context_tokens = 0

    async def start_anew(self, *, is_incognito: bool) -> None:
        """Leave this conversation behind and begin an empty one with the same model, incognito or not.

        Raises ConfigError or ModelError, and YbsError while a turn is running; nothing has changed then.
        """
        self._check_idle()
        self._is_moving = True
        try:
            rooms = await self.rooms.renewed(is_incognito=is_incognito)
        finally:
            self._is_moving = False
        old = self.rooms
        rooms.confirm, rooms.policy.mode = self.confirm, self.mode  # as they are by now
        self._end("new_session")
        self._begin_in(rooms)
        await old.aclose()

    async def close(self) -> None:
        """End the session: the running turn, its processes and its connections. A second time does nothing."""
        if self._turn is not None:
            self._turn.cancel()
            await asyncio.wait((self._turn,))
        await self.rooms.aclose()
        if not self._is_closed:
            self._is_closed = True
            self._end("user_exit")

    def _end(self, reason: str) -> None:
        if self._has_started:
            count = len(self.conversation.messages)
            self.emit(SessionEnded(reason=reason, message_count=count))

    def _check_idle(self) -> None:
        if self._turn is not None:
            raise YbsError("A turn is running. Wait for its end, or cancel it.")
        if self._is_moving:
            raise YbsError("A new session is about to begin. Wait for it.")

    async def _take_turn(self, words: str, prompt: Callable[[], Awaitable[UserMessage]]) -> Outcome:
        """Take a turn with what `prompt` gives; making that is part of the turn and can be cancelled."""
        self._check_idle()
        self._start()
        self._tally = Tally()
        model, toolbox = self.rooms.begin_turn()
        agent = Agent(model, toolbox, self.emit, self.conversation, self.rooms.guards)

        async def turn() -> None:
            await agent.run(await prompt())

        task = self._turn = asyncio.create_task(turn())
        try:
            await task
        except asyncio.CancelledError:
            if not task.cancelled() or _is_cancelling():
                raise
            if self._tally.finished is None:  # cancelled before its first step
                self.emit(TurnFinished(reason="interrupted"))
        finally:
            self._turn = None
            self._count(words, self._tally)
            if news := self.rooms.secrets.news():
                self.emit(Noticed(level="info", text=news))
        return Outcome(
            finished=self._tally.finished or TurnFinished(reason="error"),
            text=self._tally.text,
            refusals=self._tally.refusals,
            unsent=self.rooms.secrets.take_out_refused(self.conversation),
        )

    def _count(self, words: str, tally: Tally) -> None:
        if (ended := tally.finished) is not None:
            self.usage += ended.usage
            use = TurnUse(
                words=words[:MOST_WORDS],
                model=self.rooms.model.name,
                usage=ended.usage,
                seconds=tally.worked_seconds,
            )
            self.turns.append(use)
        self._context_tokens = tally.context_tokens or self._context_tokens

    def _start(self) -> None:
        if not self._has_started:
            self._has_started = True
            self.emit(self.rooms.session_started)
            self.emit(SystemPrompted(content=self.conversation.system))
            if note := self.rooms.note:
                self.emit(Noticed(level="info", text=note))


def _is_cancelling() -> bool:
    return (task := asyncio.current_task()) is not None and task.cancelling() > 0
