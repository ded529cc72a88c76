"""The choice: filters first, then what is learned less the known penalties; each choice has an id and a reason."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from math import log
from random import Random
from typing import Final

from msgspec import Struct

from ybs.router.bandit import Arm, Increment, Learner
from ybs.router.classifier import Features, TaskKind

#: In seconds: the first rest and the longest one that is not the server's wish.
FIRST_SECONDS: Final = 5.0
MOST_SECONDS: Final = 300.0


class Rest(Struct):
    """How many times in a row an arm has failed, until when it rests, and how fast that is forgotten afterwards."""

    failures: int = 0
    until: float = 0.0
    half_life: float = 1.0


class Breaker:
    """Lets an arm rest after an outage (429, 5xx, a timeout, a refused key): `first`, doubled with each failure in a row.

    `clock` may count seconds or decisions; `first` and `most` are in its unit.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        first: float = FIRST_SECONDS,
        most: float = MOST_SECONDS,
    ) -> None:
        self._clock = clock
        self._first = first
        self._most = most
        self._rests: dict[str, Rest] = {}

    def fail(self, arm: str, retry_after: float | None = None) -> float:
        """Let an arm rest, at least as long as its server says; return for how long."""
        rest = self._rests.setdefault(arm, Rest())
        rest.half_life = min(self._first * 2**rest.failures, self._most)
        rest.failures = min(rest.failures + 1, 30)
        rest.until = max(rest.until, self._clock() + max(rest.half_life, retry_after or 0.0))
        return rest.until - self._clock()

    def succeed(self, arm: str) -> None:
        """Forget the failures of an arm that has answered."""
        self._rests.pop(arm, None)

    def rest_of(self, arm: str) -> float:
        """Return how long an arm still rests; 0 where it can be used."""
        rest = self._rests.get(arm)
        return 0.0 if rest is None else max(0.0, rest.until - self._clock())

    def suspicion(self, arm: str) -> float:
        """Return how much a failure still says of an arm that has not answered since: from 1, as its rest ends, to 0."""
        rest = self._rests.get(arm)
        if rest is None:
            return 0.0
        return 0.5 ** (max(0.0, self._clock() - rest.until) / rest.half_life)


#: Prices are compared on a log scale: nothing below this share of the dearest counts as cheaper still ...
_CHEAPEST_SHARE: Final = 0.01
#: ... and this ratio of prices at least takes the whole weight, so that nearly equal prices count as nearly equal.
_FULL_RATIO: Final = 4.0


class Weights(Struct, frozen=True, kw_only=True):
    """What price and time are worth, in chance of success: the dearest arm has to succeed so much more often.

    The weight of the price grows with the pressure on an arm's pool: a pressure of 1 adds `pressure` times the weight.
    `suspicion` is taken off an arm that has just rested and not answered since: who is as good as others need not try it first.
    """

    price: float = 0.15
    latency: float = 0.05
    pressure: float = 4.0
    suspicion: float = 0.3


class Situation(Struct, frozen=True, kw_only=True):
    """What a choice depends on beside the request.

    `current` is the arm that the session used last, `cached_tokens` how much of the request its prompt cache holds.
    `pressure` says by arm how far its pool's spending is ahead of time (0: it is not); `empty` are the arms whose pool has
    nothing left, `excluded` those that are not to be used now for another reason. `only_local`: the session may use models on this machine alone.
    """

    current: str = ""
    cached_tokens: int = 0
    pressure: Mapping[str, float] = {}
    empty: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    only_local: bool = False


def penalties(
    arms: Sequence[Arm], features: Features, situation: Situation, weights: Weights
) -> dict[str, float]:
    """Return for each arm, by name, what its price, its time and a lost prompt cache are worth."""
    cached = min(situation.cached_tokens, features.tokens) if situation.current else 0
    tokens = features.tokens
    written = {arm.name: arm.answer_tokens or features.output_tokens for arm in arms}
    costs = [arm.cost_usd(tokens, 0, written[arm.name]) for arm in arms]
    known = [cost for cost in costs if cost is not None]
    dearest = max(known, default=0.0)
    low = max(min(known, default=0.0), dearest * _CHEAPEST_SHARE)
    span = log(max(dearest / low, _FULL_RATIO)) if low else 1.0
    slowest = max((arm.seconds for arm in arms), default=0.0) or 1.0
    found: dict[str, float] = {}
    for arm, cost in zip(arms, costs, strict=True):
        price = (
            weights.price * (1 + weights.pressure * situation.pressure.get(arm.name, 0.0)) / span
        )
        full = dearest if cost is None else cost
        total = weights.latency * arm.seconds / slowest
        if full > low:
            total += price * log(full / low)
        if cached and arm.name != situation.current:
            total += weights.latency * cached / tokens
            warm = arm.cost_usd(tokens - cached, cached, written[arm.name])
            if cost and warm and warm < cost:
                total += price * log(cost / warm)
        found[arm.name] = total
    return found


#: So many choices are remembered for results that come late.
_REMEMBERED = 1_000


class Considered(Struct, frozen=True, kw_only=True):
    """An arm as a choice saw it: its score and what was taken off, or why it was left out."""

    arm: str
    score: float = 0.0
    penalty: float = 0.0
    left_out: str = ""

    @property
    def value(self) -> float:
        """What arms are compared by."""
        return self.score - self.penalty


