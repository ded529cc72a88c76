"""Run policies through worlds, and put the regrets together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from math import sqrt
from multiprocessing import get_context, parent_process
from os import getpid, kill
from random import Random
from signal import SIGTERM
from statistics import mean, stdev
from threading import Thread
from typing import Final

from msgspec import Struct

from router_worlds.policies import POLICIES, Policy
from router_worlds.scenarios import Column
from router_worlds.world import ARM_COUNT, REQUEST, Step, world
from ybs.router.selection import Router, Situation

#: Seeds that settings may be tuned with, and those that figures are reported of.
TUNING_SEEDS: Final = 5_000
HELD_OUT_SEEDS: Final = 90_000
BEST_ARM: Final = "hindsight: best arm"
BEST_BY_KIND: Final = "hindsight: best arm of each kind"
_OPEN: Final = Situation()


class Job(Struct, frozen=True, kw_only=True):
    """One world to run all policies through."""

    column: Column
    seed: int
    decisions: int


class Score(Struct, frozen=True, kw_only=True):
    """A policy's cumulative regret: its mean over the seeds, half of its 95 % confidence interval, its ratio to round-robin's."""

    policy: str
    mean_regret: float
    ci95: float
    of_round_robin: float


def regret_of(steps: Sequence[Step], policy: Policy, seed: int) -> float:
    """Return by how much expected utility a policy falls behind the best usable arm of each step."""
    now = 0
    router = policy.router(lambda: now, Random(f"{policy.name} {seed}"))
    index = {arm.name: k for k, arm in enumerate(steps[0].arms)}
    due: dict[int, list[tuple[str, float]]] = {}
    regret = 0.0
    for now, step in enumerate(steps):  # the clock reads it
        for decision_id, reward in due.pop(now, ()):
            router.learn(decision_id, reward)
        has_any = step.empty or step.pressure
        situation = Situation(empty=step.empty, pressure=step.pressure) if has_any else _OPEN
        decision = router.choose(REQUEST, step.kind, step.arms, situation)
        assert decision.arm is not None
        k = index[decision.arm]
        regret += max(step.utilities[each] for each in step.usable) - step.utilities[k]
        if (reward := _heard(router, step, k, decision.arm)) is None:
            continue
        if k in step.down or not step.delay:
            router.learn(decision.id, reward)
        else:
            due.setdefault(now + step.delay, []).append((decision.id, reward))
    return regret


def _heard(router: Router, step: Step, k: int, arm: str) -> float | None:
    """Tell the breaker, and return the reward to learn, now or late; None for none."""
    breaker = router.breaker
    if k in step.down:
        if breaker is None:
            return 0.0
        breaker.fail(arm)
        return None
    if breaker is not None:
        breaker.succeed(arm)
    if step.delay is None:
        return None
    has_succeeded = step.luck < step.chances[k]
    return float(has_succeeded != step.is_flipped)


def in_hindsight(steps: Sequence[Step], *, by_kind: bool) -> float:
    """Return the regret of the arm that turns out best, for all steps or by kind; where it cannot be used, the next one's."""
    sums: dict[str, list[float]] = {}
    for step in steps:
        row = sums.setdefault(step.kind if by_kind else "", [0.0] * ARM_COUNT)
        for k in range(ARM_COUNT):
            row[k] += step.utilities[k]
    orders = {
        key: sorted(range(ARM_COUNT), key=lambda k, row=row: -row[k]) for key, row in sums.items()
    }
    regret = 0.0
    for step in steps:
        usable = step.usable
        chosen = next(k for k in orders[step.kind if by_kind else ""] if k in usable)
        regret += max(step.utilities[k] for k in usable) - step.utilities[chosen]
    return regret


def run_job(job: Job, policies: Sequence[Policy] = POLICIES) -> dict[str, float]:
    """Return each policy's regret in one world, and the best arms' in hindsight."""
    steps = world(job.column.scenario, job.seed, job.decisions)
    found = {policy.name: regret_of(steps, policy, job.seed) for policy in policies}
    found[BEST_ARM] = in_hindsight(steps, by_kind=False)
    found[BEST_BY_KIND] = in_hindsight(steps, by_kind=True)
    return found


def simulate(
    jobs: Sequence[Job], *, processes: int, progress: Callable[[int, int], None] | None = None
) -> list[dict[str, float]]:
    """Run all jobs, in several processes, and return their regrets in the jobs' order. `progress` is told how many of how many are done."""
    results: dict[int, dict[str, float]] = {}
    for number, found in _completed(jobs, processes):
        results[number] = found
        if progress:
            progress(len(results), len(jobs))
    return [results[number] for number in range(len(jobs))]


def _completed(jobs: Sequence[Job], processes: int) -> Iterator[tuple[int, dict[str, float]]]:
    if processes < 2 or len(jobs) < 2:
        yield from ((number, run_job(job)) for number, job in enumerate(jobs))
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_end_with_parent) as pool:
        longest_first = sorted(enumerate(jobs), key=lambda each: -each[1].decisions)
        numbers = {pool.submit(run_job, job): number for number, job in longest_first}
        try:
            for future in as_completed(numbers):
                yield numbers[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _end_with_parent() -> None:
    """Have this process end where its parent was killed; it would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        Thread(target=lambda: (parent.join(), kill(getpid(), SIGTERM)), daemon=True).start()


def scores(regrets: Iterable[dict[str, float]], baseline: str) -> list[Score]:
    """Return the policies' scores of one column."""
    rows = list(regrets)
    unit = mean(row[baseline] for row in rows)
    found: list[Score] = []
    for policy in rows[0]:
        values = [row[policy] for row in rows]
        spread = 1.96 * stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
        found.append(
            Score(
                policy=policy,
                mean_regret=mean(values),
                ci95=spread,
                of_round_robin=mean(values) / unit,
            )
        )
    return found
