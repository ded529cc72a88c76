"""What runs in a sandbox stands still while a path is held, and goes on after it."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from unittest.mock import Mock

import pytest

from processes import comes
from security import swapping
from ybs.security.sandbox.launch import Launch
from ybs.tools.shell import freezing, path_leases
from ybs.tools.shell.freezing import freeze, thaw
from ybs.tools.shell.orphans import CommandMark
from ybs.tools.shell.path_leases import Pause, lent, paused

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
#: Begins processes without end, of which each writes.
BUSY = 'while :; do sh -c "echo $$ > busy; (sleep 0.001 &)"; done'


@pytest.fixture
def folders(project: Path) -> tuple[Path, Path]:
    one, two = project / "one", project / "two"
    one.mkdir()
    two.mkdir()
    return one, two


def places(one: Path) -> set[int]:
    """Return the folders that were at a path within some 50 ms."""
    found = set[int]()
    for _ in range(50):
        found.add(one.stat().st_ino)
        sleep(0.001)
    return found


async def changing(project: Path) -> CommandMark:
    mark = CommandMark.new()
    await mark.begin(Launch((), {}, writable=(str(project),)))
    return mark


async def test_a_job_does_not_exchange_a_folder_while_it_is_paused(project, home, folders):
    one, two = folders
    with swapping.job(swapping.bubblewrap(project, home), project, one, two) as process:
        mark = await changing(project)
        mark.started(process.pid)
        assert len(places(one)) == 2
        for _ in range(3):
            async with paused((str(one / "x"),)) as pause:
                async with paused((str(two / "x"), "/elsewhere")) as other:
                    assert pause == other == Pause(is_sure=True, paused=1)
                assert len(places(one)) == 1
                with lent(str(one / "x")) as is_lent:
                    assert not is_lent
            assert len(places(one)) == 2
        async with paused(("/elsewhere",)) as pause:
            assert pause == Pause(is_sure=True)
            assert len(places(one)) == 2
        async with paused((str(one),), may_pause=False) as pause:
            assert not pause.is_sure
    mark.end_all(os.getpid(), 0)
    assert path_leases._leased == []


async def test_who_is_given_up_meanwhile_leaves_nothing_paused(project, home, folders, monkeypatch):
    one, two = folders
    began = threading.Event()

    def slowly(first: int) -> frozenset[int] | None:
        began.set()
        sleep(0.1)
        return freeze(first)

    monkeypatch.setattr(path_leases, "freeze", slowly)
    with swapping.job(swapping.bubblewrap(project, home), project, one, two) as process:
        mark = await changing(project)
        mark.started(process.pid)

        async def pausing() -> None:
            async with paused((str(one),)):
                raise AssertionError

        task = asyncio.create_task(pausing())
        await asyncio.to_thread(began.wait)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await comes(lambda: not path_leases._leased)
        assert len(places(one)) == 2
    mark.abandon()
    assert path_leases._leased == []


async def test_what_cannot_be_stopped_is_said(project, home, folders, monkeypatch):
    one, two = folders
    monkeypatch.setattr(path_leases, "_MOST_WAITS", 3)
    mark = await changing(project)
    async with paused((str(one),)) as pause:  # it has begun, and its process is not known yet
        assert not pause.is_sure
    with swapping.job(swapping.landlock(project, home), project, one, two) as process:
        mark.started(process.pid)
        async with paused((str(one),)) as pause:
            assert not pause.is_sure
            assert len(places(one)) == 2
    with swapping.job(swapping.bubblewrap(project, home), project, one, two) as process:
        mark.started(process.pid)
        monkeypatch.setattr(freezing, "_tree", Mock(side_effect=OSError))
        async with paused((str(one),)) as pause:
            assert not pause.is_sure
    mark.abandon()
    async with paused((str(one),)) as pause:
        assert pause.is_sure


@pytest.fixture
def busy(project: Path, home: Path) -> Iterator[int]:
    """Begin what begins processes without end in a sandbox."""
    sandbox = swapping.bubblewrap(project, home)
    launch = sandbox.launch(("/bin/sh", "-c", BUSY), project, os.environ)
    process = subprocess.Popen(
        launch.argv,
        cwd=project,
        env=dict(launch.environ),
        pass_fds=launch.descriptors,
        preexec_fn=launch.before_exec,
    )
    for descriptor in launch.descriptors:
        os.close(descriptor)
    yield process.pid
    process.kill()
    process.wait()


async def test_one_that_begins_others_without_end_is_stopped_too(busy: int, project: Path) -> None:
    written = project / "busy"
    assert await comes(written.exists)
    for _ in range(5):
        stopped = freeze(busy)
        assert stopped
        before = written.stat().st_mtime_ns
        await asyncio.sleep(0.05)
        assert written.stat().st_mtime_ns == before
        thaw(stopped)
        assert await comes(lambda before=before: written.stat().st_mtime_ns != before)


async def test_what_goes_wrong_leaves_nothing_stopped(
    busy: int, project: Path, monkeypatch
) -> None:
    assert await comes((project / "busy").exists)
    looks = iter((freezing._tree, freezing._tree))

    def broken(top: int) -> list[int]:
        for look in looks:
            return look(top)
        raise OSError

    monkeypatch.setattr(freezing, "_tree", broken)
    with pytest.raises(OSError):
        freeze(busy)
    before = (project / "busy").stat().st_mtime_ns
    assert await comes(lambda: (project / "busy").stat().st_mtime_ns != before)


def test_one_that_never_stands_still_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        pid = process.pid
        assert [freeze(each) for each in (0, 1, pid)] == [None] * 3  # in no sandbox
        monkeypatch.setattr(freezing, "_top_below", lambda first: first)
        monkeypatch.setattr(freezing, "_stands", lambda _: False)
        monkeypatch.setattr(freezing, "_WAIT_SECONDS", 0.0)
        assert freeze(pid) is None
        monkeypatch.undo()
        assert not freezing._stands(pid)
        process.kill()
    thaw((pid,))
    assert not freezing._stands(pid)
    assert freeze(pid) is None
