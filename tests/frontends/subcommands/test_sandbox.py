"""`ybs sandbox exec`."""

import os
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest

from hosts import this_host
from ybs.cli import main
from ybs.security.sandbox.sandbox import Sandbox
from ybs.tools.shell.path_leases import lent

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


def test_no_folder_is_added_by_a_link_of_the_project(home: Path, project: Path) -> None:
    (home / "outside").mkdir()
    (home / "outside/f").write_text("not for the model")
    (project / "lnk").symlink_to(home / "outside")
    done = execute("sh", "-c", "cat lnk/f; echo w > lnk/w", options=("--add-dir", "lnk"))
    assert done.returncode == 3
    assert not done.stdout
    assert "by a link that a project may have put there; name that place" in done.stderr
    assert not (home / "outside/w").exists()
    done = execute("sh", "-c", "cat lnk/f", options=("--add-dir", str(home / "outside")))
    assert done.stdout == "not for the model"


def test_rules_that_protect_nothing_stop_it_as_they_stop_a_session(project: Path) -> None:
    done = execute("touch", "made", options=("--deny", "runshell(rm *)"))
    assert done.returncode == 2
    assert "run_shell?" in done.stderr
    assert not (project / "made").exists()


def test_other_processes_see_that_it_runs(project: Path) -> None:
    this_host().work_in(project)
    words = ("sandbox", "exec", "--", "sh", "-c", "touch here; sleep 60")
    with subprocess.Popen((sys.executable, "-m", "ybs", *words)) as it:
        try:
            assert any(sleep(0.05) or (project / "here").exists() for _ in range(400))
            with lent(str(project / "x")) as is_lent:
                assert not is_lent
        finally:
            it.terminate()
    with lent(str(project / "x")) as is_lent:
        assert is_lent
