"""The turns of a session whose model is routed: the model picked before each, the agent fitted to it, and what came of it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import Struct

from ybs.agent.environment import ToolEnvironment
from ybs.agent.hooks import TurnHook
from ybs.config.sections import CascadeSettings
from ybs.core.errors import ModelError, ToolError
from ybs.core.events import Emit, Event, Noticed, TurnFinished
from ybs.core.messages import UserMessage
from ybs.core.ports import Guard, Turn
from ybs.router.bandit import Arm
from ybs.router.classifier import Features
from ybs.router.feedback import CHECKED, Feedback
from ybs.router.model import RoutedModel
from ybs.router.store import Signal

FAILED = "The check `{command}` failed after your changes. Find out why and fix it.\n\n{output}"


class Checked(Struct, frozen=True, kw_only=True):
    """How a check ended, and what it printed."""

    is_good: bool
    output: str


class CascadeGuard(Guard):
    """Runs the check when the model is done, and lets a stronger one go on where it fails. Each is credited for what its own work showed."""

    def __init__(
        self,
        model: RoutedModel,
        settings: CascadeSettings,
        check: Callable[[], Awaitable[Checked | None]],
    ) -> None:
        self._model, self._settings, self._check = model, settings, check
        self._turn: Turn | None = None
        self._went = 0

    async def wants_more(self, turn: Turn) -> bool:
        """Return whether a stronger model goes on."""
        if turn is not self._turn:
            self._turn, self._went = turn, 0
        routing, decision = self._model.routing, self._model.decision
        if decision is None or not routing.feedback.has_edits:
            return False
        found = await self._check()
        if found is None:
            return False  # it could not be run
        signal = Signal("check", float(found.is_good), CHECKED)
        await routing.label(decision.id, signal)
        await routing.settle_decision(decision.id)
        if found.is_good or not await self._escalate(turn):
            return False
        words = FAILED.format(command=self._settings.check, output=found.output)
        turn.say(UserMessage.of(words, origin="guard"))
        return True

    async def _escalate(self, turn: Turn) -> bool:
        """Have a stronger model go on; say why where none does."""
        why = f"The check {self._settings.check!r} failed"
        if self._went >= self._settings.most:
            turn.emit(Noticed(level="warning", text=f"{why}, and no other model is asked again."))
            return False
        worth = frozenset(arm.name for arm in self._worthwhile())
        others = frozenset(self._model.routing.arms) - worth
        if not worth or not await self._model.escalate(others):
            turn.emit(
                Noticed(level="warning", text=f"{why}, and no stronger model is worth its price.")
            )
            return False
        self._went += 1
        return True

    def _worthwhile(self) -> list[Arm]:
        """Return the arms that are more likely to succeed than the one in use, and by more than they cost."""
        routing, decision, used = self._model.routing, self._model.decision, self._model.arm
        kind = decision.kind if decision is not None else "other"

        def chance(arm: Arm) -> float:
            return routing.learner.belief(kind, arm).mean

        def gain(arm: Arm) -> float:
            return chance(arm) * self._settings.usd_per_success

        size = self._model.last_size
        return [
            arm
            for arm in routing.arms.values()
            if chance(arm) > chance(used) and gain(arm) > routing.estimate(arm, size).usd
        ]


class RoutedTurns(TurnHook):
    """Picks the model before each turn, has the agent rebuilt for another one (`fit`), and gathers signals of how turns went.

    `mask` takes the secrets out of words that a model is to read that sorts requests.
    """

    name = "the router"

    def __init__(
        self,
        model: RoutedModel,
        tokens: Callable[[], int],
        fit: Callable[[], Awaitable[None]],
        mask: Callable[[str], str],
    ) -> None:
        self.model, self._tokens, self._fit, self._mask = model, tokens, fit, mask
        self.feedback = model.routing.feedback
        self._words = ""
        self._turns = 0
        self._fitted = model.arm

    def expect(self, words: str) -> None:
        """Take the words that the next turn begins with."""
        self._words = words

    def add(self, event: Event) -> None:
        """Take an event of the main agent."""
        self.feedback.add(event)

    async def before_turn(self, emit: Emit) -> None:
        """Pick the model. Where none can be used, the first request says so."""
        del emit
        self.feedback.begin(self._words)
        await self.model.routing.note_feedback()
        self._turns += 1
        words = self._mask(self._words) if self.model.routing.shows_words else self._words
        features = Features.of(words, tokens=self._tokens(), turn=self._turns)
        with suppress(ModelError):
            await self.model.begin(features)
        await self._fit_to_arm()

    async def after_turn(self) -> None:
        """Note what the turn showed."""
        self.model.end()
        self.feedback.end()
        await self._fit_to_arm()  # another one may have gone on in the middle of the turn
        await self.model.routing.note_feedback()

    async def _fit_to_arm(self) -> None:
        if self.model.arm is not self._fitted:
            self._fitted = self.model.arm
            await self._fit()

    async def aclose(self) -> None:
        """Settle what is still open."""
        self.feedback.close()
        await self.model.routing.note_feedback()


class RoutedTask:
    """The task of a sub-agent whose model is routed: its one turn, and what came of it. Nobody says more of it later."""

    def __init__(self, model: RoutedModel) -> None:
        self._model, self._feedback = model, Feedback()

    def add(self, event: Event, *, is_stopped: bool) -> None:
        """Take an event of the sub-agent. Ending with the turn of the main agent says nothing of its model; being stopped by name does."""
        if isinstance(event, TurnFinished) and event.reason == "interrupted" and not is_stopped:
            return
        self._feedback.add(event)

    async def end(self) -> None:
        """Note what the task showed; that counts from now on."""
        self._model.end()
        self._feedback.close()
        await self._model.routing.note_feedback(self._feedback)


#: The end of what a check printed says why it failed; so many characters of it are told.
_TAIL = 4_000


def cascade(
    model: RoutedModel, settings: CascadeSettings, environment: ToolEnvironment
) -> CascadeGuard:
    """Return the guard that checks the work of a routed model."""
    return CascadeGuard(model, settings, lambda: run_check(settings, environment))


async def run_check(settings: CascadeSettings, environment: ToolEnvironment) -> Checked | None:
    """Run the check in an environment; None where it may not be run. Nobody is asked: the person's own settings name the command."""
    from ybs.tools.builtin.run_shell import RunShell, RunShellArguments

    if environment.permissions.is_dry_run or environment.policy.mode == "plan":
        return None
    if environment.policy.blocked(settings.check):
        return None
    shell = RunShell(environment.workspace)
    arguments = RunShellArguments(command=settings.check, timeout=settings.timeout_seconds)
    try:
        shell.preview(arguments)
        ran = await shell.run(arguments, lambda _text: None)
    except ToolError as error:
        return Checked(is_good=False, output=str(error))
    return Checked(is_good=not ran.is_error, output=ran.output[-_TAIL:])
