"""The rhythm of a task, and the files that run it by the clock."""

import shutil
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ybs.learning.detector import Cluster, PastRequest
from ybs.learning.schedule import (
    Rhythm,
    Scheduled,
    ScheduledTask,
    cron_line,
    keep,
    rhythm_of,
    scheduled_in,
    systemd_units,
)

#: A Monday.
BEGUN = datetime(2026, 3, 2, 9, 5)
TASK = ScheduledTask(
    name="standup",
    folder="/home/ada/my app",
    command=("/usr/bin/ybs", "--print", "/standup", "--mode", "plan"),
    result=Path("/home/ada/.local/state/ybs/scheduled/standup.md"),
)


def cluster_on(*days: int) -> Cluster:
    cluster = Cluster(id=1)
    for day in days:
        at = (BEGUN + timedelta(days=day)).timestamp()
        cluster.join(PastRequest("standup", (), at), {}, {})
    return cluster


@pytest.mark.parametrize(
    ("days", "words"),
    [
        ((0, 7, 14, 21), "each Mon at 09:00"),
        ((0, 1, 2, 3, 4, 7, 8, 9), "on Mon to Fri at 09:00"),
        ((0, 1, 2, 3, 4, 5, 6, 7), "each day at 09:00"),
        ((0, 3, 6, 9, 12), "each 3 days at 09:00"),
    ],
)
def test_a_rhythm_is_found(days: tuple[int, ...], words: str) -> None:
    rhythm = rhythm_of(cluster_on(*days))
    assert rhythm is not None
    assert rhythm.words == words


@pytest.mark.parametrize("days", [(0, 1), (0, 7, 14), (0, 1, 9, 11, 25, 27), (0, 2, 9, 10, 22)])
def test_no_rhythm_is_made_up(days: tuple[int, ...]) -> None:
    assert rhythm_of(cluster_on(*days)) is None


def test_a_line_of_cron_has_a_lock_and_its_words_quoted() -> None:
    line = cron_line(TASK, Rhythm(days=7, hour=9, weekdays=(0,)))
    assert line.startswith("0 9 * * 1 cd '/home/ada/my app' && flock -n ")
    assert "--print /standup --mode plan > " in line


def test_the_timer_makes_up_for_a_missed_run_and_keeps_the_answer() -> None:
    units = systemd_units(TASK, Rhythm(days=1, hour=9, weekdays=(0, 1, 2, 3, 4)))
    timer, service = units["ybs-standup.timer"], units["ybs-standup.service"]
    assert "OnCalendar=Mon,Tue,Wed,Thu,Fri *-*-* 09:00:00" in timer
    assert "Persistent=true" in timer
    assert "WorkingDirectory=/home/ada/my app" in service
    assert 'ExecStart="/usr/bin/ybs" "--print" "/standup" "--mode" "plan"' in service
    assert "StandardOutput=truncate:/home/ada/.local/state/ybs/scheduled/standup.md" in service


@pytest.mark.integration
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize(
    "rhythm",
    [
        Rhythm(days=1, hour=0),
        Rhythm(days=3, hour=23, minute=45),
        Rhythm(days=7, hour=9, weekdays=(6,)),
    ],
)
def test_systemd_reads_the_timer(rhythm: Rhythm) -> None:
    timer = systemd_units(TASK, rhythm)["ybs-standup.timer"]
    when = timer.partition("OnCalendar=")[2].partition("\n")[0]
    subprocess.run(["systemd-analyze", "calendar", when], check=True, capture_output=True)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def scheduled(rhythm: Rhythm, **rest: Any) -> Scheduled:
    since = at("2026-03-02 12:00").timestamp()  # a Monday
    return Scheduled(name="x", folder="/x", mode="plan", rhythm=rhythm, **{"since": since, **rest})


@pytest.mark.parametrize(
    ("rhythm", "now", "due"),
    [
        (Rhythm(days=1, hour=9), "2026-03-02 13:00", ""),  # agreed to after that
        (Rhythm(days=1, hour=9), "2026-03-03 08:59", ""),
        (Rhythm(days=1, hour=9), "2026-03-03 09:00", "2026-03-03 09:00"),
        (Rhythm(days=1, hour=9), "2026-03-06 08:00", "2026-03-05 09:00"),  # the newest missed one
        (Rhythm(days=7, hour=9, weekdays=(0,)), "2026-03-08 20:00", ""),
        (Rhythm(days=7, hour=9, weekdays=(0,)), "2026-03-10 20:00", "2026-03-09 09:00"),
        (Rhythm(days=1, hour=9, weekdays=(0, 1, 2, 3, 4)), "2026-03-08 20:00", "2026-03-06 09:00"),
        (Rhythm(days=3, hour=9), "2026-03-06 20:00", "2026-03-04 09:00"),  # on the 1st, 4th, 7th, …
        (
            Rhythm(days=1, hour=2, minute=30),
            "2026-03-29 12:00",
            "2026-03-29 02:30",
        ),  # may not exist
    ],
)
def test_what_is_due_is_the_newest_time_that_was_missed(rhythm: Rhythm, now: str, due: str) -> None:
    found = scheduled(rhythm).due(at(now))
    assert found == (at(due).timestamp() if due else 0.0)
    if found:
        assert scheduled(rhythm, begun=found).due(at(now)) == 0.0


def test_what_the_gateway_runs_is_kept_and_a_damaged_file_costs_no_other(tmp_path: Path) -> None:
    kept = scheduled(Rhythm(days=1, hour=9))
    keep(tmp_path / "scheduled", kept)
    (tmp_path / "scheduled" / "a.json").write_text("{")
    assert scheduled_in(tmp_path / "scheduled") == [kept]
    assert scheduled_in(tmp_path / "nowhere") == []
