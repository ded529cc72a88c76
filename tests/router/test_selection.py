"""Which arm a router chooses, why, and what it learns from."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rows import every_row
from ybs.router.bandit import Arm, HierarchicalThompson, Thompson
from ybs.router.classifier import Features
from ybs.router.selection import Breaker, Decision, Router, Situation, Weights, penalties

GOOD = Arm(
    name="good", provider="p", model="g", window=1_000, prior=0.9, seconds=4.0, sees_images=True,
    input_usd_per_million=3.0, output_usd_per_million=15.0, cached_usd_per_million=0.3,
)  # fmt: skip
LOCAL = Arm(name="local", provider="q", model="l", prior=0.4, is_local=True, seconds=8.0)
BLIND = Arm(
    name="blind", provider="p", model="b", has_tools=False, prior=0.88, seconds=2.0,
    input_usd_per_million=1.0, output_usd_per_million=5.0,
)  # fmt: skip
ARMS = (GOOD, LOCAL, BLIND)
ASKED = Features(words="go", tokens=800)


def router() -> Router:
    return Router(HierarchicalThompson(), rng=Random(1))


def reason_of(decision: Decision, name: str) -> str:
    return next(each.left_out for each in decision.considered if each.arm == name)


@every_row(
    "features, situation, name, why",
    [
        (ASKED, Situation(excluded=frozenset({"good"})), "good", "not to be used now"),
        (ASKED, Situation(only_local=True), "good", "does not run on this machine"),
        (replace(ASKED, tools=("grep",)), Situation(), "blind", "cannot call tools"),
        (replace(ASKED, image_count=1), Situation(), "local", "cannot see images"),
        (replace(ASKED, tokens=1_001), Situation(), "good", "1,000 tokens is too small for 1,001"),
        (ASKED, Situation(empty=frozenset({"good"})), "good", "pool has nothing left"),
    ],
)
def test_an_arm_that_cannot_take_the_request_is_left_out(
    features: Features, situation: Situation, name: str, why: str
) -> None:
    decision = router().choose(features, "fix", ARMS, situation)
    assert why in reason_of(decision, name)
    assert decision.arm != name


@given(
    empty=st.sets(st.sampled_from(("good", "local", "blind"))),
    excluded=st.sets(st.sampled_from(("good", "local", "blind"))),
    tokens=st.integers(0, 2_000),
    only_local=st.booleans(),
    has_image=st.booleans(),
    failed=st.sets(st.sampled_from(("good", "local", "blind"))),
    taught=st.lists(st.tuples(st.sampled_from(ARMS), st.floats(0, 1)), max_size=5),
)
def test_an_arm_that_was_left_out_is_never_chosen(
    empty: set[str],
    excluded: set[str],
    tokens: int,
    only_local: bool,
    has_image: bool,
    failed: set[str],
    taught: list[tuple[Arm, float]],
) -> None:
    breaker = Breaker(lambda: 0.0)
    made = Router(HierarchicalThompson(), breaker=breaker, rng=Random(0))
    for arm, reward in taught:
        made.learner.learn("fix", arm, reward)
    for name in failed:
        breaker.fail(name)
    features = Features(tokens=tokens, image_count=int(has_image))
    situation = Situation(
        empty=frozenset(empty), excluded=frozenset(excluded), only_local=only_local
    )
    decision = made.choose(features, "fix", ARMS, situation)
    left = {each.arm for each in decision.considered if not each.left_out}
    assert {each.arm for each in decision.considered} == {"good", "local", "blind"}
    assert (decision.arm is None) == (not left)
    assert decision.arm is None or decision.arm in left
    if left - failed:
        assert left == left - failed


def test_without_results_the_catalogue_chooses_less_price_and_time() -> None:
    decision = router().choose(ASKED, "fix", ARMS)
    assert decision.arm == "blind"  # 0.88 is nearly as good as 0.9, and much cheaper
    assert not decision.is_learned
    assert "by the catalogue" in decision.reason


def test_results_move_the_choice_and_a_choice_that_is_not_known_teaches_nothing() -> None:
    made = router()
    for _ in range(30):
        decision = made.choose(ASKED, "fix", ARMS)
        made.learn(decision.id, float(decision.arm == "local"))
    decision = made.choose(ASKED, "fix", ARMS)
    assert (decision.arm, decision.is_learned) == ("local", True)
    assert "by results" in decision.reason
    assert made.learn("nonsense", 1.0) is None


def test_results_that_come_late_are_learned_until_a_thousand_choices_later() -> None:
    made = Router(Thompson(), rng=Random(0))
    first = made.choose(ASKED, "docs", ARMS)
    second = made.choose(ASKED, "fix", ARMS)
    for _ in range(999):
        made.choose(ASKED, "fix", ARMS)
    assert made.learn(first.id, 1.0) is None
    learned = made.learn(second.id, 1.0, 0.5)
    assert learned is not None
    assert (learned.kind, learned.arm, learned.s) == ("fix", second.arm, 0.5)


def test_the_same_seed_chooses_the_same_arms_with_the_same_ids() -> None:
    def run() -> list[Decision]:
        made = Router(HierarchicalThompson(), rng=Random(42))
        found: list[Decision] = []
        for number in range(40):
            found.append(made.choose(ASKED, "fix", ARMS))
            made.learn(found[-1].id, number % 3 / 2)
        return found

    assert run() == run()


def test_an_arm_that_rests_is_left_out_and_tried_where_nothing_else_is_left() -> None:
    now = [0.0]
    breaker = Breaker(lambda: now[0])
    made = Router(HierarchicalThompson(), breaker=breaker, rng=Random(0))
    breaker.fail("blind")
    decision = made.choose(ASKED, "fix", ARMS)
    assert (decision.arm, reason_of(decision, "blind")) == ("good", "rests after errors")
    now[0] += 2
    breaker.fail("good")
    only = Situation(excluded=frozenset({"local"}))
    decision = made.choose(ASKED, "fix", ARMS, only)
    assert decision.arm == "blind"
    assert decision.reason == "all rest after errors, this one shortest"
    now[0] += 60
    assert "by the catalogue" in made.choose(ASKED, "fix", ARMS, only).reason


def test_an_arm_that_may_still_be_down_is_tried_only_where_it_is_much_better() -> None:
    now = [0.0]
    breaker = Breaker(lambda: now[0])
    made = Router(HierarchicalThompson(), breaker=breaker, rng=Random(0))
    worse = replace(BLIND, name="worse", prior=0.8)
    breaker.fail("blind")
    now[0] += 5
    assert made.choose(ASKED, "fix", (BLIND, worse)).arm == "worse"
    assert made.choose(ASKED, "fix", (BLIND, replace(worse, prior=0.3))).arm == "blind"
    now[0] += 60
    assert made.choose(ASKED, "fix", (BLIND, worse)).arm == "blind"


def test_one_arm_is_chosen_as_the_only_one_and_none_where_there_is_none() -> None:
    assert router().choose(ASKED, "fix", [LOCAL]).reason == "the only suitable model"
    nothing = router().choose(ASKED, "fix", [GOOD], Situation(only_local=True))
    assert (nothing.arm, nothing.reason) == (None, "no model is suitable")
    assert router().choose(ASKED, "fix", []).arm is None


def worth(arms: tuple[Arm, ...], situation: Situation, tokens: int = 800) -> dict[str, float]:
    return penalties(arms, Features(tokens=tokens), situation, Weights())


def test_the_dearest_arm_pays_the_whole_weight_and_one_on_this_machine_nothing_for_its_price() -> (
    None
):
    found = worth(ARMS, Situation())
    assert found["local"] == 0.05  # the slowest
    assert found["good"] == 0.15 + 0.025
    assert 0.0125 < found["blind"] < found["good"]


def test_pressure_on_a_pool_makes_its_arms_dearer() -> None:
    calm, pressed = worth(ARMS, Situation()), worth(ARMS, Situation(pressure={"good": 0.5}))
    assert pressed["good"] - 0.025 == 3 * (calm["good"] - 0.025)
    assert pressed["blind"] == calm["blind"]


def test_a_warm_prompt_cache_speaks_against_the_others() -> None:
    cold, warm = (
        worth(ARMS, Situation()),
        worth(ARMS, Situation(current="local", cached_tokens=700)),
    )
    assert warm["local"] == cold["local"]
    assert warm["good"] > cold["good"] + 0.05 * 700 / 800
    assert warm["blind"] == cold["blind"] + 0.05 * 700 / 800  # nobody knows what its cache saves
    assert worth(ARMS, Situation(current="local"), tokens=0) == worth(ARMS, Situation(), tokens=0)


def test_a_price_that_is_not_known_counts_as_the_dearest_and_equal_ones_as_nothing() -> None:
    unknown = Arm(name="unknown", provider="p", model="u")
    found = worth((GOOD, LOCAL, unknown), Situation())
    assert found["unknown"] == 0.15
    assert set(worth((LOCAL, unknown), Situation()).values()) == {0.05, 0.0}
    twin = replace(GOOD, name="twin", input_usd_per_million=3.01)
    found = worth((GOOD, twin), Situation())
    assert abs(found["good"] - found["twin"]) < 0.001
