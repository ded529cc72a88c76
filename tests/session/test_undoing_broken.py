"""An undo that breaks off half-way, wherever that is, is brought to its end when it is asked for again."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from session.test_undoing import Play
from session.trees import tree

CALLS = ("replace", "unlink", "mkdir", "rmdir", "symlink", "fchmod")


def _prepare(project: Path) -> None:
    (project / "d" / "e").mkdir(parents=True)
    (project / "d" / "e" / "x").write_text("1")
    (project / "edited").write_text("1")
    (project / "link").symlink_to("edited")
    (project / "file").write_text("a folder soon")
    (project / "mode").write_text("1")


def _change(project: Path) -> None:
    shutil.rmtree(project / "d")
    (project / "d").write_text("a file now")
    (project / "edited").write_text("2")
    (project / "link").unlink()
    (project / "link").symlink_to("elsewhere")
    (project / "file").unlink()
    (project / "file" / "in").mkdir(parents=True)
    (project / "file" / "in" / "y").write_text("new")
    (project / "file").chmod(0o750)
    (project / "mode").chmod(0o600)
    (project / "new").write_text("new")


class Failing:
    """Lets so many calls that change something pass, and fails at the next."""

    def __init__(self, patch: pytest.MonkeyPatch, passing: int) -> None:
        self.left = passing
        for name in CALLS:
            patch.setattr(os, name, self._wrapped(getattr(os, name)))

    def _wrapped(self, real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if (
                "dir_fd" not in options
                and "src_dir_fd" not in options
                and real.__name__ != "fchmod"
            ):
                return real(*arguments, **options)  # ybs's own files
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments, **options)

        return call


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def sync(_: int) -> None:
        pass

    monkeypatch.setattr(os, "fsync", sync)


@pytest.mark.integration
async def test_an_undo_that_breaks_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert await _break_off(tmp_path, monkeypatch, is_redo=False, step=5) > 2


@pytest.mark.slow
@pytest.mark.parametrize("is_redo", [False, True])
async def test_an_undo_or_redo_that_breaks_off_anywhere_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_redo: bool
):
    assert await _break_off(tmp_path, monkeypatch, is_redo=is_redo, step=1) > 15


async def _break_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_redo: bool, step: int
) -> int:
    breaks = 0
    for passing in range(0, 99, step):
        project = tmp_path / str(passing)
        project.mkdir()
        _prepare(project)
        before = tree(project)
        play = Play(project)
        name = await play.name(lambda: _change(project))  # noqa: B023 - called at once
        after = tree(project)
        if is_redo:
            assert (await play.checkpoints.undo([name])).is_done
            assert tree(project) == before
        again = play.checkpoints.redo if is_redo else play.checkpoints.undo
        with monkeypatch.context() as patch:
            Failing(patch, passing)
            broken = await again([name])
        if broken.is_done:
            break
        breaks += 1
        assert "No space left" in broken.problem
        assert not broken.conflicts
        done = await again([name])
        assert done.is_done, (passing, done)
        assert tree(project) == (after if is_redo else before), passing
    return breaks


async def test_what_a_killed_undo_left_beside_a_file_goes(project, monkeypatch):
    (project / "a").write_text("1")
    play = Play(project)
    name = await play.name(lambda: (project / "a").write_text("2"))

    def killed(name: str, *_: object, **options: Any) -> None:
        os.stat(name, dir_fd=options.get("dir_fd", options.get("src_dir_fd")))
        raise OSError(errno.EIO, "killed")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        patch.setattr(os, "unlink", killed)
        assert (await play.checkpoints.undo([name])).problem
    assert len(tree(project)) == 2
    assert (await play.checkpoints.undo([name])).is_done
    assert tree(project) == {"a": ("file", 0o644, b"1")}
