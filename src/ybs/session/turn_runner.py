"""Takes the turns of one conversation: the hooks around each, the agent in it, and what it added up to."""

import asyncio
from collections.abc import Awaitable, Callable

from ybs.agent.hooks import after_turn, before_turn
from ybs.agent.model_choice import note_on
from ybs.core import events
from ybs.core.envelope import MAIN
from ybs.core.events import Event
from ybs.core.messages import AssistantMessage, Usage, UserMessage
from ybs.core.remedies import Remedy
from ybs.session.composer import Composer
from ybs.session.injection import as_words
from ybs.session.journal import Journal
from ybs.session.main_agent import MainAgent, SessionPorts
from ybs.session.reply import Outcome
from ybs.session.running_task import is_passed_on
from ybs.session.taking_up import going_on, remove_leftovers
from ybs.session.tally import Tally
from ybs.transcripts.reading import OF_OTHERS, ONE_SHOT, REPOSITORY


class TurnRunner:
    """Runs one turn at a time. The conversation begins, for the transcript, with the first of them."""

    def __init__(
        self,
        main: MainAgent,
        journal: Journal,
        composer: Composer,
        ports: SessionPorts,
        *,
        is_one_shot: bool,
        is_of_others: bool,
    ) -> None:
        self._main, self._journal, self._composer = main, journal, composer
        self._running, self._emit, self._count = ports.running, ports.emit, ports.count
        self._is_one_shot, self._is_of_others = is_one_shot, is_of_others
        self._tally = Tally()
        self.has_started = False
        self._prepared_for: object = None  # the model that the system prompt was made for
        self._told = ""

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self._running.turn is not None and self._tally.finished is None

    @property
    def is_ending(self) -> bool:
        """Whether a turn has finished and what it left behind is being kept."""
        return self._running.turn is not None and self._tally.finished is not None

    @property
    def is_cut_short(self) -> bool:
        """Whether the last turn of a session that was taken up has no end."""
        replay, messages = self._journal.replay, self._main.conversation.messages
        rounds = replay.past_turns.open
        if self.has_started or not (rounds and messages) or rounds[-1].end is not None:
            return False
        last = messages[-1]
        return not isinstance(last, AssistantMessage) or bool(last.calls)

    @property
    def usage(self) -> Usage:
        """What the running turn has used, and sub-agents that no turn has counted yet."""
        own = self._tally.usage if self._running.turn else Usage()
        return own + self.others

    @property
    def others(self) -> Usage:
        """What sub-agents have used and no turn has counted yet."""
        return self._tally.others.total

    @property
    def answered_by(self) -> str:
        """The model that answered last; empty before an answer."""
        return self._tally.model

    def add(self, event: Event, *, agent: str = MAIN) -> None:
        """Take an event of the running turn."""
        self._tally.add(event, agent=agent)
        if self._main.routed is not None and agent == MAIN:
            self._main.routed.add(event)

    async def take_up(self) -> Outcome | None:
        """Go on with the last turn where its process died in it; None where it came to its end."""
        if not self.is_cut_short:
            return None
        return await self.take("", going_on(self._main), goes_on=True)

    async def take(
        self, words: str, prompt: Callable[[], Awaitable[UserMessage]], *, goes_on: bool = False
    ) -> Outcome:
        """Take a turn with what `prompt` gives; making that is part of the turn and can be cancelled.

        Where it `goes_on`, calls that have no result are left to `prompt`.
        """
        self._running.check()
        self._start(words, goes_on=goes_on)
        self._tally = Tally(self._tally.others, self._tally.model)
        task = asyncio.create_task(self._turn(prompt))
        self._running.begin(task)
        others = Usage()
        try:
            await task
        except asyncio.CancelledError:
            if is_passed_on(task):
                raise
            self._be_finished()
        finally:
            self._running.done()
            if self._tally.finished is not None:
                tally = self._tally
                others = tally.others.total
                self._count(words, tally.take_usage(), tally.worked_seconds, tally.model)
            if news := self._main.environment.secrets.news():
                self._emit(news)
        finished = self._tally.finished or events.TurnFinished(reason="error")
        return Outcome(
            finished=finished,
            text=self._tally.text,
            others=others,
            refusals=self._tally.refusals,
            unsent=self._take_out_refused(),
            plan=self._plan() if finished.reason == "done" else "",
            json=self._formed() if finished.reason == "done" else b"",
        )

    def _formed(self) -> bytes:
        form = self._main.form
        return form.read(self._tally.text)[0] if form is not None else b""

    def _plan(self) -> str:
        if self._main.environment.policy.mode != "plan":
            return ""
        from ybs.transcripts.facts import proposed_plan  # few turns plan

        return proposed_plan(self._tally.text)

    async def _turn(self, prompt: Callable[[], Awaitable[UserMessage]]) -> None:
        main = self._main
        await main.fit()
        try:
            await before_turn(main.turn_hooks, self._emit)
            await main.agent.run(self._first(prompt))
        except asyncio.CancelledError:
            self._be_finished()
            raise
        finally:
            await after_turn(main.turn_hooks)

    async def _first(self, prompt: Callable[[], Awaitable[UserMessage]]) -> UserMessage:
        await self._main.agent.toolbox.open(self._emit)
        await self.prepare(has_time=False)
        if self._main.conversation.system != self._told:
            self._told = self._main.conversation.system
            self._emit(events.SystemPrompted(content=self._told))
        await self._main.recorder.recover(self._emit)
        return await self._composer.first(prompt)

    async def prepare(self, *, has_time: bool = True) -> None:
        """Have the system prompt say what is known of the place, once for a model; with time, begin the map and ask its server."""
        if has_time:
            await self._main.fit()
        main, model = self._main, self._main.agent.model
        wanted = (model, main.context.is_short)
        if has_time:
            main.context.look_around()
            if main.environment.has_mcp():
                main.environment.mcp.start()
        if self._prepared_for != wanted:
            system = await main.context.prompt()
            now = (main.agent.model, main.context.is_short)
            if self._prepared_for != wanted and now == wanted:
                main.conversation.instruct(system)
                self._prepared_for = wanted
        if has_time:
            await main.agent.window.ask()

    async def prepare_again(self) -> None:
        """Have the system prompt fit another model, if it has been written already."""
        if self._prepared_for is not None:
            await self.prepare()

    def begin_again(self) -> None:
        """Emit with which model the session goes on, if it has begun."""
        if self.has_started:
            self._emit(self.beginning(self._journal.name))

    def end(self, reason: str = "") -> None:
        """Emit that the session ends, if it has begun; without a reason because its person is done with it."""
        if self.has_started:
            reason = reason or (ONE_SHOT if self._is_one_shot else "user_exit")
            count = len(self._main.conversation.messages)
            self._emit(events.SessionEnded(reason=reason, message_count=count))

    def beginning(self, name: str) -> events.SessionStarted:
        """Return the first event of a session with this name: its folder, and what it begins with."""
        environment = self._main.environment
        config = {
            "provider": self._main.agent.provider,
            "model": self._main.agent.model.name,
            "mode": environment.policy.mode,
            "sandbox": "off" if environment.sandbox.is_off else "on",
            "incognito": "on" if environment.incognito.is_on else "off",
        }
        if self._main.routed is not None:
            config["router"] = "on"
        if self._is_one_shot:
            config[ONE_SHOT] = "on"
        if self._is_of_others:
            config[OF_OTHERS] = "on"
        if environment.workspace.repository:
            config[REPOSITORY] = environment.workspace.repository
        return events.SessionStarted(session=name, folder=str(environment.folder), config=config)

    def _be_finished(self) -> None:
        """Emit the end of a turn that was cancelled before its first step."""
        if self._tally.finished is None:
            self._emit(events.TurnFinished(reason="interrupted"))

    def _take_out_refused(self) -> str:
        main = self._main
        unsent = main.agent.firewall_model.take_out_refused(main.conversation)
        if len(main.conversation.messages) != len(self._journal.replay.messages):
            self._emit(events.Replaced(messages=tuple(main.conversation.messages)))
        self._composer.note_given_back(unsent)
        return as_words(unsent)

    def _start(self, words: str, *, goes_on: bool) -> None:
        main = self._main
        main.context.expect(words, main.conversation.messages)
        if main.routed is not None:
            main.routed.expect(words)
        if not self.has_started:
            self.has_started = True
            self._emit(self.beginning(self._journal.begin()))
            if not goes_on:
                self._close_open_calls()
            if note := note_on(main.environment.config, main.agent.model):
                self._emit(events.Noticed(level="info", text=note, remedies=(Remedy("set_up"),)))

    def _close_open_calls(self) -> None:
        """Answer the calls during which an earlier run of the session was killed."""
        conversation = self._main.conversation
        if calls := conversation.open_calls:
            remove_leftovers(self._main.environment.roots, calls)
            for result in conversation.close_open_calls():
                self._emit(events.ToolFinished.of(result))
