"""The file of a running session, and what a disk, a person and another process may do to it."""

import asyncio
import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ybs.config.private_file import Busy, Unsafe
from ybs.core.events import AssistantSaid, Event, UserSaid
from ybs.transcripts.line import decoded
from ybs.transcripts.log import SYNC_SECONDS, Log


def said(words: str) -> UserSaid:
    return UserSaid(content=words)


def events_in(path: Path) -> list[tuple[int, int, Event | None]]:
    lines = [decoded(line) for line in path.read_bytes().split(b"\n") if line]
    return [(line.event, line.parent, line.said) for line in lines if line is not None]


def words_in(path: Path) -> list[str]:
    return [event.content for _, _, event in events_in(path) if isinstance(event, UserSaid)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "session-1.jsonl"


def test_each_event_is_in_the_file_at_once_with_the_line_that_it_follows(path: Path):
    log = Log(path)
    assert log.add(said("one")) == 1
    assert events_in(path) == [(1, 0, said("one"))]
    assert log.add(AssistantSaid(content="two")) == 2
    assert log.add(said("three"), parent=0) == log.last == 3
    log.close()
    expected = [(1, 0, said("one")), (2, 1, AssistantSaid(content="two")), (3, 0, said("three"))]
    assert events_in(path) == expected
    assert log.problem == ""


def test_f01_the_file_is_the_owners_alone_whatever_the_umask(path: Path):
    before = os.umask(0)
    try:
        log = Log(path)
        log.add(said("x"))
        log.close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_f02_planted_links_are_refused_and_not_touched(path: Path, tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    path.parent.mkdir(mode=0o700)
    path.symlink_to(victim)
    path.with_name("hard").hardlink_to(victim)
    for planted in (path, path.with_name("hard")):
        with pytest.raises(Unsafe):
            Log(planted)
    assert victim.read_text() == "mine"


def test_f05_a_session_has_one_writer(path: Path):
    log = Log(path)
    log.add(said("one"))
    with pytest.raises(Busy, match="in use by another ybs"):
        Log(path)
    log.close()
    Log(path).close()
    assert words_in(path) == ["one"]


@pytest.mark.integration
def test_f05_another_process_that_writes_is_respected(path: Path):
    log = Log(path)
    log.close()
    code = "import fcntl,sys; fcntl.flock(f := open(sys.argv[1]), 2); print(flush=True); input()"
    command = [sys.executable, "-S", "-E", "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(Busy):
            Log(path)
        other.communicate(b"\n")
    Log(path).close()


def test_a_file_is_gone_on_with_behind_a_torn_line_and_nothing_is_cut_off(path: Path):
    log = Log(path)
    log.add(said("one"))
    log.close()
    with path.open("ab") as file:
        file.write(b'{"timestamp":"2026","type":"us')
    before = path.read_bytes()
    log = Log(path, last=1)
    log.add(said("two"))
    log.close()
    assert path.read_bytes().startswith(before + b"\n")
    assert events_in(path) == [(1, 0, said("one")), (2, 1, said("two"))]


class Disk:
    """A disk that is full from time to time, and then takes a part of what is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = self.is_torn = False
        self._write, self._truncate = os.write, os.ftruncate
        monkeypatch.setattr(os, "write", self.write)
        monkeypatch.setattr(os, "ftruncate", self.truncate)

    def write(self, handle: int, data: memoryview) -> int:
        if self.is_full and len(data) < 50:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._write(handle, data[:20]) if self.is_full else self._write(handle, data)

    def truncate(self, handle: int, size: int) -> None:
        if self.is_torn:
            raise OSError(errno.EIO, "Input/output error")
        self._truncate(handle, size)


@pytest.mark.parametrize("is_torn", [False, True])
async def test_what_a_full_disk_does_not_take_is_there_afterwards_in_order(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_torn: bool
):
    disk = Disk(monkeypatch)
    log = Log(path)
    log.add(said("one"))
    disk.is_full, disk.is_torn = True, is_torn
    assert [log.add(said("two")), log.add(said("three"))] == [2, 3]
    assert log.problem == ("Input/output error" if is_torn else "No space left on device")
    await log.synced()
    assert log.problem
    assert words_in(path) == ["one"]
    disk.is_full = False
    log.add(said("four"))
    assert log.problem == ""
    log.close()
    assert words_in(path) == ["one", "two", "three", "four"]
    assert [number for number, _, _ in events_in(path)] == [1, 2, 3, 4]


async def test_what_waits_is_tried_again_by_a_sync_and_by_closing(path, monkeypatch):
    disk = Disk(monkeypatch)
    log = Log(path)
    disk.is_full = True
    log.add(said("one"))
    disk.is_full = False
    await log.synced()
    assert (log.problem, words_in(path)) == ("", ["one"])
    disk.is_full = True
    log.add(said("two"))
    disk.is_full = False
    log.close()
    assert words_in(path) == ["one", "two"]


def test_a_second_name_for_the_file_is_a_problem_and_nothing_is_lost(path: Path):
    log = Log(path)
    second = path.with_name("second")
    second.hardlink_to(path)
    log.add(said("one"))
    assert "has a second name" in log.problem
    second.unlink()
    log.add(said("two"))
    log.close()
    assert (log.problem, words_in(path)) == ("", ["one", "two"])


def test_a_file_that_is_deleted_meanwhile_is_no_crash(path: Path):
    log = Log(path)
    path.unlink()
    log.add(said("one"))
    log.close()
    assert not path.exists()


async def test_a_sync_is_made_only_where_something_was_written_and_is_shared(path, monkeypatch):
    synced, may_end = list[int](), threading.Event()

    def sync(handle: int) -> None:
        synced.append(handle)
        may_end.wait(5)

    monkeypatch.setattr(os, "fsync", sync)
    log = Log(path)
    await log.synced()
    assert synced == []
    log.add(said("one"))
    waiting = [asyncio.create_task(log.synced()) for _ in range(5)]
    await asyncio.sleep(0)  # all of them wait now
    may_end.set()
    await asyncio.gather(*waiting)
    await log.synced()
    assert len(synced) == 1
    log.add(said("two"))
    await log.synced()
    assert len(synced) == 2
    log.close()


async def test_a_long_turn_is_put_on_disk_while_it_goes_on_but_not_with_every_line(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    synced, now = list[int](), [100.0]
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr("ybs.transcripts.log.monotonic", lambda: now[0])
    log = Log(path)
    log.add(said("one"))
    log.sync_soon()
    await log.synced()
    assert len(synced) == 1  # a second had not passed: that was the second call
    now[0] += SYNC_SECONDS
    log.sync_soon()  # there is nothing new
    log.add(said("two"))
    log.sync_soon()
    log.add(said("three"))
    log.sync_soon()  # one is on its way
    assert log._syncing is not None
    await log._syncing
    assert len(synced) == 2
    await log.synced()
    assert len(synced) == 3
    log.close()


async def test_what_is_written_during_a_sync_gets_one_of_its_own(path, monkeypatch):
    log, sizes = Log(path), list[int]()
    loop, is_written = asyncio.get_running_loop(), asyncio.Event()

    def sync(handle: int) -> None:
        sizes.append(os.fstat(handle).st_size)
        if len(sizes) == 1:  # while the first one runs

            async def write() -> None:
                log.add(said("two"))
                is_written.set()

            asyncio.run_coroutine_threadsafe(write(), loop).result(timeout=5)

    monkeypatch.setattr(os, "fsync", sync)
    log.add(said("one"))
    await log.synced()
    assert is_written.is_set()
    assert sizes[-1] == len(await asyncio.to_thread(path.read_bytes))
    assert len(sizes) == 2
    log.close()


async def test_a_disk_that_does_not_sync_is_a_problem_and_no_crash(path, monkeypatch):
    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    log = Log(path)
    log.add(said("one"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        await log.synced()
        assert log.problem == "Input/output error"
    log.add(said("two"))
    await log.synced()
    assert log.problem == ""
    log.close()


async def test_a_closed_log_says_so_and_does_not_raise(path: Path):
    log = Log(path)
    log.close()
    log.close()
    log.add(said("late"))
    await log.synced()
    assert log.problem == "Bad file descriptor"
    assert words_in(path) == []


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_an_error_when_it_is_opened(path: Path):
    path.parent.mkdir(mode=0o500)
    with pytest.raises(PermissionError):
        Log(path)


def test_an_error_of_the_system_is_an_error_when_it_is_opened(path, monkeypatch):
    opened = os.open

    def refuse(name: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is None:
            return opened(name, flags, mode)
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OSError, match="Read-only file system"):
        Log(path)
