"""The session: one conversation, one project, one model at a time. Every frontend holds one and nothing else.

async with Session.open(".", provider="ollama", model="qwen3:14b") as session:
    outcome = await session.send("What does this project do?")
    print(outcome.text)
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Self

from msgspec.structs import replace

from ybs.agent.build import BuiltAgent
from ybs.agent.model_choice import AUTO, asks_for_router, check_place, next_model, open_model
from ybs.config.layers import Loaded
from ybs.config.schema import Config, Effort, Mode, PromptForm
from ybs.core.envelope import MAIN, Sink
from ybs.core.errors import YbsError
from ybs.core.events import (
    Compacted,
    Event,
    SessionStarted,
    StateChanged,
)
from ybs.core.messages import Image, Usage, UserMessage
from ybs.core.ports import Answer, Confirm, Question, Request
from ybs.providers.registry import ProviderModel
from ybs.security.policy.confirm import is_attended
from ybs.session.bounds import for_copy, hold_to
from ybs.session.feed import Telling
from ybs.session.history import History
from ybs.session.inbox import Inbox
from ybs.session.injection import as_typed, is_command
from ybs.session.journal import PASSING
from ybs.session.main_agent import SessionPorts
from ybs.session.mentions import may_name
from ybs.session.options import Options
from ybs.session.own_commands import OwnCommands, RunOwn
from ybs.session.parts import SessionParts
from ybs.session.questions import Questions
from ybs.session.reply import Menu, Outcome, Reply
from ybs.session.running_task import RunningTask
from ybs.session.settings import ready_settings, with_effort, with_incognito
from ybs.session.status import Status, View, state_of, status_of
from ybs.session.tally import Changes, TurnUse, uses_of
from ybs.transcripts.facts import MOST_WORDS


class Session:
    """Send words, get events. Raises ConfigError for what makes a start impossible, YbsError for a session that is not there.

    `/new` and `/resume` exchange the parts of the session for those of another conversation; whoever holds the session
    keeps holding it.
    """

    #: Whether it goes on when its frontend leaves.
    stays = False

    def __init__(self, options: Options) -> None:
        self._options, self.commands = options, options.commands
        self._telling = Telling(lambda: self.state)
        #: What was sent and waits: any number of frontends may send.
        self.inbox = Inbox(self, self._telling.state)
        #: What the person is asked now; an answer by its id counts as well as one that `confirm` gives.
        self.questions = Questions(self._telling.state)
        #: Who is asked before a call that needs it. As long as none is set, the answer is no.
        self.confirm: Confirm = options.confirm
        self.running = RunningTask()
        self.own_commands = OwnCommands(lambda: self.environment, self.running)
        self.usage = Usage()
        self._is_closed = False
        self._ports = SessionPorts(
            emit=self.emit,
            confirm=self._ask,
            is_attended=lambda: is_attended(self.confirm),
            tell_state=self._telling.state,
            spent_usd=lambda: (self.usage + self.parts.runner.others).cost_usd or 0.0,
            count=self.count,
            running=self.running,
        )
        loaded = ready_settings(options)
        model = open_model(loaded, options.model)
        parts = self._made(loaded, model, is_first=True)
        if options.resume is not None:
            parts.take_up_meant(options.resume, is_fork=options.fork)
        self._begin(parts)
        self.view = View(streams=self.config.ui.stream_responses)
        #: What the frontend adds to /help: its keys.
        self.frontend_help = ""

    def _made(
        self, loaded: Loaded, model: tuple[str, ProviderModel], *, is_first: bool = False
    ) -> SessionParts:
        if loaded.config.incognito.enabled:
            self._options.before_incognito()
        return SessionParts(self._options, loaded, model, self._ports, is_first=is_first)

    def _begin(self, parts: SessionParts) -> None:
        """Go on with these parts."""
        #: What the session is made of as long as it holds one conversation.
        self.parts = parts
        #: What the tools stand on, the project's folder, and the folders and variables that it goes by.
        self.environment, self.folder = parts.environment, parts.environment.folder
        self.host = parts.loaded.host
        #: What was said, what writes it down, and what the model is told about its place.
        self.conversation, self.journal = parts.main.conversation, parts.journal
        self.context = parts.main.context
        self.usage = parts.journal.replay.usage
        self.turns: list[TurnUse] = uses_of(parts.journal.replay.turns)
        self.changes = Changes()
        for told in parts.journal.earlier:
            self.changes.add(told.event, is_main=told.is_main)
        past = (self.conversation, parts.journal, parts.main.recorder)
        self.history = History(*past, self.running, self.emit, self._rewritten)
        #: The menu that each command gave last, so that a number can choose from it.
        self.offered: dict[str, Menu] = {}
        self.context.take_up(self.conversation.messages)

    @classmethod
    def open(cls, folder: str | Path = ".", **options: Any) -> "Session":
        """Open a session for a Python program; the options are those of `Options`.

        `provider`, `model`, `endpoint` and `mode` may be given by these short names; `model` may be a Model too.
        Where nobody can confirm (`confirm`), choose a mode or allow tools. Raises ConfigError.
        """
        return cls(Options.of(Path(folder), options))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def loaded(self) -> Loaded:
        """The settings in force, and where each is from."""
        return self.parts.loaded

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self.loaded.config

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was wrong with the configuration."""
        return self.loaded.warnings

    @property
    def mode(self) -> Mode:
        """What is allowed without asking."""
        return self.environment.policy.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self.environment.policy.mode = mode
        self._telling.state()

    @property
    def id(self) -> str:
        """What names the session from its first moment to its end, whatever conversation it holds; no two have the same."""
        return self._telling.id

    @property
    def state(self) -> StateChanged:
        """Where the session stands, secrets masked; each change of it is told to those who follow."""
        return self.journal.masked(
            state_of(
                self.parts,
                self.questions.open,
                waiting=self.inbox.waiting or self.parts.composer.steering.waiting,
                is_busy=self.is_busy,
            )
        )

    @property
    def resumed(self) -> Reply | None:
        """What a frontend says and draws first of a session that was taken up again."""
        return self.commands.resumed(self) if self.commands and self.journal.earlier else None

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self.parts.runner.is_busy

    @property
    def is_ending(self) -> bool:
        """Whether a turn has finished and what it left behind is being kept."""
        return self.parts.runner.is_ending

    @property
    def agent(self) -> BuiltAgent:
        """The agent that answers."""
        return self.parts.main.agent

    def attach(self, confirm: Confirm, *, keys: str = "", run_own: RunOwn | None = None) -> None:
        """Serve a frontend with a person before it: `confirm` asks them, /help names its `keys`, and `run_own` runs what they type behind `!!`."""
        self.confirm, self.frontend_help = confirm, keys
        self.own_commands.run_by(run_own)

    def subscribe(self, sink: Sink, *, follows: bool = False) -> Callable[[], None]:
        """Have `sink` called with every event of every agent, at once and in order; return the way to end that.

        One that `follows` is told where the session stands as well: now, and whenever that changes.
        """
        return self._telling.add(sink, follows=follows)

    def watch(self, changed: Callable[[], None]) -> None:
        """Have this called whenever anything may have changed, also what no event says: rules, and the sandbox."""
        self._telling.watchers.append(changed)

    def emit(self, event: Event, *, agent: str = MAIN, started_by: str = "") -> None:
        """Pass an agent's event to every sink, without secrets: nothing leaves the session but by the firewall.

        A sub-agent has a name, and `started_by`, the id of the call that started it.
        """
        event = self.journal.add(event, agent=agent, started_by=started_by)
        self.parts.runner.add(event, agent=agent)
        self.changes.add(event, is_main=agent == MAIN)
        self._telling.event(event, agent, started_by)
        if not isinstance(event, PASSING):
            self._telling.state()

    async def handle(self, line: str, images: Sequence[Image] = ()) -> Reply | Outcome:
        """Take one line that the person typed: a /command, a !command or !!command, or words for the model."""
        if self.commands is not None and is_command(line):
            return await self._carry_out(line, await self.commands.run(self, line))
        if not line.strip():
            return Reply(text="")
        if line.startswith("!!"):
            return await self.own_commands.run(line[2:].strip())
        if line.startswith("!"):
            return await self.send_shell(line[1:].strip())
        return await self.send(line, images)

    async def send(
        self,
        text: str,
        images: Sequence[Image] = (),
        *,
        typed: str | None = None,
        linked: Collection[str] | None = None,
    ) -> Outcome:
        """Take a turn with the person's words. Raises YbsError when one is running already.

        Files that the words name as `@path` go with them; `typed` is the part to look in, where that is not all. `linked`: the paths of
        links in it, where a frontend has those; all else that lies outside of the folders is asked about then, as it is in a long text.
        """
        return await self._take(
            text, lambda: self.parts.composer.compose(text, typed, images, linked)
        )

    @property
    def is_cut_short(self) -> bool:
        """Whether the process of the last turn died in it, so that `take_up` would go on."""
        return self.parts.runner.is_cut_short

    async def take_up(self) -> Outcome | None:
        """Go on with the last turn where its process died in it, without new words; None where it came to its end.

        Calls that only read, and those that had not begun or were still asked about, run now; the others are told to the model as
        interrupted. Raises YbsError when a turn is running already.
        """
        return await self.parts.runner.take_up()

    async def send_shell(self, command: str) -> Reply | Outcome:
        """Run a command that the person typed; the model answers to its output, or reads it with the next words."""
        from ybs.session.shell import USAGE, TypedCommands  # few are typed

        if not command:
            return Reply.error(USAGE)
        typed = TypedCommands(self.environment, self.parts.main.recorder, self.emit)
        if not self.config.ui.answer_shell:
            return await self.running.working(
                typed.kept(command, self.parts.composer.waiting), "A command is still running."
            )
        return await self._take(f"!{command}", lambda: typed.injected(command))

    async def _carry_out(self, line: str, reply: Reply) -> Reply | Outcome:
        """Take the turn that a command's reply asks for, if it does: of its message the person typed no more than the command."""
        self._telling.state()
        if reply.takes_up:
            return await self.take_up() or reply
        typed = line.split(maxsplit=1)[0].lower()
        if (asked := reply.prompt) is not None:
            if (routed := self.parts.main.routed) is not None:
                routed.feedback.expect_command()

            async def made() -> UserMessage:
                return replace(await asked.make(), typed=typed)

            return await self._take(asked.words, made)
        return reply if reply.shared is None else await self._hand_on(reply.shared, typed)

    async def _hand_on(self, message: UserMessage, typed: str) -> Outcome:
        async def prompt() -> UserMessage:
            return replace(message, typed=typed)

        return await self._take(as_typed(message.words), prompt)

    def send_to_background(self) -> int:
        """Let the running commands go on as jobs, so that the turn goes on too; return how many. Raises ToolError."""
        return self.environment.workspace.shells.send_to_background()

    def cancel(self) -> bool:
        """Stop the running turn, whose history stays valid, or command, and all sub-agents. Return whether there was one."""
        return self.parts.main.delegating.cancel() | self.running.cancel()

    def kept(self, text: str) -> str | None:
        """Return a text as it may be written down outside of the session, without secrets; None in incognito.

        It is empty where others may have named a file in it: no other session could tell.
        """
        if not self.environment.incognito.may_write:
            return None
        is_of_others = self.parts.composer.has_given_back and may_name(text)
        return "" if is_of_others else self.environment.secrets.kept(text)

    def steer(self, text: str, *, typed: str | None = None) -> bool:
        """Give words to the running turn, which reads them at its next step; return whether one runs.

        `typed` is the part in which named files are looked for, where that is not all.
        """
        if self.is_busy:
            self.parts.composer.steering.add(text, typed)
            self._telling.state()
        return self.is_busy

    def take_back(self) -> str:
        """Return the newest words for the running turn that it has not read, and forget them."""
        return self.parts.composer.steering.take_back()

    def unread(self) -> tuple[str, ...]:
        """Return all words that a turn did not read before it ended, and forget them."""
        return self.parts.composer.steering.take_all()

    def note_given_back(self, words: str, *, is_own: bool) -> None:
        """Note that unsent words go back into a prompt; `is_own`: the person typed them all."""
        self.parts.composer.note_given_back(words, is_own=is_own)

    @property
    def unread_count(self) -> int:
        """How many words for the running turn it has not read."""
        return len(self.parts.composer.steering)

    def status(self) -> Status:
        """Say where things stand."""
        return status_of(
            self.parts,
            self.usage + self.parts.runner.usage,
            answered_by=self.parts.runner.answered_by,
            context_tokens=self.counted_tokens or self.estimated_tokens(),
        )

    def next_request(self) -> Request:
        """Return the request as it would be sent now."""
        system = self.conversation.system or self.context.bare_prompt
        return Request(system, self.conversation.messages, self.agent.toolbox.specs())

    @property
    def counted_tokens(self) -> int:
        """The size of the next request where the provider has counted all of it; else 0."""
        return self.agent.window.counted(self.next_request())

    def estimated_tokens(self) -> int:
        """Return the likely size of the next request."""
        return self.agent.window.tokens(self.next_request())

    async def compact(self, focus: str = "") -> Compacted | None:
        """Elide older parts of the conversation; `focus` says what should stay. None: there is nothing to gain."""
        self.running.check()
        compaction = self.agent.compaction
        compaction.take_usage()
        work = compaction.compact(self.conversation, self.emit, reason="asked", focus=focus)
        began = monotonic()
        try:
            return await self.running.working(work, "The conversation is being compacted.")
        finally:
            if (usage := compaction.take_usage()) != Usage():
                words = f"compaction: {focus}" if focus else "compaction"
                self.count(words, usage, monotonic() - began)

    async def switch_model(
        self, *, provider: str | None, model: str | None, form: PromptForm | None = None
    ) -> None:
        """Use another model from now on, with the `form` of prompt that fits it or that is given; the conversation stays.

        Raises ConfigError or ModelError, and YbsError while a turn is running; nothing has changed then.
        """
        await self._switch(self.loaded, provider, model, form)

    async def use_effort(self, effort: Effort | None) -> None:
        """Have the model think so hard from now on. Raises what `switch_model` does."""
        form = "short" if self.context.is_short else "full"
        loaded = with_effort(self.loaded, effort)
        await self._switch(loaded, None, self.agent.model.name, form)

    async def _switch(
        self, loaded: Loaded, provider: str | None, model: str | None, form: PromptForm | None
    ) -> None:
        self.running.check()
        self.parts.main.delegating.check()
        name = AUTO if asks_for_router(provider, model) else provider or self.agent.provider
        host, config, own = loaded.host, loaded.config, self._options.model
        new = next_model(loaded, own, provider=name, model=model, is_persons=True)
        check_place(host, self.environment.incognito, name, new, config)
        await new.detect_window()
        await self.parts.use(loaded, name, new, form)
        self.parts.runner.begin_again()  # who goes on with this session some day is to know who answered
        await self.parts.runner.prepare_again()

    async def reload_tools(self) -> None:
        """Look for the person's own tools again, between two turns."""
        await self.parts.main.reload_tools()

    async def prepare(self, *, has_time: bool = True) -> None:
        """Have the system prompt say what is known of the place, once for a model; with time, begin the map."""
        await self.parts.runner.prepare(has_time=has_time)

    async def start_anew(self, *, is_incognito: bool) -> None:
        """Leave this conversation behind and begin an empty one with the same model, incognito or not.

        Raises ConfigError or ModelError, and YbsError while a turn is running; nothing has changed then.
        """
        await self._move("", with_incognito(self.loaded, is_on=is_incognito))

    async def resume(self, name: str, *, is_fork: bool = False) -> None:
        """Leave this conversation behind and go on with a saved one, in its file or in a fork of it.

        What it was allowed is not taken over; a fork keeps what was made stricter here. Raises YbsError, and then nothing has changed.
        """
        if name == self.journal.name and self.journal.path and not is_fork:
            raise YbsError("This session is already open here.")
        is_on = self.environment.incognito.is_on
        await self._move(name, with_incognito(self.loaded, is_on=is_on), is_fork=is_fork)

    async def use_profile(self, name: str) -> None:
        """Go on with the settings of a profile, in a fork of what was saved. Raises what `start_anew` does."""
        options = self._options.with_profile(name)
        loaded = with_incognito(ready_settings(options), is_on=self.environment.incognito.is_on)
        await self._move(self.journal.name if self.journal.path else "", loaded, is_fork=True)
        self._options = options

    async def _move(self, name: str, loaded: Loaded, *, is_fork: bool = False) -> None:
        with self.running.held("Another session is being opened."):
            old = self.parts
            provider, model = old.next_model(loaded)
            parts = self._made(loaded, (provider, model))
            try:
                await model.detect_window()
                if name:
                    await asyncio.to_thread(parts.take_up, name, is_fork=is_fork)
            except BaseException:
                await parts.aclose()
                raise
            await old.main.delegating.aclose()  # what sub-agents tell is of the old conversation
            before = old.environment.workspace
            parts.environment.workspace.began(before.since_ns, before.repository)
            parts.composer.take_over(has_given_back=old.composer.has_given_back)
            if old.loaded.config.safety.mode == loaded.config.safety.mode:
                parts.environment.policy.mode = self.mode
            if is_fork:
                hold_to(parts.environment, for_copy(old.environment, loaded.config.safety))
            old.runner.end("new_session")
            old.journal.close()
            self._begin(parts)
        await old.aclose("clear")

    async def close(self) -> None:
        """End the session: the running turn, its processes and its connections. A second time does nothing."""
        await self.running.end()
        await self.parts.aclose("prompt_input_exit")
        if not self._is_closed:
            self._is_closed = True
            self.parts.runner.end()
            self.journal.close()

    def spend(self, usage: Usage) -> None:
        """Count what was used beside turns."""
        self.usage += usage

    def count(self, words: str, usage: Usage, seconds: float, model: str = "") -> None:
        """Count what a turn has used, or a command that asks a model."""
        self.spend(usage)
        model = model or self.agent.model.name
        use = TurnUse(words=words[:MOST_WORDS], model=model, usage=usage, seconds=seconds)
        self.turns.append(use)

    async def _take(self, words: str, prompt: Callable[[], Awaitable[UserMessage]]) -> Outcome:
        self.running.check()
        self.history.undone.clear()
        return await self.parts.runner.take(words, prompt)

    def beginning(self, name: str) -> SessionStarted:
        """Return the first event of a session with this name."""
        return self.parts.runner.beginning(name)

    def _rewritten(self) -> None:
        """Go on with another history: words that wait were about what is gone."""
        self.unread()
        self.context.take_up(self.conversation.messages)

    async def _ask(self, question: Question) -> Answer:
        question = self.environment.mask_question(question)  # all frontends show the same
        with self.agent.paused():
            return await self.questions.ask(question, self.confirm)
