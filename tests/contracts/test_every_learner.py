"""What every Learner keeps: the built-in ones, and one that has the protocol's parts and nothing else."""

from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from router_worlds.baselines import (
    DiscountedWindowThompson,
    EpsilonGreedy,
    OneModel,
    RoundRobin,
    StaticPrior,
    UpperConfidence,
    WindowThompson,
)

from ybs.router.bandit import Arm, HierarchicalThompson, Increment, Learner, Thompson
from ybs.router.classifier import TASK_KINDS, TaskKind

ARMS = [Arm(name=name, provider="p", model=name, prior=0.6) for name in "abcdef"]
RESULTS = st.lists(
    st.tuples(st.sampled_from(TASK_KINDS), st.sampled_from(ARMS), st.floats(0, 1), st.floats(0, 1)),
    max_size=12,
)


class Foreign:
    """A learner without the base class: it counts, and takes the mean."""

    def __init__(self) -> None:
        self.results: dict[tuple[str, str], list[float]] = {}

    @property
    def has_learned(self) -> bool:
        return bool(self.results)

    def scores(self, kind: TaskKind, arms: Sequence[Arm], rng: Random) -> dict[str, float]:
        found = {arm.name: self.results.get((kind, arm.name), [0.5]) for arm in arms}
        return {name: sum(each) / len(each) + rng.random() / 100 for name, each in found.items()}

    def learn(self, kind: TaskKind, arm: Arm, reward: float, weight: float = 1.0) -> Increment:
        self.results.setdefault((kind, arm.name), []).append(reward)
        return Increment(kind=kind, arm=arm.name, weight=weight)


#: Those that wait for a result before they know more than the catalogue, those of the simulator that always choose by
#: themselves, and its three that learn nothing.
OWN: list[Callable[[], Learner]] = [HierarchicalThompson, Thompson, Foreign]
COMPARED: list[Callable[[], Learner]] = [
    lambda: EpsilonGreedy(0.0),
    lambda: UpperConfidence(0.25),
    lambda: UpperConfidence(0.25, 60),
    lambda: WindowThompson(60),
    lambda: DiscountedWindowThompson(0.995, 20),
]
BLIND: list[Callable[[], Learner]] = [RoundRobin, StaticPrior, OneModel]


def learners(*groups: list[Callable[[], Learner]]) -> pytest.MarkDecorator:
    rows = [make for group in groups for make in group]
    return pytest.mark.parametrize("make", rows, ids=lambda make: type(make()).__name__)


def taught(
    make: Callable[[], Learner], results: Sequence[tuple[TaskKind, Arm, float, float]]
) -> Learner:
    learner = make()
    for kind, arm, reward, weight in results:
        increment = learner.learn(kind, arm, reward, weight)
        assert (increment.kind, increment.arm, increment.weight) == (kind, arm.name, weight)
    return learner


@pytest.mark.integration
@learners(OWN, COMPARED, BLIND)
@given(
    results=RESULTS, allowed=st.sets(st.sampled_from(range(6)), min_size=1), seed=st.integers(0, 99)
)
def test_only_the_arms_that_are_asked_for_have_scores_and_the_same_seed_the_same_ones(
    make: Callable[[], Learner],
    results: list[tuple[TaskKind, Arm, float, float]],
    allowed: set[int],
    seed: int,
) -> None:
    asked = [ARMS[number] for number in sorted(allowed)]
    found = [taught(make, results).scores("fix", asked, Random(seed)) for _ in range(2)]
    assert found[0].keys() == {arm.name for arm in asked}
    assert found[0] == found[1]


@learners(OWN, COMPARED)
def test_an_arm_that_always_fails_comes_behind_one_that_always_succeeds(
    make: Callable[[], Learner],
) -> None:
    good, bad = ARMS[:2]
    learner = taught(
        make,
        [("fix", arm, float(arm is good), 1.0) for arm in (good, bad) * 40],
    )
    assert learner.has_learned
    rng = Random(1)
    for _ in range(20):
        scores = learner.scores("fix", [bad, good], rng)
        assert scores[good.name] > scores[bad.name]


@learners(OWN)
def test_nothing_is_learned_before_the_first_result(make: Callable[[], Learner]) -> None:
    learner = make()
    assert not learner.has_learned
    learner.scores("fix", ARMS, Random(0))
    assert not learner.has_learned
