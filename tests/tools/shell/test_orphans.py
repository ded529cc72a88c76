"""Processes that left their group: found by their mark, whatever their numbers."""

import asyncio
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from processes import is_alive
from rows import every_row
from ybs.security.sandbox.launch import Launch
from ybs.tools.shell import orphans, path_leases
from ybs.tools.shell.orphans import CommandMark
from ybs.tools.shell.path_leases import lent

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="strays are only found through /proc"
)
Start = Callable[[CommandMark], subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def one(mark: CommandMark) -> subprocess.Popen[bytes]:
        environ = mark.put_on({"PATH": "/usr/bin:/bin"})
        started.append(subprocess.Popen(["sleep", "60"], env=environ, start_new_session=True))
        seen = Path(f"/proc/{started[-1].pid}/environ")
        assert any(seen.read_bytes() for _ in range(100_000))  # empty while it begins
        return started[-1]

    yield one
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.integration
@pytest.mark.parametrize(("older", "seconds"), [(1, 0.0), (-1, 0.0), (1, 5.0), (-1, 5.0)])
def test_what_carries_the_mark_is_ended(start, monkeypatch, older, seconds):
    mark = CommandMark.new()
    process = start(mark)
    # -1: the numbers began again from 1, so what is left has a lower one than the shell had
    shell = process.pid - older
    monkeypatch.setattr(orphans, "_newest_process", lambda: process.pid)
    assert mark.end_all(shell, seconds) == 1
    assert process.wait() == -9
    assert mark.end_all(shell, seconds) == 0


@pytest.mark.integration
def test_one_that_is_just_beginning_is_looked_at_again(start, monkeypatch):
    mark = CommandMark.new()
    process = start(mark)
    look, looks = orphans._environ_of, []

    def early(pid: int) -> bytes:
        looks.append(pid)
        return b"" if pid == process.pid and looks.count(pid) < 3 else look(pid)

    monkeypatch.setattr(orphans, "_environ_of", early)
    assert mark.end_all(process.pid - 1, 0) == 1


@pytest.mark.integration
def test_nobody_waits_for_one_that_has_ended_and_is_not_buried(start: Start):
    process = start(CommandMark.new())
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert orphans._environ_of(process.pid) == orphans._GONE


@pytest.mark.integration
def test_a_mark_that_only_begins_alike_is_another_one(start: Start):
    mark = CommandMark(f"{orphans.token()}.1;")
    other = start(CommandMark(f"{orphans.token()}.11;"))
    assert mark.end_all(1, 60) == 0
    assert is_alive(other.pid)


def test_a_ybs_inside_keeps_the_outer_mark():
    outer, inner = CommandMark("a.1;"), CommandMark("b.1;")
    assert inner.put_on(outer.put_on({})) == {orphans.VARIABLE: "a.1;b.1;"}


@every_row(
    ("newest", "shell", "seconds", "expected"),
    [
        (105, 100, 0.0, [101, 102, 103, 104, 105]),
        (100, 100, 0.0, []),
        (1100, 100, 0.0, list(range(101, 1101))),
        (1101, 100, 0.0, [7, 103]),  # who is there, instead of so many tries
        (99, 100, 0.0, [7, 103]),  # the numbers began again
        (105, 100, 0.9, [101, 102, 103, 104, 105]),
        (105, 100, 1.0, [7, 103]),
    ],
)
def test_after_a_short_command_only_newer_processes_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, newest: int, shell: int, seconds: float, expected: list[int]
):
    monkeypatch.setattr(orphans, "_newest_process", lambda: newest)
    monkeypatch.setattr(orphans.os, "listdir", lambda _: ["self", "7", "loadavg", "103"])
    assert list(orphans._candidates(shell, seconds)) == expected


def test_each_command_has_a_mark_of_its_own():
    first, second = CommandMark.new(), CommandMark.new()
    assert re.fullmatch(r"ybs-[0-9a-f]{12}", orphans.token())
    assert re.fullmatch(rf"{orphans.token()}\.[0-9]+;", first.text)
    assert first != second


@every_row("said", [b"", b"\n", b"0.1 0.2 0.3 1/9 many"])
def test_a_system_that_counts_no_processes_is_no_trouble(monkeypatch, said):
    monkeypatch.setattr(orphans, "_read", lambda _: said)
    assert orphans._newest_process() == -1


def test_where_the_system_tells_nothing_nothing_is_found(monkeypatch: pytest.MonkeyPatch):
    def closed(*_arguments: object) -> None:
        raise OSError

    monkeypatch.setattr("builtins.open", closed)
    monkeypatch.setattr(orphans.os, "listdir", closed)
    assert CommandMark.new().end_all(1, 0) == 0


async def test_no_path_is_lent_where_a_running_command_may_change_files():
    mark = CommandMark.new()
    await mark.begin(Launch((), {}, writable=("/a/project",)))
    for path, expected in (("/a/project/b/c", False), ("/a/project", False), ("/a/other", True)):
        with lent(path) as is_lent:
            assert is_lent is expected, path
    mark.end_all(os.getpid(), 0)
    with lent("/a/project/b/c") as is_lent:
        assert is_lent


async def test_a_command_that_never_started_holds_nothing():
    mark = CommandMark.new()
    await mark.begin(Launch((), {}, writable=("/a/project",)))
    del mark
    with lent("/a/project/b") as is_lent:
        assert is_lent


async def test_a_command_begins_when_what_it_may_change_is_lent_no_longer():
    launch, mark = Launch((), {}, writable=("/a/project",)), CommandMark.new()
    with lent("/a/project/b"), lent("/a/project/b"):
        await CommandMark.new().begin(Launch((), {}, writable=("/a/other",)))
        beginning = asyncio.create_task(mark.begin(launch))
        await asyncio.sleep(3 * path_leases.WAIT_SECONDS)
        assert not beginning.done()
    await beginning
    with lent("/a/project/b") as is_lent:
        assert not is_lent


async def test_one_that_is_given_up_meanwhile_leaves_no_descriptor():
    reading_end, writing_end = os.pipe()
    launch = Launch((), {}, descriptors=(reading_end, writing_end), writable=("/a",))
    with lent("/a/b"):
        beginning = asyncio.create_task(CommandMark.new().begin(launch))
        await asyncio.sleep(0)
        beginning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await beginning
    for descriptor in launch.descriptors:
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(descriptor)
