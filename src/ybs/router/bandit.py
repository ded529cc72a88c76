"""Learners: how good each arm is at each kind of task, from what came of earlier choices (ADR 0033)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import exp, log
from random import Random
from typing import Protocol

from msgspec import Struct, field

from ybs.router.arms import Arm
from ybs.router.classifier import TaskKind


class Cell(Struct):
    """Weighed successes and failures of an arm at one kind of task, as they were at that kind's step `at`."""

    s: float = 0.0
    f: float = 0.0
    at: float = 0.0


class Shift(Struct):
    """How far results lie from the prior, in logits: the sum `e` over the weight `v`, as they were at the step `at`."""

    e: float = 0.0
    v: float = 0.0
    at: float = 0.0


class Increment(Struct, frozen=True, kw_only=True):
    """What one result adds to a state: to a cell, to its arm's shift, and to its kind's (`te`, `tv`)."""

    kind: str
    arm: str
    weight: float = 1.0
    s: float = 0.0
    f: float = 0.0
    e: float = 0.0
    v: float = 0.0
    te: float = 0.0
    tv: float = 0.0


class LearnerState(Struct, kw_only=True):
    """All that a learner knows. A step is one result of full weight: `steps` counts all, `kind_steps` those of a kind."""

    gamma: float = 0.995
    steps: float = 0.0
    kind_steps: dict[str, float] = field(default_factory=dict)
    cells: dict[str, dict[str, Cell]] = field(default_factory=dict)
    arms: dict[str, Shift] = field(default_factory=dict)
    kinds: dict[str, Shift] = field(default_factory=dict)

    def add(self, increment: Increment) -> None:
        """Take a increment in: the steps advance by its weight, older numbers fade, its own are added."""
        kind, arm = increment.kind, increment.arm
        self.steps += increment.weight
        step = self.kind_steps[kind] = self.kind_steps.get(kind, 0.0) + increment.weight
        cell = self.cells.setdefault(kind, {}).setdefault(arm, Cell(at=step))
        kept = self.gamma ** (step - cell.at)
        cell.s, cell.f, cell.at = cell.s * kept + increment.s, cell.f * kept + increment.f, step
        self._shift(self.arms, arm, increment.e, increment.v)
        self._shift(self.kinds, kind, increment.te, increment.tv)

    def counts(self, kind: str, arm: str) -> tuple[float, float]:
        """Return successes and failures, faded to now."""
        cell = self.cells.get(kind, {}).get(arm)
        if cell is None:
            return 0.0, 0.0
        kept = self.gamma ** (self.kind_steps[kind] - cell.at)
        return cell.s * kept, cell.f * kept

    def arm_shift(self, arm: str) -> tuple[float, float]:
        """Return the sum and the weight of an arm's shift, faded to now."""
        return self._faded(self.arms.get(arm))

    def kind_shift(self, kind: str) -> tuple[float, float]:
        """Return the sum and the weight of a kind's shift, faded to now."""
        return self._faded(self.kinds.get(kind))

    def _shift(self, shifts: dict[str, Shift], name: str, e: float, v: float) -> None:
        shift = shifts.setdefault(name, Shift(at=self.steps))
        kept = self.gamma ** (self.steps - shift.at)
        shift.e, shift.v, shift.at = shift.e * kept + e, shift.v * kept + v, self.steps

    def _faded(self, shift: Shift | None) -> tuple[float, float]:
        if shift is None:
            return 0.0, 0.0
        kept = self.gamma ** (self.steps - shift.at)
        return shift.e * kept, shift.v * kept


class Belief(Struct, frozen=True):
    """What is believed of an arm's chance of success: a Beta distribution."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """The expected chance."""
        return self.alpha / (self.alpha + self.beta)


class Learner(Protocol):
    """Scores arms for a kind of task, and learns from what came of a choice."""

    def scores(self, kind: TaskKind, arms: Sequence[Arm], rng: Random) -> dict[str, float]:
        """Return a score for each of the arms, of which there is one at least, by name: a chance of success, drawn or estimated."""
        ...

    def learn(self, kind: TaskKind, arm: Arm, reward: float, weight: float = 1.0) -> Increment:
        """Learn that an arm's result at a kind of task was worth `reward` (0 to 1); return what that added."""
        ...

    @property
    def has_learned(self) -> bool:
        """Whether the scores say more than the catalogue does."""
        ...


