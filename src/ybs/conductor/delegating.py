"""What a session has of the conductor before anything is delegated: the turn's limits, and a way to begin."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

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
        self._ordered: tuple[str, int] | None = None

    def order(self, words: str, count: int) -> None:
        """Have so many models do the task of the turn that begins with these words next, and the check choose."""
        self._ordered = words, count

    @cached_property
    def _found(self) -> "Kinds | None":
        """The kinds of sub-agents, where some may be not built in."""
        environment = self._home.environment
        if not environment.has_agent_kinds():
            return None
        from ybs.conductor.kind_files import find_kinds  # most have none

        return find_kinds(environment.loaded, environment.folder)

    def _made(self) -> "Conductor":
        from ybs.conductor.conductor import Conductor  # most sessions delegate nothing
        from ybs.conductor.kinds import BUILT_IN

        return Conductor(self._home, self._found.by_name if self._found else BUILT_IN)

    @property
    def own_kinds(self) -> str:
        """The kinds that are not built in, as the model is told of them."""
        return self._found.told if self._found is not None else ""

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
            await self._attempt(turn, *self._ordered)
        if self.conductor is None:
            return
        self.conductor.begin_turn(turn)
        agent, theirs = self._home.environment.config.agent, self.conductor.committed.steps
        if theirs and turn.steps + theirs >= agent.max_iterations:
            text = (
                f"Stopped after {plural(turn.steps, 'step')}: of the turn's {agent.max_iterations}, sub-agents have used "
                f"the others, or still may."
            )
            raise StopTurn("limit", text, remedies=(Remedy("raise_step_limit"),))
        reserved, most = self.conductor.reserved_usd, agent.max_cost_usd
        spent = self._home.spent_usd() + (turn.usage.cost_usd or 0.0)
        if most is not None and reserved and spent + reserved >= most:
            text = f"Stopped at ${spent:.2f} of ${most:.2f} (max cost): sub-agents at work may still cost ${reserved:.2f}."
            raise StopTurn("limit", text)
        self._tell(turn)

    async def _attempt(self, turn: Turn, words: str, count: int) -> None:
        """Have the attempts made that the person asked for, and tell the model what came of them."""
        self._ordered = None
        first = turn.messages[0]
        if not isinstance(first, UserMessage) or words not in first.words:
            return  # that turn was not begun
        from ybs.tools.builtin.delegate import Task  # few ask for attempts

        if self.conductor is None:
            self.conductor = self._made()
        self.conductor.begin_turn(turn)
        messages = turn.conversation.messages
        before = messages[: len(messages) - len(turn.messages)]
        task, call_id = Task(task=first.words, best_of=count), f"best_of_{len(messages)}"
        try:
            made = await self.conductor.attempt(task, call_id, before, is_persons=True)
        except ToolError as error:
            turn.emit(Noticed(level="warning", text=NO_ATTEMPTS.format(error=error)))
            return
        told = NONE_PASSED if made.is_error else ONE_PASSED
        turn.say(UserMessage.of(told.format(output=made.output), origin="context"))

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
