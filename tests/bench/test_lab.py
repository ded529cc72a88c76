"""The bench measures what it says: a real `ybs` and the bare loop do the whole task, and nothing beside it."""

import math
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from types import ModuleType

import pytest
from lab import Lab, Row, Session, interleave
from run import line_of, main

from rows import every_row

pytestmark = pytest.mark.integration

MOST_BYTES_OF_A_FIRST_REQUEST = 6_000


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab


@pytest.fixture(scope="module")
def task(lab: Lab) -> Session:
    """Run the whole task once."""
    return lab.ybs("task")


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["ybs", "floor"])
def test_an_agent_reads_edits_runs_and_answers(lab: Lab, task: Session, agent: str) -> None:
    session = task if agent == "ybs" else lab.floor("task")
    assert [request["step"] for request in session.requests] == [0, 1, 2, 3]
    assert "VALUE is 2 now" in session.ended.output
    assert 0 < session.first_request_seconds < session.ended.wall_seconds


def test_the_first_request_is_small_and_nothing_is_asked_beside_it(task: Session) -> None:
    paths = [request["path"].rpartition("/")[2] for request in task.all_requests]
    # The size and the window of a model on this machine are asked for, where its name does not say them: by each kind of server's own way.
    assert paths == ["props", "models", "models", *["completions"] * 4]
    first = task.requests[0]
    assert first["body_bytes"] <= MOST_BYTES_OF_A_FIRST_REQUEST
    assert first["tools_bytes"] > 0


def test_a_session_that_did_not_edit_does_not_count(lab, monkeypatch):
    monkeypatch.setattr("lab.YBS", "/bin/true")
    with pytest.raises(SystemExit, match="ended with 0 after 0 requests"):
        lab.ybs("task")


def test_runs_take_turns_after_a_warm_up() -> None:
    calls: list[str] = []
    interleave(3, a=lambda: calls.append("a"), b=lambda: calls.append("b"))
    assert "".join(calls) == "ab" + "abbaab"


def test_a_missed_limit_is_said() -> None:
    assert line_of(Row("memory", 80, "MB", 70)).endswith("at most 70  MISSED")
    assert line_of(Row("memory", 70, "MB", 70)).endswith("at most 70")


@every_row(("value", "code"), [(70, 0), (70.1, 1), (math.nan, 1)])
def test_a_bench_that_misses_a_limit_fails(value, code, monkeypatch, capsys):
    bench = ModuleType("start", "The start.")
    rows = [Row("memory", value, "MB", 70), Row("time", 1e9, "ms")]
    monkeypatch.setattr(bench, "measure", lambda _lab, _rounds: rows, raising=False)
    monkeypatch.setitem(sys.modules, "start", bench)
    monkeypatch.setattr("run.Lab", nullcontext)
    monkeypatch.setattr("sys.argv", ["run.py", "start"])
    assert main() == code
    assert f"{code} of the limits missed" in capsys.readouterr().out
