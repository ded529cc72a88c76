"""What is known to speak against an arm without learning: its price, its time, and a prompt cache that is lost."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Final

from msgspec import Struct

from ybs.router.arms import Arm
from ybs.router.classifier import Features

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
