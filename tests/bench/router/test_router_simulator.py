"""`python bench/router_simulator.py`."""

import msgspec
import pytest
import router_simulator
from router_worlds.policies import POLICIES, ROUTER
from router_worlds.report import Report
from router_worlds.scenarios import HARDER, LIMITS, MAIN

pytestmark = pytest.mark.integration


WORDS = ["--seeds", "1", "--decisions", "10", "--tuning"]


def test_regrets_are_printed_by_scenario_and_policy_as_json_and_for_people(capsys, monkeypatch):
    code = router_simulator.main([*WORDS, "--format", "json"])
    found = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert (found.seeds, found.first_seed, found.decisions) == (1, 5_000, 10)
    assert len(found.scenarios) == len(MAIN) + len(HARDER) + len(LIMITS)
    for column in found.scenarios:
        assert {row.policy for row in column.policies} > {policy.name for policy in POLICIES}
        assert column.regret(ROUTER.name) > 0
    assert code == int(found.missed > 0)

    monkeypatch.setattr(router_simulator, "report", lambda *_, **__: found)
    assert router_simulator.main(WORDS) == code
    shown = capsys.readouterr().out
    assert "the mean of 1 seed from 5000 on" in shown
    assert shown.count(ROUTER.name) == 5
    assert "abrupt, 40" in shown
    assert shown.count("MISSED") == found.missed
