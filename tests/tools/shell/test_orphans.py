"""Processes that left their group: found by their mark, whatever their numbers."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from processes import is_alive
from rows import every_row
from ybs.tools.shell import orphans
from ybs.tools.shell.orphans import Mark

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="strays are only found through /proc"
)
Start = Callable[[Mark], subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def one(mark: Mark) -> subprocess.Popen[bytes]:
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
def test_what_carries_the_mark_is_ended(
    start: Start, monkeypatch: pytest.MonkeyPatch, older: int, seconds: float
):
    mark = Mark.new()
    process = start(mark)
    # -1: the numbers began again from 1, so what is left has a lower one than the shell had
    shell = process.pid - older
    monkeypatch.setattr(orphans, "_newest_process", lambda: process.pid)
    assert mark.end_all(shell, seconds) == 1
    assert process.wait() == -9
    assert mark.end_all(shell, seconds) == 0


@pytest.mark.integration
def test_one_that_is_just_beginning_is_looked_at_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    mark = Mark.new()
    process = start(mark)
    look, looks = orphans._environ_of, []

    def early(pid: int) -> bytes:
        looks.append(pid)
        return b"" if pid == process.pid and looks.count(pid) < 3 else look(pid)

    monkeypatch.setattr(orphans, "_environ_of", early)
    assert mark.end_all(process.pid - 1, 0) == 1


@pytest.mark.integration
def test_nobody_waits_for_one_that_has_ended_and_is_not_buried(start: Start):
    process = start(Mark.new())
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert orphans._environ_of(process.pid) == orphans._GONE


@pytest.mark.integration
def test_a_mark_that_only_begins_alike_is_another_one(start: Start):
    mark = Mark(f"{orphans.token()}.1;")
    other = start(Mark(f"{orphans.token()}.11;"))
    assert mark.end_all(1, 60) == 0
    assert is_alive(other.pid)


def test_a_ybs_inside_keeps_the_outer_mark():
    outer, inner = Mark("a.1;"), Mark("b.1;")
    assert inner.put_on(outer.put_on({})) == {orphans.VARIABLE: "a.1;b.1;"}


class FakeSystem:
    """The processes of a machine by their numbers: each with its environment, empty while it begins."""

    def __init__(self, environs: dict[int, bytes], newest: int = 0) -> None:
        self.environs, self.newest = environs, newest
        self.states: dict[int, bytes] = {}
        self.killed: list[int] = []
        self.makes: dict[int, int] = {}  # who has made another one by the time it is killed
        self.rounds = 0

    def read(self, name: str) -> bytes:
        """Return what stands in a file of /proc."""
        if name == "/proc/loadavg":
            return b"0.10 0.20 0.30 1/99 %d\n" % self.newest
        _, _, pid, kind = name.split("/")
        if int(pid) not in self.environs:
            raise FileNotFoundError
        if kind == "environ":
            return self.environs[int(pid)]
        return b"%s (a) Z (b c) %s 1 2" % (pid.encode(), self.states.get(int(pid), b"S"))

    def kill(self, pid: int, number: int) -> None:
        """End a process."""
        assert number == 9
        self.killed.append(pid)
        environ = self.environs.pop(pid)
        if pid in self.makes:
            self.newest = max(self.newest, self.makes[pid])
            self.environs[self.makes[pid]] = environ

    def list(self, folder: str) -> list[str]:
        """Return what stands in /proc."""
        assert folder == "/proc"
        return ["self", "loadavg", *map(str, self.environs)]

    def sleep(self, _seconds: float) -> None:
        """Count the rounds."""
        self.rounds += 1


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> FakeSystem:
    fake = FakeSystem({})
    monkeypatch.setattr(orphans, "_read", fake.read)
    monkeypatch.setattr(orphans, "sleep", fake.sleep)
    monkeypatch.setattr(orphans, "os", SimpleNamespace(kill=fake.kill, listdir=fake.list))
    return fake


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
    system: FakeSystem, newest: int, shell: int, seconds: float, expected: list[int]
):
    system.environs, system.newest = {7: b"", 103: b""}, newest
    assert list(orphans._candidates(shell, seconds)) == expected


def test_all_that_carry_the_mark_are_ended_and_nobody_else(system: FakeSystem):
    system.environs = {101: b"A=1\0RUN_BY_YBS=a.1;\0", 102: b"A=1\0", 103: b"RUN_BY_YBS=o.1;a.1;", 104: b"RUN_BY_YBS=a.11;"}  # fmt: skip
    system.newest, system.makes = 104, {103: 105}
    assert Mark("a.1;").end_all(100, 0) == 3
    assert system.killed == [101, 103, 105]
    assert system.rounds == 2, "until there is nothing more"


def test_those_that_make_others_for_ever_are_given_up(system: FakeSystem):
    system.environs, system.newest = {101: b"RUN_BY_YBS=a.1;"}, 101
    system.makes = {pid: pid + 1 for pid in range(101, 200)}
    assert Mark("a.1;").end_all(100, 0) == 5


@every_row(
    ("pid", "state", "rounds"),
    [
        (101, b"S", 5),  # it is just beginning
        (100, b"S", 0),  # the shell itself, and what is older: a thread of the system has none
        (99, b"S", 0),
        (101, b"Z", 0),
        (101, b"X", 0),
    ],
)
def test_one_without_an_environment_is_waited_for_where_it_is_newer_and_not_dead(
    system: FakeSystem, pid: int, state: bytes, rounds: int
):
    system.environs, system.states, system.rounds = {pid: b""}, {pid: state}, 0
    assert Mark("a.1;").end_all(100, 5) == 0
    assert system.rounds == rounds


def test_a_process_that_is_gone_is_not_waited_for(system: FakeSystem):
    system.newest = 103
    assert Mark("a.1;").end_all(100, 0) == 0
    assert system.rounds == 0


def test_each_command_has_a_mark_of_its_own():
    first, second = Mark.new(), Mark.new()
    assert re.fullmatch(r"ybs-[0-9a-f]{12}", orphans.token())
    assert re.fullmatch(rf"{orphans.token()}\.[0-9]+;", first.text)
    assert first != second


@every_row("said", [b"", b"\n", b"0.1 0.2 0.3 1/9 many"])
def test_a_system_that_counts_no_processes_is_no_trouble(
    monkeypatch: pytest.MonkeyPatch, said: bytes
):
    monkeypatch.setattr(orphans, "_read", lambda _: said)
    assert orphans._newest_process() == -1


def test_where_the_system_tells_nothing_nothing_is_found(monkeypatch: pytest.MonkeyPatch):
    def closed(*_arguments: object) -> None:
        raise OSError

    monkeypatch.setattr("builtins.open", closed)
    monkeypatch.setattr(orphans.os, "listdir", closed)
    assert Mark.new().end_all(1, 0) == 0
