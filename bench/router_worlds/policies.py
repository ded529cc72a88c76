"""The policies that are compared, each a Router with a learner; only those with a breaker know outages from failures."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from msgspec import Struct

from router_worlds.baselines import (
    DiscountedWindowThompson,
    EpsilonGreedy,
    OneModel,
    RoundRobin,
    StaticPrior,
    UpperConfidence,
    WindowThompson,
)
from ybs.router.bandit import HierarchicalThompson, Learner, Thompson
from ybs.router.selection import Breaker, Router

#: Of the breaker, in decisions.
_FIRST_REST: Final = 4
_LONGEST_REST: Final = 30


class Policy(Struct, frozen=True, kw_only=True):
    """A named way to choose. `is_rival`: the router is to be below it."""

    name: str
    make: Callable[[], Learner]
    has_breaker: bool = False
    is_rival: bool = True

    def router(self, clock: Callable[[], float], rng: Random) -> Router:
        """Make a router that knows nothing yet. The clock counts decisions."""
        breaker = (
            Breaker(clock, first=_FIRST_REST, most=_LONGEST_REST) if self.has_breaker else None
        )
        return Router(self.make(), breaker=breaker, rng=rng)


ROUND_ROBIN: Final = Policy(name="round-robin", make=RoundRobin)
PLAIN: Final = Policy(name="dTS, discount 0.995 (ADR-009)", make=Thompson)
ROUTER: Final = Policy(
    name="router: hierarchical dTS", make=HierarchicalThompson, has_breaker=True, is_rival=False
)
POLICIES: Final = (
    ROUND_ROBIN,
    Policy(name="one model, the catalogue's best", make=OneModel),
    Policy(name="static prior", make=StaticPrior),
    Policy(name="epsilon-greedy 0.1", make=partial(EpsilonGreedy, 0.1)),
    Policy(name="UCB1, c=2", make=partial(UpperConfidence, 2.0)),
    Policy(name="UCB, c=0.25 (tuned)", make=partial(UpperConfidence, 0.25)),
    Policy(name="SW-UCB, window 400", make=partial(UpperConfidence, 0.25, 400)),
    Policy(name="SW-TS, window 400", make=partial(WindowThompson, 400)),
    Policy(name="f-dsw TS", make=partial(DiscountedWindowThompson, 0.995, 20)),
    Policy(name="TS, no discount", make=partial(Thompson, gamma=1.0)),
    PLAIN,
    Policy(
        name="dTS + breaker",
        make=Thompson,
        has_breaker=True,
        is_rival=False,
    ),
    Policy(
        name="dTS + breaker + temper 4",
        make=partial(Thompson, temper=4.0),
        has_breaker=True,
        is_rival=False,
    ),
    Policy(
        name="dTS + breaker + temper 4 + prior 4",
        make=partial(Thompson, temper=4.0, prior_strength=4.0),
        has_breaker=True,
        is_rival=False,
    ),
    ROUTER,
)
