"""One course of events, the same for every policy: which task comes when, and what each arm would be worth at it."""

from collections.abc import Mapping, Sequence
from math import exp, log
from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from router_worlds.scenarios import Scenario
from ybs.router.bandit import Arm
from ybs.router.classifier import TASK_KINDS, Features, TaskKind

ARM_COUNT: Final = 8
KINDS: Final[tuple[TaskKind, ...]] = TASK_KINDS[:6]
#: A request costs what an arm's million of input tokens does.
REQUEST: Final = Features(tokens=1_000_000, output_tokens=0)
PRICE_WEIGHT: Final = 0.15
LATENCY_WEIGHT: Final = 0.05
PRESSURE_WEIGHT: Final = 4.0
#: The most by which a pool's spending runs ahead of the day, as a share of its budget.
_MOST_PRESSURE: Final = 0.5
_POOLS: Final = 3


class Step(Struct, frozen=True, kw_only=True):
    """One request: its kind, and by arm the chance of success (0 in an outage) and the expected utility.

    `pressure` is that on the pool of each arm. `luck` decides whether an arm succeeds, the same for all. The result is heard after `delay` steps, as it was or
    `is_flipped`; None: never.
    """

    kind: TaskKind
    arms: tuple[Arm, ...]
    chances: tuple[float, ...]
    utilities: tuple[float, ...]
    down: frozenset[int]
    empty: frozenset[str]
    pressure: Mapping[str, float]
    luck: float
    delay: int | None
    is_flipped: bool

    @property
    def usable(self) -> list[int]:
        """The arms whose pool is not empty."""
        return [k for k, arm in enumerate(self.arms) if arm.name not in self.empty]


def world(scenario: Scenario, seed: int, decisions: int) -> list[Step]:
    """Return the course of events of a seed. What is heard of results is drawn apart, so that it changes nothing else."""
    rng, hearing = Random(f"world {seed}"), Random(f"results {seed}")
    truth = _Truth(scenario, rng, decisions)
    arms = _arms(truth, rng)
    mix = _shares(rng, len(KINDS), 0.9)
    outages = [_times(rng, 1.5 if scenario.has_outages else 0.0, decisions, (20, 80)) for _ in arms]
    pool_of = [k % _POOLS for k in range(ARM_COUNT)]
    gaps = 0.006 * decisions if scenario.has_pools else 0.0
    dry = [_times(rng, gaps, decisions, (10, 40)) for _ in range(_POOLS)]
    change_at = decisions // 2 if scenario.has_price_change else -1
    starts = [hearing.random() for _ in range(_POOLS)] if scenario.has_pressure else []
    steps: list[Step] = []
    for t in range(decisions):
        truth.advance(t)
        if t == change_at:
            arms = _with_new_prices(arms, rng)
        m = rng.choices(range(len(KINDS)), mix)[0]
        down = frozenset(k for k in range(ARM_COUNT) if t in outages[k])
        pressed = [_pressure(start, t / decisions) for start in starts]
        pressure = {arm.name: pressed[pool_of[k]] for k, arm in enumerate(arms)} if pressed else {}
        known = _known(arms, pressure)
        chances = tuple(0.0 if k in down else truth.chance(k, m) for k in range(ARM_COUNT))
        steps.append(
            Step(
                kind=KINDS[m],
                arms=arms,
                chances=chances,
                utilities=tuple(
                    chance - penalty for chance, penalty in zip(chances, known, strict=True)
                ),
                down=down,
                empty=_empty({p for p in range(_POOLS) if t in dry[p]}, pool_of, arms),
                pressure=pressure,
                luck=rng.random(),
                delay=_delay(scenario, hearing),
                is_flipped=hearing.random() < scenario.flipped,
            )
        )
    return steps


