"""What the Thompson learners know, share, forget and keep."""

from random import Random
from statistics import stdev

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ybs.router.bandit import (
    Arm,
    Belief,
    HierarchicalThompson,
    Increment,
    LearnerState,
    Thompson,
)
from ybs.router.classifier import TASK_KINDS, TaskKind

A, B, C = (Arm(name=name, provider="p", model=name, prior=0.5) for name in "abc")
Result = tuple[TaskKind, Arm, float, float]
RESULTS = st.lists(
    st.tuples(
        st.sampled_from(TASK_KINDS), st.sampled_from((A, B, C)), st.floats(0, 1), st.floats(0, 1)
    ),
    max_size=12,
)


def taught(learner: Thompson, results: list[Result]) -> Thompson:
    for result in results:
        learner.learn(*result)
    return learner


def mean(learner: Thompson, kind: TaskKind, arm: Arm) -> float:
    return learner.belief(kind, arm).mean


def test_plain_sampling_learns_of_a_kind_for_that_kind_alone() -> None:
    learner = taught(Thompson(), [("fix", A, 1.0, 1.0)] * 10)
    untaught = Thompson()
    assert mean(learner, "fix", A) > 0.85
    assert all(
        learner.belief(kind, A) == untaught.belief(kind, A) for kind in TASK_KINDS if kind != "fix"
    )
    assert learner.belief("fix", B) == untaught.belief("fix", B)


def test_the_hierarchy_takes_an_arms_record_to_other_kinds_and_a_kinds_to_other_arms() -> None:
    learner = taught(HierarchicalThompson(), [("fix", A, 1.0, 1.0)] * 20)
    cell, of_arm, of_kind, unrelated = (
        mean(learner, "fix", A),
        mean(learner, "docs", A),
        mean(learner, "fix", B),
        mean(learner, "docs", B),
    )
    assert cell > of_arm > of_kind > 0.5
    assert unrelated == 0.5


@pytest.mark.integration
@given(results=RESULTS)
def test_without_its_shifts_the_hierarchy_is_cells_that_know_nothing_of_each_other(
    results: list[Result],
) -> None:
    learner = taught(HierarchicalThompson(), results)
    learner.state.arms.clear()
    learner.state.kinds.clear()
    plain = taught(Thompson(prior_strength=8.0), results)
    for kind in TASK_KINDS:
        for arm in (A, B, C):
            mine, theirs = learner.belief(kind, arm), plain.belief(kind, arm)
            assert (mine.alpha, mine.beta) == pytest.approx((theirs.alpha, theirs.beta))


@pytest.mark.integration
@given(results=RESULTS)
def test_what_is_learned_survives_being_written_and_read(results: list[Result]) -> None:
    learner = taught(HierarchicalThompson(), results)
    read = HierarchicalThompson()
    read.state = msgspec.json.decode(msgspec.json.encode(learner.state), type=LearnerState)
    assert read.state == learner.state
    assert read.scores("fix", (A, B, C), Random(3)) == learner.scores("fix", (A, B, C), Random(3))


@pytest.mark.integration
@given(results=RESULTS)
def test_the_increments_alone_make_the_same_state(results: list[Result]) -> None:
    learner, store = HierarchicalThompson(), LearnerState()
    for result in results:
        store.add(learner.learn(*result))
    assert store == learner.state


def test_old_results_of_a_kind_fade_with_new_ones_of_that_kind() -> None:
    learner = taught(Thompson(gamma=0.5), [("fix", A, 1.0, 1.0), ("fix", B, 0.0, 1.0)])
    assert learner.state.counts("fix", "a") == (0.5, 0.0)
    learner.learn("docs", B, 0.0)
    assert learner.state.counts("fix", "a") == (0.5, 0.0)
    learner.learn("fix", B, 0.0, 0.5)
    assert learner.state.counts("fix", "a")[0] == pytest.approx(0.5**1.5)


def test_an_arm_that_changes_for_the_worse_is_found_out() -> None:
    learner = taught(HierarchicalThompson(), [("fix", A, 1.0, 1.0)] * 200)
    assert mean(learner, "fix", A) > 0.95
    taught(learner, [("fix", A, 0.0, 1.0)] * 150)
    assert mean(learner, "fix", A) < 0.5


def test_the_catalogues_chance_is_where_an_arm_starts() -> None:
    arm = Arm(name="x", provider="p", model="x", prior={"fix": 0.9, "other": 0.2})
    learner = HierarchicalThompson()
    assert mean(learner, "fix", arm) == pytest.approx(0.9)
    assert mean(learner, "docs", arm) == pytest.approx(0.2)
    assert HierarchicalThompson().belief("fix", A) == Belief(4.0, 4.0)
    certain = msgspec.structs.replace(arm, prior=1.0)
    for each in (learner, Thompson(prior_strength=4.0)):
        assert 0.95 < mean(each, "fix", certain) < 1.0
        assert 0 < each.scores("fix", [certain], Random(0))["x"] <= 1.0


def test_the_temper_narrows_what_is_drawn_and_not_what_is_believed() -> None:
    def spread(temper: float) -> float:
        learner, rng = HierarchicalThompson(temper=temper), Random(1)
        assert learner.belief("fix", A) == Belief(4.0, 4.0)
        return stdev(learner.scores("fix", [A], rng)["a"] for _ in range(200))

    assert 1.5 < spread(1.0) / spread(4.0) < 2.5


def test_a_weight_is_what_a_result_counts_and_a_reward_beyond_the_scale_is_taken_back_to_it() -> (
    None
):
    learner = Thompson()
    assert learner.learn("fix", A, 7.0, 0.25) == Increment(kind="fix", arm="a", weight=0.25, s=0.25)
    assert learner.learn("fix", A, -1.0).f == 1.0
