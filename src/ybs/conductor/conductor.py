"""The conductor: starts sub-agents, shares the turn's budget among them, and brings their results back."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.model_choice import AUTO, routed
from ybs.agent.routed import RoutedTask
from ybs.conductor.acp.agent import AcpSubAgent
from ybs.conductor.best_of import (
    NO_MODEL,
    Attempt,
    BestOf,
    check_setting,
    drop,
    fewer_than,
    summary_of,
    to_attempt,
)
from ybs.conductor.budget import Budget, Purse, Used, usual
from ybs.conductor.home import Home
from ybs.conductor.kinds import Kind, kind_named
from ybs.conductor.models import ChosenModel, Models
from ybs.conductor.result import Report, problem_of
from ybs.conductor.sub_agent import SubAgent
from ybs.conductor.workplaces import Workplaces
from ybs.core.envelope import MAIN
from ybs.core.errors import ToolError, YbsError
from ybs.core.events import Emit, Event, Noticed
from ybs.core.messages import Message, UserMessage
from ybs.core.ports import ToolOutput, Turn
from ybs.core.wording import listed, plural
from ybs.providers.registry import shown_name
from ybs.router.classifier import Features
from ybs.router.model import RoutedModel
from ybs.tools.builtin.delegate import PersonsTask, Task
from ybs.tools.listing import MOST_CHARS, names_within, unknown

#: Each result has at least so many characters, however many there are.
_FEWEST_CHARS: Final = 800
#: Which part of a turn's time its sub-agents may take.
_SHARED_TIME = 0.9
_BEGUN = "[{name}: is running in the background; its result follows]"


class _Work(Struct, frozen=True):
    """A sub-agent that is to begin, and the call that starts it. `in_copy`: it works in a copy of the project, as others may change that too."""

    agent: SubAgent
    call_id: str
    purse: Purse
    in_copy: bool = False


class Conductor:
    """The sub-agents of one session."""

    def __init__(self, home: Home, kinds: Mapping[str, Kind]) -> None:
        self._home = home
        self._models = Models(home)
        #: The kinds of sub-agents, by name.
        self.kinds = kinds
        self._taken = set(home.earlier_names)
        self._turn: Turn | None = None
        self._purse, self._limit = Purse(), self._limits()
        config = home.place.environment.config.agents
        self._room = asyncio.Semaphore(config.max_parallel)
        self._places = Workplaces(home)
        #: The sub-agents that work or wait for their turn to, by name.
        self.working: dict[str, SubAgent] = {}
        #: The results of all that have ended, the oldest first.
        self.reports: list[Report] = []
        self._background: set[asyncio.Task[None]] = set()
        self._news: list[Report] = []

    def _limits(self) -> Budget:
        """Return what a turn that begins may use in all."""
        agent = self._home.place.environment.config.agent
        most = agent.max_cost_usd
        return Budget(
            steps=agent.max_iterations,
            cost_usd=None if most is None else most - self._home.spent_usd,
            seconds=agent.max_seconds,
        )

    def begin_turn(self, turn: Turn) -> None:
        """Share the budget of another turn from now on."""
        if turn is not self._turn:
            self._turn, self._purse = turn, Purse()
            self._limit = self._limits().less(Used(cost_usd=self.reserved_usd))

    @property
    def committed(self) -> Used:
        """What the sub-agents of this turn have used, and what is reserved for those at work."""
        return self._purse.committed

    @property
    def reserved_usd(self) -> float:
        """What those at work, of whatever turn, may still cost."""
        return sum(each.budget.less(each.used).cost_usd or 0.0 for each in self.working.values())

    def _left(self) -> Budget:
        """Return what the turn has left, before its sub-agents are counted. The last request and the last tenth of the time are its own: it reads their results."""
        turn, limit = self._turn, self._limit
        if turn is None:
            return limit
        used = Used.of(turn.steps + 1, turn.usage)
        if limit.seconds is None:
            return limit.less(used)
        seconds = max(0.0, _SHARED_TIME * limit.seconds - turn.elapsed_seconds)
        return replace(limit.less(used), seconds=seconds)

    async def delegate(self, tasks: Sequence[Task], call_id: str) -> ToolOutput:
        """Have the tasks done, side by side, and return what came of them. Raises ToolError where none can be begun."""
        if (best := to_attempt(tasks)) is not None:
            return await self.attempt(best, call_id)
        works, refused = self._begin(tasks, call_id)
        if not works:
            raise ToolError("\n".join(refused.values()))
        reports: dict[str, Report] = {}

        async def work(each: _Work) -> None:
            reports[each.agent.name] = await self._work(each)

        try:
            async with asyncio.TaskGroup() as group:
                for each in works:
                    if each.agent.is_background:
                        self._start_in_background(each)
                    else:
                        group.create_task(work(each))
        finally:
            for each in works:
                if not each.agent.is_background:
                    self._close(each)
        return self._output([each.agent for each in works], reports, list(refused.values()))

    async def attempt(
        self, task: Task, call_id: str, history: Sequence[Message] = ()
    ) -> ToolOutput:
        """Have several models do a task side by side, and a check choose whose work is taken over. Raises ToolError."""
        kind = self._kind_of(task)
        if not kind.may_change or task.background:
            raise ToolError("Only kinds that change something can be given a task with `best_of`.")
        if kind.acp is not None:
            raise ToolError(
                f"{kind.name} is another agent, which works alone. Leave `best_of` out."
            )
        models = await self._models_for(task, kind, history)
        works, refused = self._begin([task] * len(models), call_id, history)
        for model in models[len(works) :]:
            await drop(model, "there was no budget for it")
        if not works:
            raise ToolError("\n".join(refused.values()))
        fewer = fewer_than(task.best_of, len(works))
        attempts = [
            Attempt(
                agent=work.agent,
                model=model,
                emit=partial(self._home.tell, agent=work.agent.name, started_by=call_id),
                report=work.agent.report("it was not started"),
            )
            for work, model in zip(works, models, strict=False)
        ]
        try:
            attempting = BestOf(self._home, self._places, call_id)
            best = await attempting.run(attempts, self._room, fewer)
        finally:
            for work in works:
                self._close(work)
            self.reports += [each.report for each in attempts]
        reports = {each.agent.name: each.report for each in attempts}
        made = self._output([work.agent for work in works], reports, [fewer] if fewer else [])
        return replace(made, summary=summary_of(attempts, best), is_error=best is None)

    async def _models_for(
        self, task: Task, kind: Kind, history: Sequence[Message]
    ) -> list[RoutedModel]:
        """Return the models for attempts, as many as there are and as the turn has money for. Raises ToolError."""
        check_setting(self._home)
        messages = [*history, UserMessage.of(task.task)]
        size = self._home.agent.window.size_of(self._home.conversation.system, messages)
        words = self._home.place.environment.mask(task.task, "a task")
        features = Features.of(words, tokens=size)
        try:
            is_persons = isinstance(task, PersonsTask)
            found = await self._models.several(task.best_of, features, is_persons=is_persons)
        except YbsError as error:
            raise ToolError(str(error)) from error
        wanted, free = self._wanted(task, kind), self._purse.free(self._left())
        while found:
            each = wanted.within(free.share(len(found))).cost_usd
            if each is None or all(m.routing.estimate(m.arm, size).usd <= each for m in found):
                return found
            await drop(found.pop(), "the turn had no money for it")
        raise ToolError(NO_MODEL)

    def _begin(
        self, tasks: Sequence[Task], call_id: str, history: Sequence[Message] = ()
    ) -> tuple[list[_Work], dict[int, str]]:
        """Make the sub-agents of the tasks that can be begun; of the others say why not."""
        agents: list[SubAgent] = []
        refused: dict[int, str] = {}
        kinds: dict[int, Kind] = {}
        for place, task in enumerate(tasks):
            try:
                kinds[place] = self._kind_of(task)
            except ToolError as error:
                refused[place] = f"[task {place + 1}: not started: {error}]"
        named = {place: self._name(kind) for place, kind in kinds.items()}
        left = self._left()
        half = self._purse.free(left).share(2)  # the turn goes on beside those in the background
        wants = {place: self._wanted(tasks[place], kind) for place, kind in kinds.items()}
        wanted = [
            (named[place], want.within(half) if tasks[place].background else want)
            for place, want in wants.items()
        ]
        given = self._purse.reserve(wanted, left)
        for (place, kind), budget in zip(kinds.items(), given, strict=True):
            if budget.missing:
                self._purse.settle(named[place], Used())
                refused[place] = (
                    f"[task {place + 1}: not started: the turn has no {budget.missing} left for it]"
                )
                continue
            task = tasks[place]
            agent = _agent_of(named[place], kind, task, budget, history)
            agents.append(agent)
            self.working[agent.name] = agent
        has_several = sum(agent.kind.may_change for agent in agents) > 1
        works = [
            _Work(
                agent,
                call_id,
                self._purse,
                agent.kind.may_change and (has_several or agent.kind.acp is not None),
            )
            for agent in agents
        ]
        return works, refused

    def _kind_of(self, task: Task) -> Kind:
        kind = kind_named(self.kinds, task.kind)
        if kind is None:
            names = names_within(self.kinds, MOST_CHARS)
            fits = unknown("kind", task.kind, list(self.kinds.values()))
            raise ToolError(f"{fits}\nThe kinds are: {names}")
        if task.background and kind.may_change:
            raise ToolError(
                "Only kinds that change nothing work in the background, such as explore and review. "
                "Leave `background` out."
            )
        if kind.acp is not None and (task.tools or task.model):
            raise ToolError(
                f"{kind.name} is another agent, with tools and a model of its own. Leave `tools` and `model` out."
            )
        return kind

    def _name(self, kind: Kind) -> str:
        number, short = 1, kind.name.rpartition(":")[2]
        while (name := f"{short}-{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name

    def _wanted(self, task: Task, kind: Kind) -> Budget:
        own = Budget(
            steps=task.steps, tokens=task.tokens, cost_usd=task.cost_usd, seconds=task.seconds
        )
        settings = usual(self._home.place.environment.config.agents)
        return own.within(kind.budget).within(settings)

    async def _work(self, work: _Work) -> Report:
        """Run one sub-agent to its end, and keep what came of it."""
        work.agent.wait()
        try:
            report = await self._run(work)
        except asyncio.CancelledError:
            if not work.agent.is_stopped:
                self.reports.append(work.agent.report("the turn was stopped"))
                raise
            report = work.agent.report("it was stopped before it began")
        except Exception as error:  # the work of the others must not be lost with it
            report = work.agent.report(problem_of(error))
        self.reports.append(report)
        return report

    async def _run(self, work: _Work) -> Report:
        """Run one sub-agent when there is a place for it."""
        agent = work.agent
        name, kind, task = agent.name, agent.kind, agent.task
        if kind.acp is not None:
            tell = partial(self._home.tell, agent=name, started_by=work.call_id)
            return await self._run_with(work, None, tell)

        named = self._home.place.environment.config.agents.models.get(kind.name, "")
        wanted = task.model or named or kind.model
        in_task = task.model if isinstance(task, PersonsTask) else ""
        persons = (named, in_task, kind.model if kind.is_own else "")
        chosen = await self._models.find(wanted, is_persons=wanted in persons)
        routed_task = self._routed_task(chosen)

        def emit(event: Event) -> None:
            if routed_task is not None:
                routed_task.add(event, is_stopped=agent.is_stopped)
            self._home.tell(event, agent=name, started_by=work.call_id)

        self._tell_model(name, chosen)
        try:
            return await self._run_with(work, chosen, emit)
        finally:
            if routed_task is not None:
                await routed_task.end()

    async def _run_with(self, work: _Work, chosen: ChosenModel | None, emit: Emit) -> Report:
        """Run one sub-agent with its model when there is a place for it."""
        agent = work.agent
        async with self._room:
            if not agent.is_background:  # it may have waited long for its place
                agent.limit_to(self._left().seconds)
            if agent.budget.missing:
                return agent.report(f"the turn had no {agent.budget.missing} left for it")
            if work.in_copy:
                return await self._places.run_in_copy(agent, chosen, emit, work.call_id)
            return await self._places.run(agent, chosen, emit)

    def _tell_model(self, name: str, chosen: ChosenModel) -> None:
        """Tell the person who reads what a sub-agent does, where that is not the session's own model."""
        if chosen.model is self._home.agent.model or chosen.provider == AUTO:
            return
        place = shown_name(chosen.provider, self._home.place.environment.config)
        text = f"{name} works with {chosen.model.name} ({place})."
        self._home.tell(Noticed(level="info", text=text), agent=MAIN, started_by="")

    @staticmethod
    def _routed_task(chosen: ChosenModel) -> RoutedTask | None:
        model = routed(AUTO, chosen.model)
        return None if model is None else RoutedTask(model)

    def _close(self, work: _Work) -> None:
        if self.working.pop(work.agent.name, None) is not None:
            work.purse.settle(work.agent.name, work.agent.used)

    def _start_in_background(self, work: _Work) -> None:
        async def run() -> None:
            try:
                report = await self._work(work)
                self._news.append(report)
            finally:
                self._close(work)

        task = asyncio.create_task(run())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _output(
        self, agents: Sequence[SubAgent], reports: dict[str, Report], refused: Sequence[str]
    ) -> ToolOutput:
        environment = self._home.place.environment
        room = environment.workspace.max_output_chars * 9 // 10
        most = max(room // len(agents), _FEWEST_CHARS)
        told = [
            reports[agent.name].told(most, environment.keep_output)
            if agent.name in reports
            else _BEGUN.format(name=agent.name)
            for agent in agents
        ]
        done = [each for each in reports.values() if each.is_done]
        has_failed = bool(reports) and not done
        changed = dict.fromkeys(name for each in reports.values() for name in each.merged)
        return ToolOutput(
            output="\n\n".join([*told, *refused]),
            summary=_summary(len(agents), len(reports), len(done))
            + (f"; changed {listed(changed)}" if changed else ""),
            display={"success": not has_failed, "agents": [r.display for r in reports.values()]},
            is_error=has_failed,
        )

    def take_news(self) -> str:
        """Return the results of sub-agents in the background that nobody was told of yet; empty where there are none."""
        news, self._news = self._news, []
        environment = self._home.place.environment
        most = environment.workspace.max_output_chars // max(len(news), 1)
        return "\n\n".join(each.told(most, environment.keep_output) for each in news)

    @property
    def in_background(self) -> int:
        """How many sub-agents work in the background."""
        return len(self._background)

    async def wait(self) -> None:
        """Wait until one of those in the background has ended."""
        if self._background:
            await asyncio.wait(self._background, return_when=asyncio.FIRST_COMPLETED)

    def stop(self, name: str = "") -> int:
        """Stop the sub-agent of this name, or all; return how many there were. What they have found so far is their result."""
        agents = [each for each in self.working.values() if name in ("", each.name)]
        for agent in agents:
            agent.stop()
        return len(agents)

    def stop_background(self) -> int:
        """Stop those that work in the background; return how many there were."""
        agents = [each for each in self.working.values() if each.is_background]
        for agent in agents:
            agent.stop()
        return len(agents)

    async def aclose(self) -> None:
        """End all sub-agents, and close the models that are theirs alone."""
        tasks = tuple(self._background)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._places.aclose()
        await self._models.aclose()


def _agent_of(
    name: str, kind: Kind, task: Task, budget: Budget, history: Sequence[Message]
) -> SubAgent:
    make = SubAgent if kind.acp is None else AcpSubAgent
    return make(name, kind, task, budget, history)


def _summary(begun: int, ended: int, done: int) -> str:
    if not ended:
        return f"{plural(begun, 'sub-agent')} in the background"
    words = f"{done} of {plural(begun, 'sub-agent')} done" if begun > 1 else ""
    return words or ("done" if done else "not done")