class _Truth:
    """How good each arm is at each kind of task, in logits, as time goes by."""

    def __init__(self, scenario: Scenario, rng: Random, decisions: int) -> None:
        self._rng = rng
        self.abilities = [rng.gauss(0.6, scenario.spread) for _ in range(ARM_COUNT)]
        self.abilities[0] += scenario.lead
        hardness = [rng.gauss(0.0, 0.7) for _ in KINDS]
        self.logits = [
            [ability - hard + rng.gauss(0.0, scenario.interaction) for hard in hardness]
            for ability in self.abilities
        ]
        rate = 1.2 if scenario.has_updates else 0.0
        self._updates: dict[int, list[int]] = {}
        for k in range(ARM_COUNT):
            for _ in range(_poisson(rng, rate)):
                self._updates.setdefault(rng.randrange(decisions), []).append(k)
        self._drift = scenario.drift / decisions**0.5

    def advance(self, t: int) -> None:
        """Go to a step: silent updates change an arm at all kinds, drift every chance by itself."""
        for k in self._updates.get(t, ()):
            change = self._rng.gauss(0.0, 0.9)
            self.logits[k] = [each + change for each in self.logits[k]]
        if self._drift:
            gauss = self._rng.gauss
            self.logits = [[each + gauss(0.0, self._drift) for each in row] for row in self.logits]

    def chance(self, k: int, m: int) -> float:
        """Return an arm's chance of success."""
        return 1 / (1 + exp(-self.logits[k][m]))


def _arms(truth: _Truth, rng: Random) -> tuple[Arm, ...]:
    arms: list[Arm] = []
    for k in range(ARM_COUNT):
        guesses = [1 / (1 + exp(-each - rng.gauss(0.0, 0.8))) for each in truth.logits[k]]
        price = exp(0.9 * truth.abilities[k] + rng.gauss(-3.2, 0.5))
        arms.append(
            Arm(
                name=f"arm {k + 1}",
                provider="made up",
                model=f"arm {k + 1}",
                input_usd_per_million=price,
                output_usd_per_million=price,
                seconds=rng.lognormvariate(1.8, 0.5),
                prior=dict(zip(KINDS, (min(max(p, 0.1), 0.95) for p in guesses), strict=True)),
            )
        )
    return tuple(arms)


def _known(arms: Sequence[Arm], pressure: Mapping[str, float]) -> list[float]:
    """Return what price, which counts for more under pressure, and time take off each arm's utility."""
    prices = [log(arm.input_usd_per_million or 1.0) for arm in arms]
    low, span = min(prices), max(prices) - min(prices)
    slowest = max(arm.seconds for arm in arms)
    return [
        PRICE_WEIGHT * (1 + PRESSURE_WEIGHT * pressure.get(arm.name, 0.0)) * (price - low) / span
        + LATENCY_WEIGHT * arm.seconds / slowest
        for arm, price in zip(arms, prices, strict=True)
    ]


def _pressure(start: float, time: float) -> float:
    """Return the pressure on a pool: three times it rises evenly, then others stop and the day catches up."""
    return _MOST_PRESSURE * ((start + 3 * time) % 1.0)


def _with_new_prices(arms: Sequence[Arm], rng: Random) -> tuple[Arm, ...]:
    return tuple(
        replace(
            arm, input_usd_per_million=(arm.input_usd_per_million or 1.0) * exp(rng.gauss(0, 1))
        )
        for arm in arms
    )


def _empty(dry: set[int], pool_of: Sequence[int], arms: Sequence[Arm]) -> frozenset[str]:
    if len(dry) == _POOLS:  # whoever is asked then waits
        return frozenset()
    return frozenset(arm.name for arm, pool in zip(arms, pool_of, strict=True) if pool in dry)


def _delay(scenario: Scenario, rng: Random) -> int | None:
    is_missing, delay = rng.random() < scenario.missing, rng.randint(1, max(1, scenario.late))
    return None if is_missing else delay if scenario.late else 0


def _times(rng: Random, rate: float, decisions: int, lengths: tuple[int, int]) -> frozenset[int]:
    times: set[int] = set()
    for _ in range(_poisson(rng, rate)):
        start = rng.randrange(decisions)
        times.update(range(start, start + rng.randint(*lengths)))
    return frozenset(times)


def _poisson(rng: Random, rate: float) -> int:
    count, left = 0, rng.expovariate(1.0)
    while left < rate:
        count, left = count + 1, left + rng.expovariate(1.0)
    return count


def _shares(rng: Random, count: int, alpha: float) -> list[float]:
    """Draw from a symmetric Dirichlet distribution."""
    drawn = [rng.gammavariate(alpha, 1.0) for _ in range(count)]
    return [each / sum(drawn) for each in drawn]
