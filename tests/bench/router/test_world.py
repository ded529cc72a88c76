"""The made-up worlds: what changes in which, and that feedback changes nothing but what is heard."""

import pytest
from msgspec.structs import replace
from router_worlds.scenarios import ABRUPT, FULL, HARDER, STATIONARY, Scenario
from router_worlds.world import Step, world

SEED = 5_000


def chances(steps: list[Step]) -> dict[tuple[str, int], set[float]]:
    """Return all chances that an arm ever has at a kind of task."""
    found: dict[tuple[str, int], set[float]] = {}
    for step in steps:
        for k, chance in enumerate(step.chances):
            found.setdefault((step.kind, k), set()).add(chance)
    return found


def harder(name: str) -> Scenario:
    return next(each.scenario for each in HARDER if each.scenario.name == name)


def test_nothing_changes_in_a_stationary_world_and_some_arms_do_in_an_abrupt_one() -> None:
    still, abrupt = chances(world(STATIONARY, SEED, 60)), chances(world(ABRUPT, SEED, 60))
    assert all(len(each) == 1 for each in still.values())
    changed = {k for (_, k), each in abrupt.items() if len(each) > 1}
    assert 0 < len(changed) < 8 or any(len(each) > 1 for each in abrupt.values())


def test_the_utility_is_the_chance_less_price_and_time() -> None:
    for step in world(FULL, SEED, 40):
        for k, arm in enumerate(step.arms):
            taken = step.chances[k] - step.utilities[k]
            assert 0 < taken <= 0.2
            assert 0.1 <= arm.prior_of(step.kind) <= 0.95
            assert (k in step.down) == (step.chances[k] == 0)


@pytest.mark.integration
def test_feedback_that_is_missing_wrong_or_late_is_the_only_difference_to_the_full_world() -> None:
    plain = world(FULL, SEED, 300)
    for name in ("missing", "noisy", "late", "missing, noisy, late"):
        other = world(harder(name), SEED, 300)
        assert [replace(step, delay=0, is_flipped=False) for step in other] == plain
    heard = world(harder("missing, noisy, late"), SEED, 300)
    missing = sum(step.delay is None for step in heard)
    flipped = sum(step.is_flipped for step in heard)
    assert (90 < missing < 150, 15 < flipped < 45) == (True, True)
    assert {step.delay for step in heard} - {None} <= set(range(1, 61))
    assert all(step.delay == 0 for step in world(harder("noisy"), SEED, 30))


@pytest.mark.integration
def test_prices_change_once_and_pools_leave_something() -> None:
    steps = world(harder("prices"), SEED, 40)
    assert [steps[t].arms == steps[t - 1].arms for t in range(1, 40)].count(False) == 1
    assert steps[19].arms != steps[20].arms
    pooled = world(harder("pools"), SEED, 400)
    empty = [step for step in pooled if step.empty]
    assert empty
    assert all(step.usable for step in pooled)
    assert all(step.arms[k].name not in step.empty for step in empty for k in step.usable)


def test_pressure_on_pools_makes_dear_arms_worth_less_and_changes_nothing_else() -> None:
    pressed, plain = world(harder("pressure"), SEED, 60), world(FULL, SEED, 60)
    cheapest = min(plain[0].arms, key=lambda arm: arm.input_usd_per_million or 0.0)
    for step, calm in zip(pressed, plain, strict=True):
        assert step.chances == calm.chances
        assert 0 <= min(step.pressure.values()) < max(step.pressure.values()) < 0.5
        for k, arm in enumerate(step.arms):
            lost = calm.utilities[k] - step.utilities[k]
            assert (lost > 0) == (arm.name != cheapest.name)
