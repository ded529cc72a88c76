"""`ybs router stats`, `explain` and `reset`: on the terminal and as data."""

import json
import re
from pathlib import Path

import pytest

from hosts import this_host
from ybs import cli
from ybs.router.database import Database
from ybs.router.pools import Estimate, Pools, Reservation
from ybs.router.routing import database_file
from ybs.router.store import DecisionStore, Signal, StoredDecision

pytestmark = pytest.mark.integration


@pytest.fixture
def used(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project of a person who has two arms, one settled decision and one open one."""
    monkeypatch.chdir(project)
    host = this_host()
    host.config_folder.mkdir(parents=True, exist_ok=True)
    endpoint = {"endpoint": "http://127.0.0.1:9"}
    settings = {
        "providers": {"a": endpoint, "b<&>": endpoint},
        "router": {"arms": ["a/x", "b<&>/y"], "pools": {"a": {"usd_per_day": 2}}},
    }
    host.user_config_file.write_text(json.dumps(settings))
    database = Database.open(database_file(host), may_write=True)
    store = DecisionStore(database, "")
    for name, arm in (("1a", "a/x"), ("2b", "b<&>/y")):
        considered = (("a/x", 0.7), ("b<&>/y: rests", 0.1))
        store.add(
            StoredDecision(id=name, arm=arm, kind="fix", reason="why it is", considered=considered)
        )
    store.label("1a", Signal("checked", 1.0, 1.0))
    store.settle("1a")
    lease = Pools(database, {}).reserve("a", "a/x", Estimate())
    assert isinstance(lease, Reservation)
    Pools(database, {}).settle(lease, tokens=100, usd=0.5)
    database.close()
    return project


def test_stats_show_beliefs_and_spending_with_bars(
    used: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["router", "stats"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 decisions, 1 with an outcome; policy hierarchical\n")
    assert re.search(r"^a/x\n  fix +·+─+●─+·* +\d+% \(\d+% to \d+%\), 0\.5 results$", said, re.M)
    assert max(map(len, said.splitlines())) < 80
    assert re.search(r"^\d{4}-\d\d-\d\d  █{30}  0\.5000 USD, 1 request$", said, re.M)
    assert "pool a: 0.5000 of 2 USD today" in said


def test_stats_are_data_for_programs(used: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["router", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["decisions"], found["settled"]) == (2, 1)
    assert [each["arm"] for each in found["arms"]] == ["a/x", "b<&>/y"]
    (use,) = found["spending"]
    assert (use["pool"], use["arm"], use["usd"]) == ("a", "a/x", 0.5)


def test_explain_says_why_and_what_came_of_it(
    used: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["router", "explain", "1"]) == 0
    said = capsys.readouterr().out
    assert "decision 1a: a/x for fix; why it is" in said
    assert "checked: 1.00, weight 1" in said
    assert cli.main(["router", "explain", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["made"]["id"] == "2b"
    assert cli.main(["router", "explain", "zz"]) == 1
    assert "no decision whose id begins with 'zz'" in capsys.readouterr().err


def test_reset_forgets_what_was_learned_and_keeps_what_was_spent(
    used: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["router", "reset"]) == 0
    assert capsys.readouterr().out == "Forgot 2 decisions. What was spent is still counted.\n"
    assert cli.main(["router", "reset", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"forgotten": 0, "profile": ""}
    assert cli.main(["router", "stats"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("0 decisions")
    assert "0.5000 USD" in said


def test_words_that_an_action_does_not_take_are_bad_usage(
    used: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["router", "stats", "1a"]) == 2
    assert "is not understood here" in capsys.readouterr().err
