"""Learners: how good each arm is at each kind of task, from what came of earlier choices (ADR 0033)."""

from collections.abc import Mapping, Sequence
from math import exp, log
from random import Random
from typing import Final, Protocol

from msgspec import Struct, field

from ybs.router.classifier import TaskKind

#: Where nothing says how good a model is.
UNKNOWN_PRIOR: Final = 0.5


class Arm(Struct, frozen=True, kw_only=True):
    """A provider's model that requests can go to.

    A `window` of 0 is unknown and fits everything; a price of None is unknown and counts as the dearest one known.
    `seconds` is how long a typical answer takes, `answer_tokens` how many tokens it has (0: not known). `prior` is the chance of success (0 to 1) that the catalogue gives it,
    for all tasks or by kind. `version` changes when the provider exchanges the model behind the name.
    """

    name: str
    provider: str
    model: str
    window: int = 0
    has_tools: bool = True
    sees_images: bool = False
    is_local: bool = False
    input_usd_per_million: float | None = None
    output_usd_per_million: float | None = None
    cached_usd_per_million: float | None = None
    seconds: float = 0.0
    answer_tokens: float = 0.0
    prior: float | Mapping[TaskKind, float] = UNKNOWN_PRIOR
    version: str = ""

    def prior_of(self, kind: TaskKind) -> float:
        """Return the catalogue's chance of success at a kind of task."""
        if isinstance(self.prior, float | int):
            return self.prior
        return self.prior.get(kind, self.prior.get("other", UNKNOWN_PRIOR))

    def cost_usd(self, fresh: int, cached: int, written: float) -> float | None:
        """Return what a request costs, by its tokens: read anew, read from the cache, written. None: not known."""
        read, write = self.input_usd_per_million, self.output_usd_per_million
        if read is None or write is None:
            return 0.0 if self.is_local else None
        hit = read if self.cached_usd_per_million is None else self.cached_usd_per_million
        return (fresh * read + cached * hit + written * write) / 1_000_000


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


class Thompson(Learner):
    """Discounted Thompson sampling (gnoma ADR-009): draws each arm's chance from a Beta for each arm at each kind of task.

    The chance of the catalogue counts as `prior_strength` results; with 0 every chance is equally likely. The draw is from a belief that
    is `temper` times as narrow: so it explores less than the textbook's does, which explores too much where requests are few. Where cells
    share what they learn (`kind_share`, `arm_share`), the chance that a cell starts from is the catalogue's, moved by the shifts of its
    arm and its kind, in logits, so that a new kind of task inherits the arm's record. What is known is `state`; another process's may be put in its place.
    """

    #: How much an arm's shift and a kind's take of each result.
    arm_share = 0.0
    kind_share = 0.0
    #: What the shifts are pulled to 0 with: results that said nothing.
    arm_pull = 1.0
    kind_pull = 2.0

    def __init__(
        self, *, gamma: float = 0.995, temper: float = 1.0, prior_strength: float = 0.0
    ) -> None:
        self.state = LearnerState(gamma=gamma)
        self._temper, self._prior_strength = temper, prior_strength

    @property
    def has_learned(self) -> bool:
        """Whether any result was learned from."""
        return self.state.steps > 0

    def scores(self, kind: TaskKind, arms: Sequence[Arm], rng: Random) -> dict[str, float]:
        """Return a drawn chance of success for each arm."""
        beliefs = {arm.name: self.belief(kind, arm) for arm in arms}
        return {
            name: rng.betavariate(each.alpha * self._temper, each.beta * self._temper)
            for name, each in beliefs.items()
        }

    def learn(self, kind: TaskKind, arm: Arm, reward: float, weight: float = 1.0) -> Increment:
        """Add a result to the state."""
        reward = min(max(reward, 0.0), 1.0)
        of_arm, of_kind = self._shifts(kind, arm)
        chance = self._chance(kind, arm)
        w = chance * (1 - chance) * weight
        missed = (reward - chance) * weight
        increment = Increment(
            kind=kind,
            arm=arm.name,
            weight=weight,
            s=weight * reward,
            f=weight * (1 - reward),
            e=self.arm_share * (missed + w * of_arm),
            v=self.arm_share * w,
            te=self.kind_share * (missed + w * of_kind),
            tv=self.kind_share * w,
        )
        self.state.add(increment)
        return increment

    def belief(self, kind: TaskKind, arm: Arm) -> Belief:
        """Return what is believed of an arm at a kind of task."""
        s, f = self.state.counts(kind, arm.name)
        chance, n0 = self._chance(kind, arm), self._prior_strength
        flat = 0.0 if n0 else 1.0
        return Belief(flat + chance * n0 + s, flat + (1 - chance) * n0 + f)

    def _chance(self, kind: TaskKind, arm: Arm) -> float:
        """Return the chance that a cell starts from, never certain: results could not move it then."""
        prior = min(max(arm.prior_of(kind), 0.02), 0.98)
        logit = log(prior / (1 - prior)) + sum(self._shifts(kind, arm))
        return 1 / (1 + exp(-min(max(logit, -4.0), 4.0)))

    def _shifts(self, kind: TaskKind, arm: Arm) -> tuple[float, float]:
        e, v = self.state.arm_shift(arm.name)
        te, tv = self.state.kind_shift(kind)
        return e / (v + self.arm_pull), te / (tv + self.kind_pull)


class HierarchicalThompson(Thompson):
    """Thompson sampling whose cells share what they learn: of an arm across kinds, of a kind across arms."""

    arm_share = 1.0
    kind_share = 0.3

    def __init__(self, *, temper: float = 4.0) -> None:
        super().__init__(temper=temper, prior_strength=8.0)
