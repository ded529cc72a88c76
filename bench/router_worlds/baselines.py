"""What the router is compared with: learners of the textbooks, behind the same filters and penalties."""

from collections import deque
from collections.abc import Mapping, Sequence
from math import inf, log, sqrt
from random import Random

from ybs.router.bandit import Arm, Increment, Learner, Thompson
from ybs.router.classifier import TaskKind

#: Above every chance: who has it is chosen whatever it costs.
_SURELY = 1_000.0


class Baseline(Learner):
    """A learner that chooses by its own scores from the first request on. A subclass keeps what it is told."""

    @property
    def has_learned(self) -> bool:
        """Whether the scores say more than the catalogue does: here they always count."""
        return True

    def learn(self, kind: TaskKind, arm: Arm, reward: float, weight: float = 1.0) -> Increment:
        """Pass the result on."""
        self.note(kind, arm.name, reward)
        return Increment(kind=kind, arm=arm.name, weight=weight)

    def note(self, kind: TaskKind, arm: str, reward: float) -> None:
        """Keep a result."""


class RoundRobin(Baseline):
    """Takes turns."""

    def __init__(self) -> None:
        self._turn = 0

    def scores(self, kind: TaskKind, arms: Sequence[Arm], rng: Random) -> dict[str, float]:
        """Return a score that only the next arm can win with."""
        self._turn += 1
        chosen = self._turn % len(arms)
        return {arm.name: _SURELY * (number == chosen) for number, arm in enumerate(arms)}


class StaticPrior(Baseline):
    """Believes the catalogue for ever."""

    def scores(self, kind: TaskKind, arms: Sequence[Arm], rng: Random) -> dict[str, float]:
        """Return the catalogue's chances."""
        return {arm.name: arm.prior_of(kind) for arm in arms}


class OneModel(Baseline):
    """Stays with the arm that the catalogue holds best over all kinds, as a person does who chooses once."""

    def scores(self, kind: TaskKind, arms: Sequence[Arm], rng: Random) -> dict[str, float]:
        """Return the mean of the catalogue's chances, whatever the kind."""
        return {arm.name: _mean_prior(arm) for arm in arms}


def _mean_prior(arm: Arm) -> float:
    if isinstance(arm.prior, Mapping):
        return sum(arm.prior.values()) / len(arm.prior)
    return arm.prior


class Counting(Baseline):
    """Counts results and successes by kind and arm, of all time or of the last `window` results."""

    def __init__(self, window: int | None = None) -> None:
        self._window = window
        self._past: deque[tuple[TaskKind, str, float]] = deque()
        self._cells: dict[tuple[TaskKind, str], list[float]] = {}

    def note(self, kind: TaskKind, arm: str, reward: float) -> None:
        """Count a result, and take the one off that is too old now."""
        self._count(kind, arm, 1.0, reward)
        if self._window is not None:
            self._past.append((kind, arm, reward))
            if len(self._past) > self._window:
                old_kind, old_arm, old = self._past.popleft()
                self._count(old_kind, old_arm, -1.0, -old)

    def counted(self, kind: TaskKind, arm: str) -> tuple[float, float]:
        """Return the number of results and the sum of their rewards."""
        count, total = self._cells.get((kind, arm), (0.0, 0.0))
        return count, total

    def _count(self, kind: TaskKind, arm: str, count: float, total: float) -> None:
        cell = self._cells.setdefault((kind, arm), [0.0, 0.0])
        cell[0] += count
        cell[1] += total


class EpsilonGreedy(Counting):
    """Takes the best mean, and now and then any arm."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self._epsilon = epsilon

    def scores(self, kind: TaskKind, arms: Sequence[Arm], rng: Random) -> dict[str, float]:
        """Return the means; arms without a result count as one half."""
        found = {arm.name: self.counted(kind, arm.name) for arm in arms}
        means = {name: total / count if count else 0.5 for name, (count, total) in found.items()}
        if rng.random() < self._epsilon:
            means[rng.choice(arms).name] = _SURELY
        return means


class UpperConfidence(Counting):
    """Takes the best mean with a bonus for what is little known: UCB1 with c=2, SW-UCB with a window."""

    def __init__(self, c: float, window: int | None = None) -> None:
        super().__init__(window)
        self._c = c

    def scores(self, kind: TaskKind, arms: Sequence[Arm], rng: Random) -> dict[str, float]:
        """Return the upper bounds; an arm without a result comes first."""
        found = {arm.name: self.counted(kind, arm.name) for arm in arms}
        known = log(max(1.0, sum(count for count, _ in found.values())))
        return {
            name: total / count + sqrt(self._c * known / count) if count > 0 else inf
            for name, (count, total) in found.items()
        }


class WindowThompson(Counting):
    """Thompson sampling of the last results (SW-TS)."""

    def __init__(self, window: int) -> None:
        super().__init__(window)

    def scores(self, kind: TaskKind, arms: Sequence[Arm], rng: Random) -> dict[str, float]:
        """Return a drawn chance for each arm."""
        found = {arm.name: self.counted(kind, arm.name) for arm in arms}
        return {
            name: rng.betavariate(1 + max(total, 0.0), 1 + max(count - total, 0.0))
            for name, (count, total) in found.items()
        }


class DiscountedWindowThompson(Baseline):
    """The mean of two draws: of all results, discounted, and of a cell's last few (f-dsw TS, Cavenaghi et al. 2021)."""

    def __init__(self, gamma: float, last: int) -> None:
        self._all = Thompson(gamma=gamma)
        self._last = last
        self._recent: dict[tuple[TaskKind, str], deque[float]] = {}

    def scores(self, kind: TaskKind, arms: Sequence[Arm], rng: Random) -> dict[str, float]:
        """Return the mean of the two draws for each arm."""
        drawn = self._all.scores(kind, arms, rng)
        for arm in arms:
            recent = self._recent.get((kind, arm.name), ())
            hot = rng.betavariate(1 + sum(recent), 1 + len(recent) - sum(recent))
            drawn[arm.name] = (drawn[arm.name] + hot) / 2
        return drawn

    def learn(self, kind: TaskKind, arm: Arm, reward: float, weight: float = 1.0) -> Increment:
        """Keep a result in both."""
        self._recent.setdefault((kind, arm.name), deque(maxlen=self._last)).append(reward)
        return self._all.learn(kind, arm, reward, weight)
