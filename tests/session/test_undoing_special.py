"""Undo brings back what a command replaced by a pipe or a socket: in these nothing is kept, so nothing is lost."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hosts import this_host
from session.trees import tree
from ybs.checkpoints.states import KeptTurn
from ybs.security.paths.roots import Roots
from ybs.session.undoing import Checkpoints


async def turn(project: Path, act: Callable[[], object]) -> tuple[Checkpoints, KeptTurn]:
    """Play a turn with a command."""
    checkpoints = Checkpoints(Roots(this_host(), project), "session-1", may_write=True)
    checkpoints.begin()
    await checkpoints.before_change("execute", ())
    act()
    kept = await checkpoints.end()
    assert kept is not None
    return checkpoints, kept


def listen(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))


@pytest.mark.integration
@pytest.mark.parametrize("make", [os.mkfifo, listen])
async def test_files_and_folders_come_back_where_a_pipe_or_a_socket_stands(
    project: Path, make: Callable[[Path], object]
):
    (project / "src").mkdir()
    (project / "src/a").write_text("a")
    (project / "b").write_text("b")
    before = tree(project)

    def act() -> None:
        (project / "src/a").unlink()
        (project / "src").rmdir()
        (project / "b").unlink()
        for name in ("src", "b"):
            make(project / name)

    checkpoints, kept = await turn(project, act)
    assert kept.unkept == ()
    undone = await checkpoints.undo([kept.name])
    assert (undone.is_done, (*undone.unkept,), undone.conflicts) == (True, (), ())
    assert tree(project) == before
    again = await checkpoints.redo([kept.name])
    assert set(again.unkept) == {"src", "b"}
    assert (project / "b").read_text() == "b"
