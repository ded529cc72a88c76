"""`ybs router simulate`."""

import msgspec
import pytest

from ybs import cli
from ybs.frontends.headless import router_simulate
from ybs.router.simulator.policies import POLICIES, ROUTER
from ybs.router.simulator.report import Report
from ybs.router.simulator.scenarios import HARDER, LIMITS, MAIN

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take back what a simulation sets for its own processes: Python elsewhere would import nothing from its folder."""
    monkeypatch.setenv("PYTHONSAFEPATH", "1")


WORDS = ["router", "simulate", "--seeds", "1", "--decisions", "10", "--tuning"]


def test_regrets_are_printed_by_scenario_and_policy_as_json_and_for_people(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = cli.main([*WORDS, "--format", "json"])
    found = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert (found.seeds, found.first_seed, found.decisions) == (1, 5_000, 10)
    assert len(found.scenarios) == len(MAIN) + len(HARDER) + len(LIMITS)
    for column in found.scenarios:
        assert {row.policy for row in column.policies} > {policy.name for policy in POLICIES}
        assert column.regret(ROUTER.name) > 0
    assert code == int(found.missed > 0)

    monkeypatch.setattr(router_simulate, "report", lambda *_, **__: found)
    assert cli.main(WORDS) == code
    shown = capsys.readouterr().out
    assert "the mean of 1 seed from 5000 on" in shown
    assert shown.count(ROUTER.name) == 5
    assert "abrupt, 40" in shown
    assert shown.count("MISSED") == found.missed


@pytest.mark.parametrize("option", ["--seeds", "--decisions"])
@pytest.mark.parametrize("size", ["0", "-3", "many", "1e3", "1.5", "", "99999999", "9" * 5_000])
def test_a_senseless_size_is_bad_usage_and_said_in_one_line(
    capsys: pytest.CaptureFixture[str], option: str, size: str
) -> None:
    assert cli.main(["router", "simulate", option, size]) == 2
    said = capsys.readouterr().err
    assert option in said
    assert said.count("\n") == 1
    assert len(said) < 120
