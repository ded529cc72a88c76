"""The table of regrets, and which of the router's targets it meets."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from router_worlds.policies import PLAIN, POLICIES, ROUND_ROBIN, ROUTER
from router_worlds.run import HELD_OUT_SEEDS, TUNING_SEEDS, Job, Score, scores, simulate
from router_worlds.scenarios import FULL, HARDER, LIMITS, MAIN

#: The most that the router's regret may be, as a share of another's, in the full scenario.
_OF_ROUND_ROBIN: Final = 0.25
_OF_PLAIN: Final = 0.5


class Figures(Struct, frozen=True, kw_only=True):
    """What all policies came to in one column."""

    scenario: str
    decisions: int
    policies: tuple[Score, ...]

    def regret(self, policy: str) -> float:
        """Return a policy's mean regret."""
        return next(each.mean_regret for each in self.policies if each.policy == policy)


class Target(Struct, frozen=True, kw_only=True):
    """What the router is to reach: its regret as a share of another policy's is below a limit."""

    scenario: str
    decisions: int
    against: str
    value: float
    limit: float
    is_met: bool


class Report(Struct, frozen=True, kw_only=True):
    """All that was simulated."""

    seeds: int
    first_seed: int
    decisions: int
    scenarios: tuple[Figures, ...]
    targets: tuple[Target, ...]

    @property
    def missed(self) -> int:
        """How many targets are not met."""
        return sum(not each.is_met for each in self.targets)


def report(
    seeds: int,
    decisions: int,
    *,
    is_tuning: bool = False,
    processes: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Simulate all columns with so many seeds; see `simulate` for the rest."""
    first = TUNING_SEEDS if is_tuning else HELD_OUT_SEEDS
    columns = (*MAIN, *HARDER, *LIMITS)
    jobs = [
        Job(column=column, seed=first + number, decisions=column.decisions(decisions))
        for column in columns
        for number in range(seeds)
    ]
    regrets = simulate(jobs, processes=processes, progress=progress)
    figures = tuple(
        Figures(
            scenario=column.scenario.name,
            decisions=column.decisions(decisions),
            policies=tuple(scores(regrets[at * seeds : (at + 1) * seeds], ROUND_ROBIN.name)),
        )
        for at, column in enumerate(columns)
    )
    return Report(
        seeds=seeds,
        first_seed=first,
        decisions=decisions,
        scenarios=figures,
        targets=tuple(_targets(figures)),
    )


def _targets(figures: Sequence[Figures]) -> list[Target]:
    found: list[Target] = []
    for column, each in zip((*MAIN, *HARDER), figures, strict=False):
        if column.scenario is FULL and column.share == 1:
            found.append(_target(each, ROUND_ROBIN.name, _OF_ROUND_ROBIN))
            found.append(_target(each, PLAIN.name, _OF_PLAIN))
        rivals = [policy.name for policy in POLICIES if policy.is_rival]
        found.append(_target(each, min(rivals, key=each.regret), 1.0))
    return found


def _target(figures: Figures, against: str, limit: float) -> Target:
    mine, theirs = figures.regret(ROUTER.name), figures.regret(against)
    value = mine / theirs if theirs else 1.0
    return Target(
        scenario=figures.scenario,
        decisions=figures.decisions,
        against=against,
        value=value,
        limit=limit,
        is_met=value <= limit if limit < 1 else value < 1,
    )
