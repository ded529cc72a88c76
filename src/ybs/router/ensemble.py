"""The cascade: a check after a turn that changed files; where it fails, a stronger model goes on, if that is worth its price."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from ybs.config.sections import CascadeSettings
from ybs.core.events import Noticed
from ybs.core.messages import UserMessage
from ybs.core.ports import Guard, Turn
from ybs.router.arms import Arm
from ybs.router.feedback import CHECKED
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
        signal = Signal(name="check", reward=float(found.is_good), weight=CHECKED)
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
