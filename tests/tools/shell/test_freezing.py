"""What runs in a sandbox stands still while a path is held, and goes on after it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest

from processes import comes
from security import swapping
from ybs.security.sandbox.launch import Launch
from ybs.tools.shell import freezing, orphans
from ybs.tools.shell.freezing import freeze, thaw
from ybs.tools.shell.orphans import CommandMark, held, lent

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


async def test_a_job_does_not_exchange_a_folder_while_a_path_in_it_is_held(project, home, folders):
    one, two = folders
    with swapping.job(swapping.bubblewrap(project, home), project, one, two) as process:
        mark = await changing(project)
        mark.started(process.pid)
        assert len(places(one)) == 2
        for _ in range(3):
            async with held((str(one / "x"),)) as is_still:
                async with held((str(two / "x"), "/elsewhere")) as is_still_too:
                    assert (is_still, is_still_too) == (True, True)
                assert len(places(one)) == 1
                with lent(str(one / "x")) as is_lent:
                    assert not is_lent
            assert len(places(one)) == 2
        async with held(("/elsewhere",)) as is_still:
            assert is_still
            assert len(places(one)) == 2
    assert orphans._frozen == {}
    assert orphans._lent == []


async def test_what_cannot_be_stopped_is_said(project, home, folders):
    one, two = folders
    mark = await changing(project)
    async with held((str(one),)) as is_still:  # it has begun, and its process is not known yet
        assert not is_still
    with swapping.job(swapping.landlock(project, home), project, one, two) as process:
        mark.started(process.pid)
        async with held((str(one),)) as is_still:
            assert not is_still
            assert len(places(one)) == 2


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


def test_one_that_never_stands_still_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        pid = process.pid
        assert freeze(pid) is None  # it is in no sandbox
        monkeypatch.setattr(freezing, "_namespace", lambda each: "other" if each == pid else "")
        monkeypatch.setattr(freezing, "_stands", lambda _: False)
        monkeypatch.setattr(freezing, "_WAIT_SECONDS", 0.0)
        assert freeze(pid) is None
        monkeypatch.undo()
        assert not freezing._stands(pid)
        process.kill()
    thaw((pid,))
    assert not freezing._stands(pid)
    assert freeze(pid) is None
