"""One sub-agent: an agent with less than the main one has, from its task to its result."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from time import monotonic
from typing import Any, Final

from msgspec.structs import replace

from ybs.agent.build import AgentSpec, BuiltAgent
from ybs.agent.environment import ToolEnvironment
from ybs.agent.model_choice import is_small, size_of
from ybs.agent.prompt_context import PromptContext
from ybs.agent.toolbox import ToolSet
from ybs.conductor.budget import Budget, Used
from ybs.conductor.contents import moved_text
from ybs.conductor.home import Home, Workplace
from ybs.conductor.kinds import BUILT_IN, Kind
from ybs.conductor.models import ChosenModel
from ybs.conductor.result import Progress, Report, problem_of
from ybs.context.prompt import system_prompt
from ybs.core.conversation import Conversation
from ybs.core.errors import StopTurn
from ybs.core.events import Emit, Event
from ybs.core.messages import Message, ToolCall, UserMessage
from ybs.core.ports import Guard, Model, Tool, Turn
from ybs.core.to_its_end import to_its_end
from ybs.security.policy.bound import Bound
from ybs.small_models.unseen import HidingModel
from ybs.tools.builtin.delegate import Task
from ybs.tools.builtin.repo_map import RepoMapTool
from ybs.tools.builtin.skill import SkillTool

PART: Final = (
    "# Your part\n"
    "You are a sub-agent: another agent has given you the task that follows. It reads your last answer and nothing else of what you say, see and do; "
    "the person does not read it. So let that answer stand by itself, and keep it short. You cannot ask anybody: where something is unclear, "
    "take what is most likely and say so."
)


class SubAgent:
    """A sub-agent at work. Its events go to `emit`; what they add up to is its `progress`. It may know what was said before, its `history`.

    One that is another agent does its `_work` by itself (`ybs.conductor.acp.agent`), and no model is chosen for it.
    """

    def __init__(
        self, name: str, kind: Kind, task: Task, budget: Budget, history: Sequence[Message] = ()
    ) -> None:
        self.name, self.kind, self.task, self.budget = name, kind, task, budget
        self.is_background = task.background
        self._history = tuple(history)
        self.progress = Progress()
        self.started_at = monotonic()
        self._agent: BuiltAgent | None = None
        self._running: asyncio.Task[Any] | None = None
        self._is_stopped = False

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped."""
        return self._is_stopped

    @property
    def used(self) -> Used:
        """What it has used so far."""
        return self.progress.spent

    def limit_to(self, seconds: float | None) -> None:
        """Have it work no longer than this."""
        self.budget = self.budget.within(Budget(seconds=seconds))

    def wait(self) -> None:
        """Note that it waits for its turn in this task, so that a stop ends that."""
        self._running = asyncio.current_task()

    def stop(self) -> None:
        """End it; what it has found so far is its result."""
        self._is_stopped = True
        if self._running is not None:
            self._running.cancel()

    def paused(self) -> AbstractContextManager[None]:
        """Stop its clock, as long as the person is asked."""
        return nullcontext() if self._agent is None else self._agent.paused()

    async def run(
        self, home: Home, place: Workplace, chosen: ChosenModel | None, emit: Emit
    ) -> Report:
        """Work until the task is done or the budget ends. Whatever goes wrong is in the report; only cancellation passes."""
        self.started_at = monotonic()
        self._running = asyncio.current_task()

        def tell(event: Event) -> None:
            self.progress.add(event)
            emit(event)

        try:
            if self._is_stopped:
                return self.report("it was stopped before it began")
            await self._work(home, place, chosen, tell)
        except asyncio.CancelledError:
            if not self._is_stopped:
                raise
            return self.report("it was stopped")
        except Exception as error:  # one that breaks must not take the others with it
            return self.report(problem_of(error))
        finally:
            self._running = None
        return self.report(self._problem())

    async def _work(
        self, home: Home, place: Workplace, chosen: ChosenModel | None, tell: Emit
    ) -> None:
        assert chosen is not None  # noqa: S101 - only another agent has none
        own = narrowed(place.environment, self.kind, self.task, self.budget)
        agent = self._agent = self._built(home, replace(place, environment=own), chosen, tell)
        try:
            await agent.toolbox.open(tell)
            await agent.run(self._words(home, own))
        finally:
            self._agent = None
            await to_its_end(_close(agent, own))

    def _built(self, home: Home, place: Workplace, chosen: ChosenModel, tell: Emit) -> BuiltAgent:
        own = place.environment
        is_short = is_small(own.host, chosen.provider, chosen.model, own.config)

        def next_tokens(turn: Turn) -> int:
            messages = turn.conversation.messages
            return (
                agent.window.size_of(turn.conversation.system, messages) + chosen.model.max_tokens
            )

        def reads_only(call: ToolCall) -> bool:
            return agent.toolbox.is_read_only(call)

        support: Callable[[Model], Model] = HidingModel
        endings = tuple[Guard, ...]()
        if is_short:
            from ybs.small_models.support import supported  # for small models only

            support, endings = supported(
                home.context.brief, own.roots, reads_only, billions=size_of(chosen.model)
            )
        spec = AgentSpec(
            name=self.name,
            provider=chosen.provider,
            model=chosen.model,
            conversation=Conversation(
                _system(home, own, self.kind, is_short=is_short), () if is_short else self._history
            ),
            call_ids=home.call_ids,
            around={"small models": support},
            guards={
                "small models": endings,
                "budget": [
                    Spending(self.budget, next_tokens),
                    LastWord(own.config.agent.max_iterations),
                ],
                "user hooks": home.hook_guards(self.name, self.kind.name),
            },
            hooks=place.hooks,
            tools=ToolSet(
                own=tuple(_own_tools(own, home.context)), foreign=place.tools, is_short=is_short
            ),
            toolboxes=place.toolboxes,
            before_compaction=home.before_compaction,
        )
        agent = BuiltAgent(spec, own, tell)
        return agent

    async def _words(self, home: Home, own: ToolEnvironment) -> UserMessage:
        words = self.task.task.strip()
        if self.task.context:
            words += f"\n\n<context>\n{self.task.context}\n</context>"
        return UserMessage.of(_moved(words, home, own))

    def _problem(self) -> str:
        end = self.progress.end
        if end is None or end.reason == "done":
            return "" if self.progress.said else "it ended without an answer"
        return end.message or f"its turn ended early ({end.reason})"

    def report(self, problem: str = "") -> Report:
        """Return how far it came; `problem` says why it is not done."""
        progress = self.progress
        return Report(
            name=self.name,
            kind=self.kind.name,
            task=self.task.task,
            text=progress.said,
            problem=problem,
            used=self.used,
            seconds=monotonic() - self.started_at,
            files=tuple(progress.files),
            calls=tuple(progress.calls),
        )


