"""Commits and undo, as a person sees them on a real terminal, in a real repository."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hostile_git import needs_git
from screen import Screen
from ybs.testing import call

pytestmark = [pytest.mark.slow, needs_git]
Start = Callable[..., Screen]


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=me", "-c", "user.email=me@here")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def repository(project: Path) -> Path:
    git(project, "-c", "init.defaultBranch=main", "init", "-q")
    (project / ".gitignore").write_text("*.log\nnode_modules/\n")
    (project / "a.py").write_text("def parse(text):\n    return text\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "theirs")
    return project


def test_a_commit_is_asked_about_with_a_key_and_taken_back_without_litter(start, repository):
    text = "def parse(text):\n    return text.strip()\n"
    script = [call("write_file", path="a.py", content=text), "finished", "hello"]
    screen = start(script, "--mode", "accept-edits", columns=100, rows=40)
    screen.sees(r"› *\n", 20)
    screen.keys("strip it\r")
    screen.sees("ybs wants to commit what each turn changes in this repository")
    screen.stays(0.5)
    screen.keys("y")
    screen.sees(r"ybs commits what each turn changed: \[ybs\] Change a.py")
    assert git(repository, "log", "--format=%s").splitlines() == ["[ybs] Change a.py", "theirs"]
    screen.sees(r"› *\n")
    screen.keys("/undo\r")
    screen.sees("The branch is back before commit")
    assert git(repository, "log", "--format=%s").splitlines() == ["theirs"]
    assert git(repository, "status", "--porcelain") == ""
    screen.keys("\x15/autocommit off\r")
    screen.sees("commits nothing in this repository by itself")
    screen.keys("\x04")
    assert screen.ends() == 0


def test_an_ignored_file_that_a_command_removed_comes_back_and_a_bulk_folder_is_named(
    start: Start, repository: Path
) -> None:
    (repository / "local.log").write_text("precious\n")
    (repository / "node_modules" / "left").mkdir(parents=True)
    script = [call("run_shell", command="rm local.log; mv node_modules gone"), "finished"]
    screen = start(script, "--mode", "bypass", columns=100, rows=40)
    screen.sees(r"› *\n", 20)
    screen.keys("clean up\r")
    screen.sees("finished")
    screen.sees(r"› *\n")
    assert not (repository / "local.log").exists()
    screen.keys("/undo\r")
    screen.sees("as before: .*local.log")
    assert "Not brought back" in screen.text
    assert "node_modules" in screen.text
    assert (repository / "local.log").read_text() == "precious\n"
