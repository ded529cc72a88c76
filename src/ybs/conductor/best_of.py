"""Best of n: several models do the same task side by side, each in a copy of the project, and a check chooses whose work is taken over."""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ybs.agent.model_choice import AUTO, routed
from ybs.agent.routed import Checked, run_check
from ybs.conductor.home import Home
from ybs.conductor.models import ChosenModel
from ybs.conductor.overlay import Overlay, Seen
from ybs.conductor.result import Report
from ybs.conductor.sub_agent import SubAgent
from ybs.conductor.workplaces import Workplaces
from ybs.core.cutting import last_words
from ybs.core.envelope import MAIN
from ybs.core.errors import ToolError, YbsError
from ybs.core.events import Emit, Noticed
from ybs.core.wording import plural
from ybs.router.feedback import CHECKED, STUMBLED
from ybs.router.model import RoutedModel
from ybs.router.store import Signal
from ybs.tools.builtin.delegate import Task

NO_CHECK: Final = (
    "Of several attempts only a check can choose, and none is set. Set router.cascade.check to a command that fails where the work is "
    "not right, such as `make test`."
)
NOT_NOW: Final = "The check may not run now ({why}), so no attempts are made."
NO_MODEL: Final = "No model of the router can be asked now: none is suitable, their pools have no room, or the turn has no money left for one request."
_NOT_TAKEN: Final = "Its changes were not merged."
_MOST_OUTPUT: Final = 1_500  # characters of a check that failed, for each attempt


class Attempt(Struct, kw_only=True):
    """What one model made of the task: its copy, what was `seen` to be changed there in so many `lines`, and how the check ended there."""

    agent: SubAgent
    model: RoutedModel
    emit: Emit
    report: Report
    overlay: Overlay | None = None
    seen: Seen = ([], [])
    lines: int = 0
    checked: Checked | None = None

    @property
    def arm(self) -> str:
        """The model that did it."""
        return self.model.arm.name

    @property
    def has_passed(self) -> bool:
        """Whether it changed something, and the check accepts it."""
        return bool(self.seen[0]) and self.checked is not None and self.checked.is_good

    @property
    def outcome(self) -> str:
        """What came of it, in a few words."""
        if self.agent.is_stopped:
            return "was stopped"
        if self.checked is None:
            return "changed nothing" if self.report.is_done else f"ended: {self.report.problem}"
        ended = "passed" if self.checked.is_good else "failed"
        return f"{ended} the check with {plural(self.lines, 'changed line')}"