def narrowed(
    environment: ToolEnvironment, kind: Kind, task: Task, budget: Budget
) -> ToolEnvironment:
    """Return the environment of a sub-agent: of its parent's tools those of its kind and of its task, and its budget for limits."""
    loaded = environment.loaded
    limits = replace(
        loaded.config.agent,
        max_iterations=budget.steps or loaded.config.agent.max_iterations,
        max_seconds=budget.seconds,
        max_cost_usd=budget.cost_usd,
    )
    config = replace(loaded.config, agent=limits)
    only = kind.only_tools(task.tools)
    bound = Bound(kind.mode) if kind.mode is not None else None
    return environment.for_sub_agent(replace(loaded, config=config), bound, only)


def _own_tools(own: ToolEnvironment, context: PromptContext) -> Iterator[Tool]:
    yield RepoMapTool(own.workspace, context.map_text)
    if own.has_skills() and own.skills.offered:
        yield SkillTool(own.workspace, own.skills, own.open_skill)


def _system(home: Home, own: ToolEnvironment, kind: Kind, *, is_short: bool) -> str:
    """Return what the main agent is told of rules, place and documents, and the part of the sub-agent.

    Of a small model each sentence more takes it from its task: it is told no part, and the words of kinds that are not built in.
    """
    told = home.conversation.system
    if is_short != home.context.is_short:
        sections = home.context.sections
        told = system_prompt(own.folder, today=date.today(), is_short=is_short, sections=sections)
    if is_short:
        parts = [told] if kind in BUILT_IN.values() else [told, kind.prompt]
    else:
        parts = [told, PART, kind.prompt]
    return _moved("\n\n".join(parts), home, own)


def _moved(text: str, home: Home, own: ToolEnvironment) -> str:
    """Return a text in which the project is where the sub-agent works, be it a copy."""
    return moved_text(text, home.place.environment.folder, own.folder)


async def _close(agent: BuiltAgent, own: ToolEnvironment) -> None:
    """Close the tools and end the commands in the background."""
    await agent.toolbox.aclose()
    await own.workspace.shells.aclose()


LAST_WORD: Final = (
    "Your budget ends with your next answer. Call no tool: answer now with what you have found and done, "
    "and say what is missing."
)


class Spending(Guard):
    """Ends a turn before a request that could use more tokens or money than the budget has.

    `next_tokens` says how many tokens the next request and its answer may have. What an answer will cost is not known before;
    it is taken to be as dear as the dearest so far.
    """

    def __init__(self, budget: Budget, next_tokens: Callable[[Turn], int]) -> None:
        self._budget, self._next_tokens = budget, next_tokens
        self._before, self._dearest = 0.0, 0.0

    async def before_step(self, turn: Turn) -> None:
        """Raise StopTurn where the budget has no room for another request."""
        used, budget = Used.of(turn.steps, turn.usage), self._budget
        self._dearest = max(self._dearest, used.cost_usd - self._before)
        self._before = used.cost_usd
        if budget.cost_usd is not None and used.cost_usd + self._dearest > budget.cost_usd:
            text = f"its budget of ${budget.cost_usd:.4f} has no room for another answer"
            raise StopTurn("limit", text)
        if budget.tokens is None:
            return
        wanted = self._next_tokens(turn)
        if used.tokens + wanted > budget.tokens:
            text = (
                f"its budget of {budget.tokens:,} tokens has no room for another request, "
                f"which may take {wanted:,} with its answer"
            )
            raise StopTurn("limit", text)


class LastWord(Guard):
    """Says before the last request that there will be no other one, so that what was found is not lost."""

    def __init__(self, most_steps: int) -> None:
        self._most_steps = most_steps

    async def before_step(self, turn: Turn) -> None:
        """Say it once."""
        if turn.steps == self._most_steps - 1:
            turn.say(UserMessage.of(LAST_WORD, origin="guard"))
