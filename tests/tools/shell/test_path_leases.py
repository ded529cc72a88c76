"""Commands and paths that are lent, in two processes of ybs that have one state folder."""

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest

from processes import comes
from ybs.config.host import states, unnamed
from ybs.security.sandbox.launch import Launch
from ybs.tools.shell import path_leases
from ybs.tools.shell.orphans import CommandMark
from ybs.tools.shell.path_leases import Pause, lent, may_change, paused

pytestmark = pytest.mark.integration
#: Begins a command that may change files in a folder, or lends that, until its input ends.
OTHER = """
import sys
from ybs.config.host import states, unnamed
from ybs.tools.shell.path_leases import lent, may_begin, note_ended
what, state, folder = sys.argv[1:]
states.add(state)
if what == "incognito":
    unnamed.add(folder)
class Mark: pass
mark = Mark()
if what == "lent":
    with lent(folder) as is_lent:
        print(is_lent, flush=True)
        sys.stdin.read()
else:
    print(may_begin(mark, (folder + "/d",)), flush=True)
    sys.stdin.read()
    note_ended(mark)
"""


@pytest.fixture
def leases(tmp_path: Path) -> Path:
    """Return the folder of the notes of two processes."""
    states.add(str(tmp_path / "state"))
    return tmp_path / "state/leases"


@contextmanager
def other(what: str, folder: Path, leases: Path) -> Generator[subprocess.Popen[bytes]]:
    words = (sys.executable, "-c", OTHER, what, str(leases.parent), str(folder))
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout
        assert process.stdout.readline() == b"True\n"
        try:
            yield process
        finally:
            assert process.stdin
            process.stdin.close()


async def test_a_command_of_another_process_is_seen(project, leases, monkeypatch):
    monkeypatch.setattr(path_leases, "_MOST_WAITS", 3)
    with other("command", project, leases):
        for path, is_still in ((project / "d/x", False), (project, False), (project / "e", True)):
            assert may_change(str(path)) is not is_still
            with lent(str(path)) as is_lent:
                assert is_lent is is_still
            for may_pause in (True, False):
                async with paused((str(path),), may_pause=may_pause) as pause:
                    assert pause == Pause(is_sure=is_still)
        assert len(list(leases.iterdir())) == 1
    async with paused((str(project),)) as pause:
        assert pause.is_sure
    assert list(leases.iterdir()) == []


async def test_a_short_command_of_another_process_is_waited_for(project, leases):
    async def ending(process: subprocess.Popen[bytes]) -> None:
        await asyncio.sleep(0.05)
        assert process.stdin
        process.stdin.close()

    with other("command", project, leases) as process:
        task = asyncio.create_task(ending(process))
        async with paused((str(project),)) as pause:
            assert pause.is_sure
        await task


async def test_a_command_waits_while_another_process_lends_a_path(project, leases):
    mark, launch = CommandMark.new(), Launch((), {}, writable=(str(project),))
    with other("lent", project / "x", leases):
        await CommandMark.new().begin(Launch((), {}, writable=(f"{project}/y",)))
        beginning = asyncio.create_task(mark.begin(launch))
        await asyncio.sleep(5 * path_leases.WAIT_SECONDS)
        assert not beginning.done()
        with lent(str(project / "x")) as is_lent:  # two may lend the same
            assert is_lent
    await beginning
    assert may_change(str(project))
    mark.end_all(os.getpid(), 0)
    assert list(leases.iterdir()) == []


async def test_one_that_lends_in_the_moment_of_a_begin_is_seen(project, leases, monkeypatch):
    """Both look after they have written."""
    is_elsewhere = Mock(side_effect=[False, True])
    monkeypatch.setattr(path_leases, "_is_elsewhere", is_elsewhere)
    assert not path_leases.may_begin(CommandMark.new(), (str(project),))
    assert list(leases.iterdir()) == []


@pytest.mark.parametrize("what", ["command", "lent"])
async def test_one_that_was_killed_leaves_nothing(project, leases, what):
    with other(what, project, leases) as process:
        process.kill()
        process.wait()
        assert len(list(leases.iterdir())) == 1
        mark = CommandMark.new()
        await mark.begin(Launch((), {}, writable=(str(project),)))
        assert len(list(leases.iterdir())) == 1
        mark.abandon()
    with lent(str(project)) as is_lent:
        assert is_lent
    assert list(leases.iterdir()) == []


async def test_a_command_that_is_forgotten_leaves_nothing(project, leases):
    mark = CommandMark.new()
    for _ in range(2):  # it is begun anew
        await mark.begin(Launch((), {}, writable=(str(project),)))
        assert len(list(leases.iterdir())) == 1
    del mark
    assert await comes(lambda: not list(leases.iterdir()))


async def test_an_incognito_session_names_no_folder(project, leases):
    with other("incognito", project, leases):
        (note,) = leases.iterdir()
        assert note.read_bytes() == b"command\0/"
        assert may_change(str(project))
    unnamed.add(str(project))
    with lent(str(project / "private")):
        (note,) = leases.iterdir()
        assert note.read_bytes() == b"lent\0/"


@pytest.mark.parametrize(("number", "is_still"), [(errno.ENOSPC, False), (errno.EROFS, True)])
async def test_without_a_place_for_notes_nothing_is_lent_but_where_no_process_has_one(
    project, leases, monkeypatch, number, is_still
):
    monkeypatch.setattr(path_leases._Note, "_write", Mock(side_effect=OSError(number, "")))
    with lent(str(project)) as is_lent:
        assert is_lent is is_still
    async with paused((str(project),)) as pause:
        assert pause.is_sure is is_still
    mark = CommandMark.new()
    await mark.begin(Launch((), {}, writable=(str(project),)))
    mark.abandon()
    assert not leases.exists()


async def test_notes_that_cannot_be_read_may_be_about_anything(project, leases):
    leases.parent.mkdir()
    leases.symlink_to(leases)
    assert may_change(str(project))
    with lent(str(project)) as is_lent:
        assert not is_lent
    assert path_leases.may_begin(CommandMark.new(), (str(project),))


async def test_a_note_that_another_process_removes_as_it_is_made_is_made_again(
    project, leases, monkeypatch
):
    flock, taken = path_leases.fcntl.flock, []

    def late(handle: int, how: int) -> None:
        if not taken:
            taken.extend(leases.iterdir())
            taken[0].unlink()
        flock(handle, how)

    monkeypatch.setattr(path_leases.fcntl, "flock", late)
    with lent(str(project)) as is_lent:
        assert is_lent
        assert len(list(leases.iterdir())) == 1
        assert not taken[0].exists()
    assert list(leases.iterdir()) == []