class Thompson(Learner, ABC):
    """Draws each arm's chance from what is believed of it. A subclass says what is believed, and what a result adds.

    The draw is from a belief that is `temper` times as narrow: so it explores less than the textbook's does, which explores
    too much where requests are few. What is known is `state`; another process's may be put in its place.
    """

    def __init__(self, *, gamma: float = 0.995, temper: float = 4.0) -> None:
        self.state = LearnerState(gamma=gamma)
        self._temper = temper

    @property
    def has_learned(self) -> bool:
        """Whether any result was learned from."""
        return self.state.steps > 0

    def scores(self, kind: TaskKind, arms: Sequence[Arm], rng: Random) -> dict[str, float]:
        """Return a drawn chance of success for each arm."""
        drawn: dict[str, float] = {}
        for arm in arms:
            belief = self.belief(kind, arm)
            drawn[arm.name] = rng.betavariate(
                belief.alpha * self._temper, belief.beta * self._temper
            )
        return drawn

    def learn(self, kind: TaskKind, arm: Arm, reward: float, weight: float = 1.0) -> Increment:
        """Add a result to the state."""
        increment = self.increment(kind, arm, min(max(reward, 0.0), 1.0), weight)
        self.state.add(increment)
        return increment

    @abstractmethod
    def belief(self, kind: TaskKind, arm: Arm) -> Belief:
        """Return what is believed of an arm at a kind of task."""

    @abstractmethod
    def increment(self, kind: TaskKind, arm: Arm, reward: float, weight: float) -> Increment:
        """Return what a result adds to the state."""


class DiscountedThompson(Thompson):
    """One Beta for each arm at each kind of task, old evidence discounted (gnoma ADR-009).

    With a `prior_strength` the catalogue's chance counts as that many results, else every chance is equally likely.
    """

    def __init__(
        self, *, gamma: float = 0.995, temper: float = 1.0, prior_strength: float = 0.0
    ) -> None:
        super().__init__(gamma=gamma, temper=temper)
        self._prior_strength = prior_strength

    def belief(self, kind: TaskKind, arm: Arm) -> Belief:
        """Return what is believed of an arm at a kind of task."""
        s, f = self.state.counts(kind, arm.name)
        prior, n0 = _prior(kind, arm), self._prior_strength
        flat = 0.0 if n0 else 1.0
        return Belief(flat + prior * n0 + s, flat + (1 - prior) * n0 + f)

    def increment(self, kind: TaskKind, arm: Arm, reward: float, weight: float) -> Increment:
        """Return what a result adds: to its own cell alone."""
        return Increment(
            kind=kind, arm=arm.name, weight=weight, s=weight * reward, f=weight * (1 - reward)
        )


class HierarchicalThompson(Thompson):
    """Discounted Thompson sampling whose cells share what they learn: of an arm across kinds, of a kind across arms.

    The chance that a cell starts from is the catalogue's, moved by the arm's shift and the kind's, in logits; it counts as
    `prior_strength` results. So a new kind of task inherits the arm's record.
    """

    #: How much a kind's shift takes of each result; the arm's takes all of it.
    kind_share = 0.3
    #: What the shifts are pulled to 0 with: results that said nothing.
    arm_pull = 1.0
    kind_pull = 2.0

    def __init__(
        self, *, gamma: float = 0.995, temper: float = 4.0, prior_strength: float = 8.0
    ) -> None:
        super().__init__(gamma=gamma, temper=temper)
        self._prior_strength = prior_strength

    def belief(self, kind: TaskKind, arm: Arm) -> Belief:
        """Return what is believed of an arm at a kind of task."""
        chance, n0 = self._chance(kind, arm), self._prior_strength
        s, f = self.state.counts(kind, arm.name)
        return Belief(chance * n0 + s, (1 - chance) * n0 + f)

    def increment(self, kind: TaskKind, arm: Arm, reward: float, weight: float) -> Increment:
        """Return what a result adds: to its cell, to its arm and to its kind."""
        of_arm, of_kind = self._shifts(kind, arm)
        chance = self._chance(kind, arm)
        w = chance * (1 - chance) * weight
        missed = (reward - chance) * weight
        return Increment(
            kind=kind,
            arm=arm.name,
            weight=weight,
            s=weight * reward,
            f=weight * (1 - reward),
            e=missed + w * of_arm,
            v=w,
            te=self.kind_share * (missed + w * of_kind),
            tv=self.kind_share * w,
        )

    def _chance(self, kind: TaskKind, arm: Arm) -> float:
        prior = _prior(kind, arm)
        logit = log(prior / (1 - prior)) + sum(self._shifts(kind, arm))
        return 1 / (1 + exp(-min(max(logit, -4.0), 4.0)))

    def _shifts(self, kind: TaskKind, arm: Arm) -> tuple[float, float]:
        e, v = self.state.arm_shift(arm.name)
        te, tv = self.state.kind_shift(kind)
        return e / (v + self.arm_pull), te / (tv + self.kind_pull)


def _prior(kind: TaskKind, arm: Arm) -> float:
    """Return the catalogue's chance, never certain: results could not move it then."""
    return min(max(arm.prior_of(kind), 0.02), 0.98)
