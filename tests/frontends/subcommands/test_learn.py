"""`ybs learn`: the same for scripts, with a diff before anything is written."""

import json
from pathlib import Path

import pytest

from learning.past_sessions import CHANGELOG, turn, write
from rows import every_row
from ybs.cli import main


@pytest.fixture(autouse=True)
def sessions(home: Path) -> Path:
    folder = home / ".config/ybs/sessions"
    folder.parent.mkdir(mode=0o700, parents=True)
    for week in range(4):
        write(
            folder,
            f"changelog-{week}",
            week * 7,
            turn(f"update the changelog for 1.{week}.0", CHANGELOG),
        )
    return folder


@pytest.mark.usefixtures("project")
def test_tasks_as_data(capsys: pytest.CaptureFixture[str]):
    assert main(["learn", "--format", "json"]) == 0
    (task,) = json.loads(capsys.readouterr().out)["tasks"]
    assert (task["id"], task["state"], task["rhythm"]) == (1, "waiting", "each Mon at 09:00")
    assert (
        task["reason"]
        == "asked for 4 times on 4 days, each time: run git log, read CHANGELOG.md, edit CHANGELOG.md"
    )
    assert "update the changelog for $1" in task["command"]


@pytest.mark.usefixtures("project")
def test_nothing_is_written_without_a_yes(home: Path, capsys: pytest.CaptureFixture[str]):
    main(["learn"])
    assert main(["learn", "accept", "1"]) == 5
    told = capsys.readouterr()
    assert "+update the changelog for $1" in told.out
    assert "--yes agrees" in told.err
    assert not (home / ".config/ybs/commands").exists()
    assert main(["learn", "accept", "1", "--yes"]) == 0
    assert (home / ".config/ybs/commands/update-changelog.md").is_file()


def test_for_the_project(project: Path):
    main(["learn"])
    assert main(["learn", "accept", "1", "--yes", "--project"]) == 0
    assert (project / ".ybs/commands/update-changelog.md").is_file()


@pytest.mark.usefixtures("project")
def test_a_timer_is_shown_and_written_on_a_yes(home: Path, capsys: pytest.CaptureFixture[str]):
    main(["learn"])
    main(["learn", "accept", "1", "--yes"])
    units = home / ".config/systemd/user"
    assert main(["learn", "schedule", "1", "--write"]) == 5
    assert not units.exists()
    assert main(["learn", "schedule", "1", "--write", "--yes"]) == 0
    assert sorted(path.name for path in units.iterdir()) == [
        "ybs-update-changelog.service",
        "ybs-update-changelog.timer",
    ]
    assert "systemctl --user enable --now ybs-update-changelog.timer" in capsys.readouterr().out
    assert main(["learn", "schedule", "1", "--cron"]) == 0
    assert "0 9 * * 1 cd /home/ada/app && flock" in capsys.readouterr().out


@pytest.mark.usefixtures("project")
@every_row("options", [["--cron"], []])
def test_what_runs_by_the_clock_is_named_by_its_whole_path(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    main(["learn"])
    main(["learn", "accept", "1", "--yes"])
    monkeypatch.setattr("sys.argv", ["./ybs"])  # the line enters the project, which may have one
    assert main(["learn", "schedule", "1", *options]) == 0
    assert f"{Path.cwd()}/ybs" in capsys.readouterr().out


@pytest.mark.usefixtures("project")
def test_a_deleted_session_is_unlearned(home: Path):
    main(["learn"])
    file = home / ".local/state/ybs/learning.json"
    assert "changelog-2" in file.read_text()
    assert main(["sessions", "delete", "changelog-2", "--yes"]) == 0
    assert "changelog-2" not in file.read_text()


@pytest.mark.usefixtures("project")
@every_row("words", [["accept"], ["list", "3"], ["why", "1", "2"], ["forget", "1", "--all"]])
def test_bad_usage(words: list[str]):
    assert main(["learn", *words]) == 2
