"""`ybs sandbox exec`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hosts import this_host
from ybs.cli import main
from ybs.security.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _sandboxed(project: Path) -> None:
    backend = Sandbox(this_host(), project).backend
    if backend.name == "none":
        pytest.skip(f"NOT TESTED: {backend.why}")


def execute(*words: str, options: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "ybs", *options, "sandbox", "exec", "--", *words],
        input="typed\n",
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_runs_in_the_project_with_its_input_and_its_exit_code(project: Path) -> None:
    done = execute("sh", "-c", "pwd; cat; echo x > made; echo y > ../made; exit 5")
    assert done.returncode == 5
    assert done.stdout == f"{project}\ntyped\n"
    assert (project / "made").exists()
    assert not (project.parent / "made").exists()


def test_a_command_that_a_signal_ended_has_its_number(project: Path) -> None:
    assert execute("sh", "-c", "kill -9 $$").returncode == 137


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["sandbox", "exec"], 2, "the command is missing"),
        (["sandbox", "exec", "--"], 2, "the command is missing"),
        (["sandbox", "exec", "--nonsense", "--", "ls"], 2, "nonsense"),
    ],
)
def test_what_is_no_command_is_bad_usage(words, code, said, capsys):
    assert main(words) == code
    assert said in capsys.readouterr().err


def test_the_home_folder_is_no_project(home, monkeypatch, capsys):
    monkeypatch.chdir(home)
    assert main(["sandbox", "exec", "--", "ls"]) == 1
    assert "home folder" in capsys.readouterr().err


def test_the_terminal_is_not_handed_in_where_it_is_the_output() -> None:
    ours, theirs = os.openpty()
    said = b""
    try:
        words = ("sh", "-c", "[ -t 1 ] || [ -t 2 ] || echo none; echo error >&2; exit 3")
        done = subprocess.run(
            [sys.executable, "-m", "ybs", "sandbox", "exec", "--", *words],
            stdin=theirs, stdout=theirs, stderr=theirs, check=False,
        )  # fmt: skip
        said = os.read(ours, 1000)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 3
    assert sorted(said.split()) == [b"error", b"none"]
