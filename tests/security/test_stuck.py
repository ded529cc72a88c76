"""Programs that hang at a named pipe are found out, whoever of their children it is; others are not."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest

from hosts import this_host
from ybs.git.client import Git, GitError
from ybs.security.sandbox import child
from ybs.security.sandbox.child import STUCK, Failed, run_child
from ybs.security.sandbox.launch import Launch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")


@contextmanager
def running(code: str) -> Iterator[int]:
    with subprocess.Popen(
        ["/bin/sh", "-c", code], stdin=subprocess.PIPE, start_new_session=True
    ) as process:
        yield process.pid
        os.killpg(process.pid, 9)


def comes_true(pid: int, places: frozenset[bytes]) -> bool:
    """Look for as long as a program may need to get there."""
    until = monotonic() + 5
    while not (found := child.is_stuck(pid, places)) and monotonic() < until:
        sleep(0.005)
    return found


@pytest.mark.integration
def test_one_that_waits_for_the_other_end_is_stuck(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with running(f"exec cat {tmp_path}/pipe") as pid:
        assert comes_true(pid, child.OPENING)


@pytest.mark.integration
def test_so_is_one_whose_child_waits(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with running(f"(cat {tmp_path}/pipe; true); true") as pid:
        assert comes_true(pid, child.OPENING)


@pytest.mark.integration
def test_who_reads_an_open_pipe_is_stuck_only_where_it_should_read_none():
    with running("exec cat") as pid:
        assert comes_true(pid, child.READING)
        assert not child.is_stuck(pid)


@pytest.mark.integration
def test_one_that_has_ended_is_not():
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
        assert not child.is_stuck(process.pid)


def test_one_that_ends_while_it_is_looked_at_is_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(child, "_threads_of", lambda process: [process])
    assert not child.is_stuck(2**30)


def test_no_more_than_some_children_are_looked_at(monkeypatch: pytest.MonkeyPatch):
    looked: list[str] = []

    def threads_of(process: str) -> list[str]:
        looked.append(process)
        return ["1"]

    def read(path: str) -> bytes:
        return b"1 2 3 4 5 6 7 8 9" if path.endswith("children") else b"0"

    monkeypatch.setattr(child, "_threads_of", threads_of)
    monkeypatch.setattr(child, "_bytes_of", read)
    assert not child.is_stuck(7)
    assert len(looked) == 64


@pytest.mark.parametrize(
    ("place", "opening", "reading"),
    [
        (b"wait_for_partner", True, True),
        (b"pipe_read", False, True),
        (b"anon_pipe_read", False, True),
        (b"0", False, False),
        (b"do_wait", False, False),
    ],
)
def test_a_thread_of_a_child_says_where_it_waits(
    monkeypatch: pytest.MonkeyPatch, place: bytes, opening: bool, reading: bool
):
    files = {
        "/proc/7/task/7/children": b"8 9 ",
        "/proc/9/task/10/wchan": place,
        "/proc/8/task/8/wchan": b"0",
    }
    threads = {"7": ["7"], "8": ["8"], "9": ["9", "10"]}
    monkeypatch.setattr(child, "_threads_of", threads.__getitem__)
    monkeypatch.setattr(child, "_bytes_of", lambda path: files.get(path, b""))
    assert (child.is_stuck(7), child.is_stuck(7, child.READING)) == (opening, reading)


@pytest.mark.integration
async def test_a_child_that_hangs_at_a_pipe_is_ended_at_once_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(child, "_LOOK_SECONDS", 0.02)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Failed, match=STUCK):
        await run_child(
            Launch(["/bin/sh", "-c", f"sleep 0.1; cat {tmp_path}/pipe"], {"PATH": "/usr/bin:/bin"}),
            folder=Path("/"),
            stdin=None,
            timeout_seconds=8,
            most_bytes=10,
        )


@pytest.fixture
def repository(project: Path) -> Path:
    subprocess.run(["git", "-C", str(project), "init", "-q"], check=True)
    return project


@pytest.mark.integration
@pytest.mark.parametrize("name", [".gitignore", "below/.gitignore", ".git/info/exclude"])
async def test_git_does_not_wait_at_a_pipe_in_the_project(
    repository: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    project = repository
    monkeypatch.setattr(child, "_LOOK_SECONDS", 0.05)
    (project / "below").mkdir()
    (project / "below/a").write_text("a")
    (project / name).unlink(missing_ok=True)
    os.mkfifo(project / name)
    async with asyncio.timeout(6):
        with pytest.raises(GitError, match="named pipe that stands where a file should be"):
            await Git(this_host().environ, project).run(
                "status", "--porcelain", "--untracked-files=all"
            )
