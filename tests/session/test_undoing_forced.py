"""A forced undo can be taken back: what it overwrote is kept."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from session.test_undoing import Play
from session.test_undoing_broken import Failing
from session.trees import tree
from ybs.core.errors import YbsError
from ybs.core.events import FilesRestored
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call

pytestmark = pytest.mark.integration

Open = Callable[..., tuple[Session, RecordedEvents]]


async def test_a_redo_after_a_forced_undo_brings_the_persons_own_lines_back(playing, project):
    async with playing([call("write_file", path="a", content="1\n"), "done"], mode="bypass") as (
        session,
        events,
        _,
    ):
        await session.send("write it")
        (project / "a").write_text("1\nmine\n")
        assert getattr(await session.handle("/undo"), "is_error", False)
        await session.handle("/undo force")
        assert not (project / "a").exists()
        await session.handle("/redo")
        assert (project / "a").read_text() == "1\nmine\n"
        first, second = events.of(FilesRestored)
        assert (first.is_redo, second.is_redo) == (False, True)
        assert first.checkpoints == second.checkpoints
        assert len(session.journal.replay.checkpoints) == 1
        (project / "a").write_text("1\n")
        await session.handle("/undo")
        assert not (project / "a").exists()


async def test_a_forced_undo_that_breaks_off_anywhere_forgets_nothing(tmp_path, monkeypatch):
    broken = 0
    for passing in range(0, 20, 3):
        project = tmp_path / str(passing)
        (project / "d").mkdir(parents=True)
        play = Play(project)
        for name in "abc":
            (project / name).write_text("1")

        def act(project: Path = project) -> None:
            (project / "d").rmdir()
            for name in "abc":
                (project / name).write_text("2")

        turn = await play.name(act)
        for name in "abc":
            (project / name).write_text("mine")
        before = tree(project)
        with monkeypatch.context() as patch:
            Failing(patch, passing)
            done = None
            with suppress(YbsError):  # where nothing was begun
                done = await play.checkpoints.undo([turn], force=True)
        if done is None or not done.is_done:
            broken += done is not None
            done = await play.checkpoints.undo([turn], force=True)
        assert {content for _, _, content in tree(project).values()} == {b"", b"1"}
        assert (await play.checkpoints.undo([done.overwritten])).is_done
        assert tree(project) == before
    assert broken > 2
