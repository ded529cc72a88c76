"""The overview: what the router believes of each arm, and what was spent, as data for a screen, a program or a picture."""

import asyncio
from math import sqrt

from msgspec import Struct

from ybs.router.bandit import Arm
from ybs.router.classifier import TASK_KINDS
from ybs.router.pools import NO_LIMITS, Estimate
from ybs.router.routing import Routing
from ybs.router.store import DayUse, Told

#: So many days of spending are shown.
DAYS = 14
#: Nine beliefs of ten lie within so many standard deviations.
_WIDTH = 1.645


class Chance(Struct, frozen=True, kw_only=True):
    """What is believed of an arm at a kind of task: the chance of success, where it most likely lies, and from how many results."""

    kind: str
    mean: float
    low: float
    high: float
    results: float


class ArmState(Struct, frozen=True, kw_only=True):
    """How things stand with one arm. Prices are in US dollars per million tokens; None: not known. `shortage` is why its pool is empty."""

    arm: str
    pool: str
    input_price: float | None
    output_price: float | None
    rests_seconds: float
    shortage: str
    chances: tuple[Chance, ...]


class PoolState(Struct, frozen=True, kw_only=True):
    """What a pool has spent today (US dollars), and its budget for the day, if it has one."""

    pool: str
    spent_usd: float
    budget_usd: float | None


class Overview(Struct, frozen=True, kw_only=True):
    """All of it."""

    policy: str
    decisions: int
    settled: int
    arms: tuple[ArmState, ...]
    pools: tuple[PoolState, ...]
    spending: tuple[DayUse, ...]
    last: Told | None = None
    warnings: tuple[str, ...] = ()


async def overview(routing: Routing) -> Overview:
    """Return how things stand. Raises YbsError."""
    pools, store = await routing.opened()
    await routing.catch_up()
    arms, names = list(routing.arms.values()), routing.roster.pools
    limits = routing.config.router.pools
    short = await asyncio.to_thread(
        lambda: pools.shortages([(names[arm.name], Estimate()) for arm in arms])
    )
    made, settled = await asyncio.to_thread(store.counts)
    spent = await asyncio.to_thread(
        lambda: {pool: pools.spent_today(pool) for pool in sorted(set(names.values()))}
    )
    return Overview(
        policy=routing.config.router.policy,
        decisions=made,
        settled=settled,
        arms=tuple(
            _state(routing, arm, found.reason if found else "")
            for arm, found in zip(arms, short, strict=True)
        ),
        pools=tuple(
            PoolState(pool=pool, spent_usd=usd, budget_usd=limits.get(pool, NO_LIMITS).usd_per_day)
            for pool, usd in spent.items()
        ),
        spending=tuple(await asyncio.to_thread(lambda: store.spending(DAYS))),
        last=await routing.explain(),
        warnings=tuple(routing.warnings),
    )


def _state(routing: Routing, arm: Arm, shortage: str) -> ArmState:
    return ArmState(
        arm=arm.name,
        pool=routing.roster.pools[arm.name],
        input_price=arm.input_usd_per_million,
        output_price=arm.output_usd_per_million,
        rests_seconds=round(routing.breaker.rest_of(arm.name), 1),
        shortage=shortage,
        chances=tuple(_chances(routing, arm)),
    )


def _chances(routing: Routing, arm: Arm) -> list[Chance]:
    found: list[Chance] = []
    for kind in TASK_KINDS:
        belief = routing.learner.belief(kind, arm)
        total = belief.alpha + belief.beta
        spread = _WIDTH * sqrt(belief.alpha * belief.beta / (total**2 * (total + 1)))
        results = sum(routing.learner.state.counts(kind, arm.name))
        found.append(
            Chance(
                kind=kind,
                mean=round(belief.mean, 4),
                low=round(max(0.0, belief.mean - spread), 4),
                high=round(min(1.0, belief.mean + spread), 4),
                results=round(results, 2),
            )
        )
    return found