class Decision(Struct, frozen=True, kw_only=True):
    """A choice: the arm (None where none is suitable), why, and all that were looked at."""

    id: str
    arm: str | None
    kind: TaskKind
    reason: str
    considered: tuple[Considered, ...]
    is_learned: bool = False


class Router:
    """Chooses an arm for each request, and learns from what comes of it.

    The same seed, arms, requests and results lead to the same choices. Without a `breaker` no arm rests.
    """

    def __init__(
        self,
        learner: Learner,
        *,
        breaker: Breaker | None = None,
        rng: Random | None = None,
        make_id: Callable[[], str] | None = None,
    ) -> None:
        numbers = count(1)
        self.learner = learner
        self.breaker = breaker
        self._rng = rng or Random()  # noqa: S311 - draws chances, guards nothing
        self._weights = Weights()
        self._make_id = make_id or (lambda: str(next(numbers)))
        self._open: dict[str, tuple[TaskKind, Arm]] = {}

    def choose(
        self,
        features: Features,
        kind: TaskKind,
        arms: Sequence[Arm],
        situation: Situation | None = None,
    ) -> Decision:
        """Choose the arm for a request."""
        situation = situation or Situation()
        left_out = {arm.name: why for arm in arms if (why := _unfit(arm, features, situation))}
        rests = self._rests(arms, left_out)
        fit = [arm for arm in arms if arm.name not in left_out and arm.name not in rests]
        note = ""
        if not fit and rests:  # an outage is a guess: trying is better than refusing
            soonest = min(rests, key=lambda name: rests[name])
            fit = [arm for arm in arms if arm.name == soonest]
            note = "all rest after errors, this one shortest"
        left_out |= dict.fromkeys(rests.keys() - {arm.name for arm in fit}, "rests after errors")
        scores = self._scores(kind, fit)
        known = self._penalties(arms, features, situation)
        considered = tuple(
            Considered(
                arm=arm.name,
                score=scores.get(arm.name, 0.0),
                penalty=known[arm.name],
                left_out=left_out.get(arm.name, ""),
            )
            for arm in arms
        )
        return self._decide(kind, fit, considered, note)

    def learn_by(self, learner: Learner) -> None:
        """Choose by another learner from now on."""
        self.learner = learner

    def learn(self, decision_id: str, reward: float, weight: float = 1.0) -> Increment | None:
        """Learn what came of a choice (0 to 1); return what that added, or None where the choice is not remembered."""
        if decision_id not in self._open:
            return None
        kind, arm = self._open[decision_id]
        return self.learner.learn(kind, arm, reward, weight)

    def _scores(self, kind: TaskKind, fit: Sequence[Arm]) -> Mapping[str, float]:
        if fit and self.learner.has_learned:
            return self.learner.scores(kind, fit, self._rng)
        return {arm.name: arm.prior_of(kind) for arm in fit}

    def _penalties(
        self, arms: Sequence[Arm], features: Features, situation: Situation
    ) -> dict[str, float]:
        known = penalties(arms, features, situation, self._weights)
        if self.breaker is not None:
            for name in known:
                known[name] += self._weights.suspicion * self.breaker.suspicion(name)
        return known

    def _rests(self, arms: Sequence[Arm], left_out: Mapping[str, str]) -> dict[str, float]:
        if self.breaker is None:
            return {}
        rests = {arm.name: self.breaker.rest_of(arm.name) for arm in arms}
        return {name: rest for name, rest in rests.items() if rest > 0 and name not in left_out}

    def _decide(
        self, kind: TaskKind, fit: Sequence[Arm], considered: tuple[Considered, ...], note: str
    ) -> Decision:
        by_name = {each.arm: each for each in considered}
        chosen = max(fit, key=lambda arm: by_name[arm.name].value, default=None)
        is_learned = self.learner.has_learned
        decision = Decision(
            id=self._make_id(),
            arm=chosen and chosen.name,
            kind=kind,
            reason=note
            or _reason(kind, chosen and by_name[chosen.name], len(fit), is_learned=is_learned),
            considered=considered,
            is_learned=is_learned,
        )
        if chosen:
            self._open[decision.id] = (kind, chosen)
            if len(self._open) > _REMEMBERED:
                del self._open[next(iter(self._open))]
        return decision


def _unfit(arm: Arm, features: Features, situation: Situation) -> str:
    """Return why an arm cannot take a request at all, or nothing."""
    reason = ""
    if arm.name in situation.excluded:
        reason = "is not to be used now"
    elif situation.only_local and not arm.is_local:
        reason = "does not run on this machine"
    elif features.tools and not arm.has_tools:
        reason = "cannot call tools"
    elif features.image_count and not arm.sees_images:
        reason = "cannot see images"
    elif 0 < arm.window < features.tokens:
        reason = f"its window of {arm.window:,} tokens is too small for {features.tokens:,}"
    elif arm.name in situation.empty:
        reason = "its pool has nothing left"
    return reason


def _reason(kind: TaskKind, chosen: Considered | None, rivals: int, *, is_learned: bool) -> str:
    if chosen is None:
        return "no model is suitable"
    if rivals == 1:
        return "the only suitable model"
    source = "results" if is_learned else "the catalogue"
    return f"best for {kind} by {source}: {chosen.score:.2f} - {chosen.penalty:.2f}"
