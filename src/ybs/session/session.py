"""The session: one conversation, one project, one model at a time. Every front door holds one and nothing else.

async with Session.open(".", provider="ollama", model="qwen3:14b") as session:
    outcome = await session.send("What does this project do?")
    print(outcome.text)
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ybs.config.layers import Loaded
from ybs.config.schema import Config, Mode
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.errors import YbsError
from ybs.core.events import (
    Emit,
    Event,
    Noticed,
    Replaced,
    SessionEnded,
    SystemPrompted,
    ToolFinished,
    TurnFinished,
)
from ybs.core.messages import Image, Usage, UserMessage
from ybs.core.ports import Confirm
from ybs.session.changes import Changes
from ybs.session.context_use import request_of
from ybs.session.first_model import note_on
from ybs.session.journal import beginning
from ybs.session.occupation import Occupation, Stopped, is_passed_on
from ybs.session.past import Past
from ybs.session.reply import Commands, Menu, Outcome, Reply
from ybs.session.status import Status, View, status_of
from ybs.session.tally import Tally, TurnUse, uses_of
from ybs.transcripts.facts import MOST_WORDS

if TYPE_CHECKING:
    from ybs.session.wiring import Rooms


class Session:
    """Send words, get events. Made by `wiring.open_session` or `Session.open`."""

    def __init__(self, rooms: "Rooms", commands: Commands | None = None) -> None:
        self._sinks: list[Emit] = []
        #: What it is busy with.
        self.occupation = Occupation()
        self._is_closed = False
        self.commands = commands
        self._begin_in(rooms)
        self.view = View(streams=self.config.ui.stream_responses)
        #: What the door adds to /help: its keys.
        self.door_help = ""

    def _begin_in(self, rooms: "Rooms") -> None:
        self.rooms = rooms
        self.journal = rooms.journal
        self.journal.tell = self.emit
        self.past = Past(self)
        self.usage = rooms.journal.replay.usage
        self.turns: list[TurnUse] = uses_of(rooms.journal.replay.turns)
        self.changes = Changes()
        #: The menu that each command gave last, so that a number can choose from it.
        self.offered: dict[str, Menu] = {}
        rooms.composer.tell = self.emit
        rooms.limits.spent_usd = lambda: self.usage.cost_usd or 0.0
        self.conversation = Conversation(rooms.own_prompt, rooms.journal.replay.messages)
        for event in rooms.journal.earlier:
            self.changes.add(event)
        self._tally = Tally()
        self._has_started = False
        self._prepared_for: object = None  # the model that the system prompt was made for
        self._told = ""
        rooms.surroundings.take_up(rooms.journal.replay.messages)

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

    async def __aexit__(self, *_: object) -> None:
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
        return self.loaded.warnings

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
    def resumed(self) -> Reply | None:
        """What a door says and draws first of a session that was taken up again."""
        if not self.journal.earlier or self.commands is None:
            return None
        return self.commands.resumed(self)

    @property
    def is_busy(self) -> bool:
        """Tell whether a turn is running."""
        return self.occupation.turn is not None and self._tally.finished is None

    @property
    def is_ending(self) -> bool:
        """Tell whether a turn has finished and what it left behind is being kept."""
        return self.occupation.turn is not None and self._tally.finished is not None

    def subscribe(self, sink: Emit) -> Callable[[], None]:
        """Have `sink` called with every event, at once and in order; return the way to end that."""
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    def emit(self, event: Event) -> None:
        """Tell every sink, without secrets: here the firewall stands before whatever leaves the session."""
        event = self.journal.add(event)
        self._tally.add(event)
        self.changes.add(event)
        for sink in tuple(self._sinks):
            sink(event)

    async def handle(self, line: str, images: Sequence[Image] = ()) -> Reply | Outcome:
        """Take one line of input: a /command, a !command or !!command, or words for the model."""
        if self.commands is not None and self.commands.is_command(line):
            return await self.commands.run(self, line)
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

        work = shown_only(self.rooms, command, self.emit)
        try:
            return await self.occupation.working(work, "A command is running.")
        except Stopped:
            return Reply(text="stopped by you", is_error=True)

    def send_to_background(self) -> int:
        """Let the running commands go on as jobs, so that the turn goes on too; return how many. Raises ToolError."""
        return self.rooms.workspace.shells.send_to_background()

    def cancel(self) -> bool:
        """Stop the running turn, whose history stays valid, or command. Tell whether there was one."""
        return self.occupation.cancel()

    def steer(self, text: str, *, typed: str | None = None) -> bool:
        """Give words to the running turn, which reads them at its next step; tell whether one runs.

        `typed` is the part in which named files are looked for, where that is not all.
        """
        if self.is_busy:
            self.rooms.steering.add(text, typed)
        return self.is_busy

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

    def status(self) -> Status:
        """Say where things stand."""
        return status_of(self, self._tally.usage if self.occupation.turn else Usage())

    @property
    def counted_tokens(self) -> int:
        """The size of the next request where the provider has counted all of it; else 0."""
        return self.rooms.window.counted(request_of(self))

    def estimated_tokens(self) -> int:
        """Return the likely size of the next request."""
        return self.rooms.window.tokens(request_of(self))

    async def switch_model(self, *, provider: str | None, model: str | None) -> None:
        """Use another model from now on; the conversation stays.

        Raises ConfigError or ModelError, and YbsError while a turn is running; nothing has changed then.
        """
        self.occupation.check()
        await self.rooms.switch_model(provider=provider, model=model)
        if self._has_started:  # who goes on with this session some day is to know who answered
            self.emit(beginning(self.rooms, self.journal.name))
        if self._prepared_for is not None:
            await self.prepare()

    async def start_anew(self, *, is_incognito: bool) -> None:
        """Leave this conversation behind and begin an empty one with the same model, incognito or not.

        Raises ConfigError or ModelError, and YbsError while a turn is running; nothing has changed then.
        """
        await self._move("", is_incognito=is_incognito, is_fork=False)

    async def resume(self, name: str, *, is_fork: bool = False) -> None:
        """Leave this conversation behind and go on with a saved one, in its file or in a fork of it.

        What it was allowed is not taken over. Raises YbsError, and then nothing has changed.
        """
        if name == self.journal.name and self.journal.path and not is_fork:
            raise YbsError("That is this session.")
        await self._move(name, is_incognito=self.rooms.incognito.is_on, is_fork=is_fork)

    async def _move(self, name: str, *, is_incognito: bool, is_fork: bool) -> None:
        with self.occupation.held("Another session is about to begin."):
            rooms = await self.rooms.renewed(is_incognito=is_incognito)
            if name:
                try:
                    await asyncio.to_thread(rooms.journal.take_up, name, is_fork=is_fork)
                except BaseException:
                    await rooms.aclose()
                    raise
        old = self.rooms
        rooms.confirm, rooms.policy.mode = self.confirm, self.mode  # as they are by now
        self._end("new_session")
        self.journal.close()
        self._begin_in(rooms)
        await old.aclose()

    async def close(self) -> None:
        """End the session: the running turn, its processes and its connections. A second time does nothing."""
        await self.occupation.end()
        await self.rooms.aclose()
        if not self._is_closed:
            self._is_closed = True
            self._end("user_exit")
            self.journal.close()

    def _end(self, reason: str) -> None:
        if self._has_started:
            count = len(self.conversation.messages)
            self.emit(SessionEnded(reason=reason, message_count=count))

    def count(self, words: str, usage: Usage, seconds: float) -> None:
        """Count what a turn has used, or a command that asks a model."""
        self.usage += usage
        model = self.rooms.model.name
        self.turns.append(
            TurnUse(words=words[:MOST_WORDS], model=model, usage=usage, seconds=seconds)
        )

    async def _take_turn(self, words: str, prompt: Callable[[], Awaitable[UserMessage]]) -> Outcome:
        """Take a turn with what `prompt` gives; making that is part of the turn and can be cancelled."""
        self.occupation.check()
        self._start(words)
        self._tally = Tally()
        self.past.undone.clear()
        model, toolbox = self.rooms.begin_turn(self.conversation, self.emit)
        agent = Agent(model, toolbox, self.emit, self.conversation, self.rooms.guards)

        async def turn() -> None:
            try:
                await agent.run(await self._first(prompt))
            except asyncio.CancelledError:
                self._be_finished()
                raise
            finally:
                await self.rooms.upkeep.end_turn()

        task = self.occupation.turn = asyncio.create_task(turn())
        try:
            await task
        except asyncio.CancelledError:
            if is_passed_on(task):
                raise
            self._be_finished()
        finally:
            self.occupation.turn = None
            if (ended := self._tally.finished) is not None:
                self.count(words, ended.usage, self._tally.worked_seconds)
            if news := self.rooms.secrets.news():
                self.emit(news)
        return Outcome(
            finished=self._tally.finished or TurnFinished(reason="error"),
            text=self._tally.text,
            refusals=self._tally.refusals,
            unsent=self._take_out_refused(),
        )

    async def _first(self, prompt: Callable[[], Awaitable[UserMessage]]) -> UserMessage:
        await self.prepare(has_time=False)
        if self.conversation.system != self._told:
            self._told = self.conversation.system
            self.emit(SystemPrompted(content=self._told))
        await self.rooms.upkeep.recover(self.emit)
        return await prompt()

    async def prepare(self, *, has_time: bool = True) -> None:
        """Have the system prompt say what is known of the place, once for a model; with time, begin the map."""
        rooms, model, conversation = self.rooms, self.rooms.model, self.conversation
        if has_time:
            rooms.surroundings.look_around()
        if self._prepared_for is not model:
            system = await rooms.surroundings.prompt(rooms)
            if self._prepared_for is not model and conversation is self.conversation:
                conversation.system, self._prepared_for = system, model

    def _be_finished(self) -> None:
        """Tell the end of a turn that was cancelled before its first step."""
        if self._tally.finished is None:
            self.emit(TurnFinished(reason="interrupted"))

    def _take_out_refused(self) -> str:
        unsent = self.rooms.secrets.take_out_refused(self.conversation)
        if len(self.conversation.messages) != len(self.journal.replay.messages):
            self.emit(Replaced(messages=tuple(self.conversation.messages)))
        return unsent

    def _start(self, words: str = "") -> None:
        self.rooms.surroundings.expect(words, self.conversation.messages)
        if not self._has_started:
            self._has_started = True
            self.emit(beginning(self.rooms, self.journal.begin()))
            self._close_open_calls()
            if note := note_on(self.config, self.rooms.model):
                self.emit(Noticed(level="info", text=note))

    def _close_open_calls(self) -> None:
        """Answer the calls that an earlier part of the session was killed in the midst of."""
        if calls := self.conversation.open_calls:
            from ybs.session.leftovers import remove_leftovers  # kills are rare

            remove_leftovers(self.rooms.workspace.roots, calls)
            for result in self.conversation.close_open_calls():
                self.emit(ToolFinished.of(result))
