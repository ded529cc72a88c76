"""Delegation in a session: the turn's limits, and the conductor, made at the first sub-agent."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ybs.conductor.home import Home
from ybs.core.errors import StopTurn, ToolError, YbsError
from ybs.core.events import Noticed
from ybs.core.messages import UserMessage
from ybs.core.ports import Guard, ToolOutput, Turn
from ybs.core.remedies import Remedy
from ybs.core.wording import plural

ONE_PASSED: Final = (
    "Several models have done this task already, side by side in copies of the project, and a check has chosen one; its work is in the project now. "
    "Do not do the task again: tell the person in a few lines what was changed.\n{output}"
)
NONE_PASSED: Final = (
    "Several models have tried this task, side by side in copies of the project. None of them passed the check, so the project is "
    "unchanged. Say what went wrong, and go on with the task yourself if you see how.\n{output}"
)
NO_ATTEMPTS: Final = "No attempts were made side by side, and one model does the task. {error}"
DONE: Final = "A sub-agent has done this already; its result follows. Do not do it again: tell the person in a few lines what came of it.\n{output}"
NOT_DONE: Final = "A sub-agent has tried this and did not come to its end. Say what came of it, and go on yourself if you see how.\n{output}"
NOT_BEGUN: Final = "No sub-agent could begin, and the model does it itself: {error}"

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ybs.conductor.conductor import Conductor
    from ybs.conductor.kind_files import Kinds
    from ybs.tools.builtin.delegate import Task


class Delegating(Guard):
    """Makes the conductor with the first task. As a guard of the main agent it counts its sub-agents' requests as the turn's, and tells what came of those in the background.

    `waits`: a turn does not end before those in the background have, as nobody would hear of them.
    """

    def __init__(self, home: Home, *, waits: bool) -> None:
        self._home, self._waits = home, waits
        #: None before anything was delegated.
        self.conductor: Conductor | None = None
        self._turn: Turn | None = None
        self._ordered: tuple[str, Task] | None = None

    def order(self, words: str, task: "Task") -> None:
        """Have a sub-agent do a task when the turn begins whose first words these are; with `best_of` several models do that turn's words, and the check chooses."""
        self._ordered = words, task

    @cached_property
    def _found(self) -> "Kinds | None":
        """The kinds of sub-agents, where some may be not built in."""
        environment = self._home.place.environment
        if not environment.has_agent_kinds():
            return None
        from ybs.conductor.kind_files import find_kinds  # most have none

        found = find_kinds(environment.loaded, environment.folder)
        for each in found.problems:
            if each.is_told:
                environment.tell_left_out(
                    f"The kind of sub-agents in {each.place} is left out: {each.why}."
                )
        return found

    def _made(self) -> "Conductor":
        from ybs.conductor.conductor import Conductor  # most sessions delegate nothing
        from ybs.conductor.kinds import BUILT_IN

        return Conductor(self._home, self._found.by_name if self._found else BUILT_IN)

    @property
    def own_kinds(self) -> str:
        """The kinds that are not built in, as the model is told of them."""
        return self._found.told if self._found is not None else ""

    def kind_name(self, name: str) -> str:
        """Return the whole name of the kind that is meant; of an unknown one what was given."""
        from ybs.conductor.kinds import BUILT_IN, kind_named

        kind = kind_named(self._found.by_name if self._found else BUILT_IN, name)
        return kind.name if kind is not None else name

    async def delegate(self, tasks: "Sequence[Task]", call_id: str) -> ToolOutput:
        """Have sub-agents do the tasks of a call. Raises ToolError where none can be begun."""
        if self.conductor is None:
            self.conductor = self._made()
        if self._turn is not None:
            self.conductor.begin_turn(self._turn)
        return await self.conductor.delegate(tasks, call_id)

    async def before_step(self, turn: Turn) -> None:
        """Add the news from the background, and raise StopTurn where the turn and its sub-agents have reached the limit of steps."""
        self._turn = turn
        if self._ordered is not None:
            await self._begin(turn, *self._ordered)
        if self.conductor is None:
            return
        self.conductor.begin_turn(turn)
        agent, theirs = self._home.place.environment.config.agent, self.conductor.committed.steps
        if theirs and turn.steps + theirs >= agent.max_iterations:
            text = (
                f"Stopped after {plural(turn.steps, 'step')}: of the turn's {agent.max_iterations}, sub-agents have used "
                f"the others, or still may."
            )
            raise StopTurn("limit", text, remedies=(Remedy("raise_step_limit"),))
        reserved, most = self.conductor.reserved_usd, agent.max_cost_usd
        spent = self._home.spent_usd + (turn.usage.cost_usd or 0.0)
        if most is not None and reserved and spent + reserved >= most:
            text = f"Stopped at ${spent:.2f} of ${most:.2f} (max cost): sub-agents at work may still cost ${reserved:.2f}."
            raise StopTurn("limit", text)
        self._tell(turn)

    async def _begin(self, turn: Turn, words: str, task: "Task") -> None:
        """Have the task done that the person asked for, and tell the model what came of it."""
        self._ordered = None
        first = turn.messages[0]
        if not isinstance(first, UserMessage) or words not in first.words:
            return  # that turn was not begun
        if self.conductor is None:
            self.conductor = self._made()
        self.conductor.begin_turn(turn)
        is_attempt = task.best_of > 1
        try:
            if is_attempt:
                told = await self._attempted(self.conductor, turn, first.words, task)
            else:
                made = await self.conductor.delegate(
                    [task], f"fork_{len(turn.conversation.messages)}"
                )
                told = (NOT_DONE if made.is_error else DONE).format(output=made.output)
        except ToolError as error:
            if is_attempt:
                turn.emit(Noticed(level="warning", text=NO_ATTEMPTS.format(error=error)))
                return
            turn.emit(Noticed(level="warning", text=NOT_BEGUN.format(error=error)))
            told = task.task
        turn.say(UserMessage.of(told, origin="context"))

    @staticmethod
    async def _attempted(conductor: "Conductor", turn: Turn, words: str, task: "Task") -> str:
        messages = turn.conversation.messages
        before = messages[: len(messages) - len(turn.messages)]
        whole, call_id = replace(task, task=words), f"best_of_{len(messages)}"
        made = await conductor.attempt(whole, call_id, before)
        return (NONE_PASSED if made.is_error else ONE_PASSED).format(output=made.output)

    async def wants_more(self, turn: Turn) -> bool:
        """Go on where there is something new; where nobody could be told later, wait for it."""
        if self.conductor is None:
            return False
        if self._waits:
            await self.conductor.wait()
        return self._tell(turn)

    def _tell(self, turn: Turn) -> bool:
        news = self.conductor.take_news() if self.conductor is not None else ""
        if news:
            turn.say(UserMessage.of(f"From the background:\n{news}", origin="context"))
        return bool(news)

    def check(self) -> None:
        """Raise YbsError where sub-agents work in the background: they may use the session's model."""
        if self.conductor is not None and (count := self.conductor.in_background):
            working = plural(count, "sub-agent")
            raise YbsError(
                f"{working} still at work in the background, so the model cannot be changed now. Wait for the result, or interrupt it."
            )

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the clocks of all sub-agents, as long as the person is asked."""
        with ExitStack() as stack:
            for agent in self.conductor.working.values() if self.conductor else ():
                stack.enter_context(agent.paused())
            yield

    def cancel(self) -> bool:
        """Stop what works in the background; return whether there was anything."""
        return self.conductor is not None and self.conductor.stop_background() > 0

    async def aclose(self) -> None:
        """End all sub-agents."""
        if self.conductor is not None:
            await self.conductor.aclose()
            self.conductor = None
