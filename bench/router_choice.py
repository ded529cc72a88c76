"""Choosing one of 32 models and learning from its result, in CPU time: the most that a turn may wait for the router."""

from random import Random
from statistics import quantiles
from time import process_time

from lab import Lab, Row, median

from ybs.router.bandit import Arm, HierarchicalThompson, Thompson
from ybs.router.classifier import TASK_KINDS, Features, KeywordClassifier
from ybs.router.selection import Breaker, Router

#: In milliseconds, for 32 arms.
MOST = 1
ARMS = 32
CHOICES = 400
WORDS = "Fix the crash in src/app.py: " + "KeyError: 'name' in the second test; see the log. " * 40


def measure(lab: Lab, rounds: int) -> list[Row]:
    """Time choices and lessons for both learners, after all cells have been used."""
    rows: list[Row] = []
    for make in (HierarchicalThompson, Thompson):
        times = [time for _ in range(max(1, rounds // 3)) for time in timed(make())]
        name = f"choose and learn, {ARMS} models, {make.__name__}"
        note = f"(of 100, 99 take less than {quantiles(times, n=100)[98]:.2f})"
        rows.append(Row(name, median(times), "ms", MOST, note))
    classifier = KeywordClassifier()
    started = process_time()
    for _ in range(CHOICES):
        classifier.kind_of(Features.of(WORDS))
    each = (process_time() - started) / CHOICES * 1000
    return [*rows, Row("reading and sorting a request of 2,000 characters", each, "ms")]


def timed(learner: Thompson) -> list[float]:
    rng = Random(1)
    arms = [arm_of(rng, number) for number in range(ARMS)]
    for kind in TASK_KINDS:
        for arm in arms:
            learner.learn(kind, arm, rng.random())
    router = Router(learner, breaker=Breaker(lambda: 0.0), rng=rng)
    features = Features(words=WORDS, tokens=10_000, tools=("read_file",))
    times: list[float] = []
    for number in range(CHOICES):
        kind = TASK_KINDS[number % len(TASK_KINDS)]
        started = process_time()
        decision = router.choose(features, kind, arms)
        router.learn(decision.id, rng.random())
        times.append((process_time() - started) * 1000)
    return times


def arm_of(rng: Random, number: int) -> Arm:
    return Arm(
        name=f"model {number}",
        provider="p",
        model=f"model {number}",
        input_usd_per_million=rng.uniform(0.1, 10),
        output_usd_per_million=rng.uniform(1, 40),
        seconds=rng.uniform(1, 20),
        prior=dict.fromkeys(TASK_KINDS, rng.uniform(0.3, 0.9)),
    )