def best_of(attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the attempt that passed the check; of several the one that changed the fewest lines, and then the cheapest."""
    passed = [each for each in attempts if each.has_passed]
    return min(passed, key=lambda each: (each.lines, each.report.used.cost_usd), default=None)


def to_attempt(tasks: Sequence[Task]) -> Task | None:
    """Return the task that several models are to do. Raises ToolError where there are others beside it."""
    found = next((task for task in tasks if task.best_of > 1), None)
    if found is not None and len(tasks) > 1:
        raise ToolError("Give a task with `best_of` alone.")
    return found


def check_setting(home: Home) -> None:
    """Raise ToolError where no check can choose."""
    environment = home.place.environment
    if not (check := environment.config.router.cascade.check):
        raise ToolError(NO_CHECK)
    if environment.permissions.is_dry_run:
        raise ToolError(NOT_NOW.format(why="nothing is run in a dry run"))
    if environment.policy.mode == "plan":
        raise ToolError(NOT_NOW.format(why="the mode plan changes nothing"))
    if entry := environment.policy.blocked(check):
        raise ToolError(NOT_NOW.format(why=f"{entry!r} in safety.blocked_commands"))


def fewer_than(wanted: int, count: int) -> str:
    """Return a text that says that fewer attempts are made than were wanted; empty where they are not."""
    if count == wanted:
        return ""
    return f"{count} of {wanted} attempts are made: no other model is suitable, has room in its pool, and can be paid by this turn."


def summary_of(attempts: Sequence[Attempt], best: Attempt | None) -> str:
    """Return one line that says what came of the attempts."""
    tried = plural(len(attempts), "attempt")
    if best is None:
        return f"none of {tried} passed the check; the project is unchanged"
    return f"{best.agent.name} ({best.arm}) is the best of {tried}"


async def drop(model: RoutedModel, why: str) -> None:
    """Record no outcome for this decision."""
    if (decision := model.end()) is not None:
        await model.routing.void(decision.id, why)


class BestOf:
    """Has the attempts of one task made, checks them, takes the best one over, and credits each model for its own."""

    def __init__(self, home: Home, places: Workplaces, call_id: str) -> None:
        self._home, self._places, self._call_id = home, places, call_id
        self._checking = asyncio.Lock()  # two of them at once might want the same port

    async def run(
        self, attempts: Sequence[Attempt], room: asyncio.Semaphore, fewer: str
    ) -> Attempt | None:
        """Make the attempts, each when there is `room` for it; return the one that was taken over. The report of each says what came of it.

        The person is told if there are `fewer` of them than were wanted.
        """
        if fewer:
            self._tell(fewer)
        try:
            async with asyncio.TaskGroup() as group:
                for each in attempts:
                    group.create_task(self._make(each, room))
            best = best_of(attempts)
            if best is not None and best.overlay is not None:
                best.report = await self._places.merged(
                    best.agent, best.report, best.overlay, self._call_id, best.seen
                )
            for each in attempts:
                self._note(each, is_best=each is best)
                await self._credit(each, best)
            if best is None:
                self._tell(f"{summary_of(attempts, None).capitalize()}.")
            return best
        finally:
            for each in attempts:
                await drop(each.model, "it was stopped")  # where it was not credited
                if each.overlay is not None:
                    await each.overlay.aclose()

    async def _make(self, attempt: Attempt, room: asyncio.Semaphore) -> None:
        agent, model = attempt.agent, attempt.model
        async with room:
            try:
                attempt.overlay = overlay = await self._places.copy_for(agent)
            except YbsError as error:
                attempt.report = agent.report(str(error))
                return
            chosen = ChosenModel(model.provider, model)
            attempt.report = await self._places.run_in(overlay, agent, chosen, attempt.emit)
        if model.decision is None or agent.is_stopped:
            return  # it could not answer
        async with self._checking:
            try:
                attempt.seen = await overlay.look()  # what the check leaves is not the model's
                attempt.lines = await asyncio.to_thread(overlay.lines_in, attempt.seen)
                if attempt.seen[0]:
                    settings = self._home.place.environment.config.router.cascade
                    attempt.checked = await run_check(settings, overlay.environment)
            except (YbsError, OSError) as error:
                attempt.report.problem = f"its work could not be checked: {error}"

    def _note(self, attempt: Attempt, *, is_best: bool) -> None:
        report, checked = attempt.report, attempt.checked
        said = f"{attempt.agent.name} ({attempt.arm}) {attempt.outcome}"
        said += "; its work is taken over." if is_best else "."
        self._tell(said)
        notes = [f"It {attempt.outcome}."]
        if not is_best:
            report.files = ()
            notes += [_NOT_TAKEN] if attempt.seen[0] else []
            if checked is not None and not checked.is_good:
                notes.append(f"The check printed:\n{last_words(checked.output, _MOST_OUTPUT)}")
        report.notes = (*notes, *report.notes)

    def _tell(self, text: str) -> None:
        self._home.tell(Noticed(level="info", text=text), agent=MAIN, started_by="")

    async def _credit(self, attempt: Attempt, best: Attempt | None) -> None:
        """Note what a model's own work showed. One that changed nothing, where another one did what was asked, did not do it."""
        if attempt.agent.is_stopped:
            return
        decision, routing = attempt.model.end(), attempt.model.routing
        if decision is None:
            return
        signal = None
        if attempt.checked is not None:
            reward = float(attempt.checked.is_good)
            signal = Signal("check", reward, CHECKED)
        elif best is not None and attempt.report.is_done:
            signal = Signal("changed nothing", 0.0, STUMBLED)
        if signal is not None:
            await routing.label(decision.id, signal)
        await routing.settle_decision(decision.id)
        main = routed(AUTO, self._home.agent.model)
        if attempt is best and main is not None:
            main.routing.feedback.credit(decision.id)
