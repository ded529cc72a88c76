"""What changes between two looks, or is gone from what was kept, is never taken for the turn's own."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from session.test_undoing import Play
from session.trees import tree
from ybs.checkpoints import scan
from ybs.checkpoints.store import CheckpointStore, Pack


@pytest.fixture
def play(project: Path) -> Play:
    return Play(project)


def _meddle(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something after the plan of an undo is made, and before it is carried out."""
    begin = CheckpointStore.begin

    def meddled(store: CheckpointStore, name: str, overwritten: str = "") -> None:
        act()
        begin(store, name, overwritten)

    monkeypatch.setattr(CheckpointStore, "begin", meddled)


async def test_a_change_in_the_moment_of_an_undo_is_not_overwritten(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    a = play.project / "a"
    a.write_text("1")
    name = await play.name(lambda: a.write_text("2"))
    with monkeypatch.context() as patch:
        _meddle(patch, lambda: a.write_text("mine"))
        assert "changed just now" in (await play.checkpoints.undo([name])).problem
    assert tree(play.project) == {"a": ("file", 0o644, b"mine")}
    assert (await play.checkpoints.undo([name])).conflicts == ("a",)


async def test_a_link_planted_in_the_moment_of_an_undo_leads_nowhere(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    outside, folder = tmp_path / "outside", play.project / "d"
    outside.mkdir()
    folder.mkdir()
    name = await play.name(lambda: (folder / "x").write_text("2"))
    assert (await play.checkpoints.undo([name])).is_done

    def plant() -> None:
        folder.rmdir()
        folder.symlink_to(outside)

    with monkeypatch.context() as patch:
        _meddle(patch, plant)
        assert "may no longer be written" in (await play.checkpoints.redo([name])).problem
    assert tree(outside) == {}


async def test_no_force_removes_a_folder_with_foreign_things_in_it(play: Play):
    a = play.project / "a"
    a.write_text("1")

    def act() -> None:
        a.unlink()
        a.mkdir()
        (a / "new").write_text("2")

    name = await play.name(act)
    (a / "mine").write_text("mine")
    before = tree(play.project)
    assert (await play.checkpoints.undo([name], force=True)).conflicts == ("a",)
    assert tree(play.project) == before
    (a / "mine").unlink()
    assert (await play.checkpoints.undo([name])).is_done
    assert tree(play.project) == {"a": ("file", 0o644, b"1")}


async def test_what_is_ignored_since_is_still_there_and_not_deleted(play: Play):
    (play.project / "a.txt").write_text("1")
    kept = await play.turn(lambda: (play.project / ".gitignore").write_text("*.txt\n"))
    assert kept is not None
    assert kept.paths == (".gitignore",)


async def test_what_was_in_a_folder_that_nobody_could_list_is_not_taken_for_new(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    folder = play.project / "closed"
    folder.mkdir()
    access = os.access

    def denied(path: str, mode: int, dir_fd: int | None = None) -> bool:
        return path != "closed" and access(path, mode, dir_fd=dir_fd)

    play.checkpoints.begin()
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", denied)
        await play.checkpoints.before_change("execute", ())
    (folder / "mine").write_text("there before, for all that is known")
    assert await play.checkpoints.end() is None


async def test_a_file_changed_a_moment_ago_is_read_again(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    (play.project / "a").write_text("1")
    taken: list[bytes] = []
    take = Pack.take

    def taking(pack: Pack, data: bytes) -> str:
        taken.append(data)
        return take(pack, data)

    monkeypatch.setattr(Pack, "take", taking)
    assert scan.UNSETTLED_NS > 1_000_000_000
    assert await play.turn(lambda: None) is None
    assert taken == [b"1", b"1"]


async def test_a_content_that_is_gone_is_named_and_the_rest_comes_back(play: Play):
    for name in "ab":
        (play.project / name).write_text(name)

    def act() -> None:
        for name in "ab":
            (play.project / name).unlink()

    name = await play.name(act)
    (record,) = (Path(os.environ["HOME"]) / ".local/state/ybs/checkpoints").rglob(f"{name}.*")
    os.truncate(record, record.stat().st_size - 1)
    undone = await play.checkpoints.undo([name])
    assert (undone.paths, (*undone.unkept,), undone.is_done) == (("a",), ("b",), True)


async def test_a_link_that_a_tool_deletes_comes_back_as_a_link(play: Play):
    (play.project / "a").write_text("1")
    link = play.project / "link"
    link.symlink_to("a")
    play.checkpoints.begin()
    await play.checkpoints.before_change("delete", [f"{play.project}/link"])
    link.unlink()
    kept = await play.checkpoints.end()
    assert kept is not None
    assert kept.paths == ("link",)
    assert (await play.checkpoints.undo([kept.name])).is_done
    assert link.readlink() == Path("a")


async def test_another_name_of_a_file_outside_keeps_mode_and_content(play: Play, tmp_path: Path):
    outside, inside = tmp_path / "outside", play.project / "a"
    outside.write_text("1")
    inside.hardlink_to(outside)
    name = await play.name(lambda: inside.chmod(0o600))
    assert (await play.checkpoints.undo([name])).is_done
    assert outside.stat().st_mode & 0o777 == 0o600
    assert tree(play.project) == {"a": ("file", 0o644, b"1")}
