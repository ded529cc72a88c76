"""Undo never takes what is not the turn's: foreign changes, large files, and what lies elsewhere."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from session.trees import tree
from ybs.agent import project_walk
from ybs.checkpoints import keeping, planning, scan, states, store
from ybs.checkpoints.states import KeptTurn
from ybs.checkpoints.store import store_of
from ybs.core.errors import Refused, ToolError, YbsError
from ybs.security.paths.roots import Roots
from ybs.session import undoing
from ybs.session.undoing import Checkpoints


class Play:
    """A session's checkpoints on a project, and the turns in it."""

    def __init__(self, project: Path, *, may_write: bool = True) -> None:
        self.project = project
        self.roots = Roots(this_host(), project, blocked=("secret",))
        self.checkpoints = Checkpoints(self.roots, "session-1", may_write=may_write)

    async def turn(self, act: Callable[[], object], *tools: str) -> KeptTurn | None:
        """Play a turn: by a command, or by a tool that names these paths."""
        self.checkpoints.begin()
        if tools:
            await self.checkpoints.before_change(
                "write", [f"{self.project}/{each}" for each in tools]
            )
        else:
            await self.checkpoints.before_change("execute", ())
        act()
        return await self.checkpoints.end()

    async def name(self, act: Callable[[], object], *tools: str) -> str:
        """Play a turn that changes something; return its checkpoint's name."""
        kept = await self.turn(act, *tools)
        assert kept is not None
        return kept.name


@pytest.fixture
def play(project: Path) -> Play:
    return Play(project)


@pytest.mark.integration
async def test_what_somebody_changed_since_is_a_conflict_and_nothing_is_touched(play: Play):
    a, b, c = (play.project / name for name in "abc")
    a.write_text("1")

    def act() -> None:
        a.write_text("2")
        b.write_text("2")
        c.mkdir()

    name = await play.name(act)
    a.write_text("mine")
    before = tree(play.project)
    undone = await play.checkpoints.undo([name])
    assert (undone.conflicts, undone.is_done, undone.paths) == (("a",), False, ())
    assert tree(play.project) == before
    forced = await play.checkpoints.undo([name], force=True)
    assert (forced.paths, forced.is_done) == (("a", "b", "c"), True)
    assert tree(play.project) == {"a": ("file", 0o644, b"1")}
    b.write_text("mine")
    assert (await play.checkpoints.redo([name])).conflicts == ("b",)


async def test_a_damaged_copy_is_named_before_anything_is_touched_and_the_others_are_restored(
    play: Play,
):
    for name in "abc":
        (play.project / name).write_text(f"old {name}")
    name = await play.name(lambda: [(play.project / n).write_text("new") for n in "abc"], *"abc")
    (record,) = (path for path, _ in store_of(this_host(), play.project).records())
    record.write_bytes(record.read_bytes().replace(b"old b", b"old ?"))
    undone = await play.checkpoints.undo([name])
    assert (undone.paths, (*undone.unkept,), undone.is_done) == (("a", "c"), ("b",), True)
    contents = {path: content for path, (_, _, content) in tree(play.project).items()}
    assert contents == {"a": b"old a", "b": b"new", "c": b"old c"}


@pytest.mark.integration
async def test_a_change_between_two_turns_is_a_conflict_of_both_together(play: Play):
    a = play.project / "a"
    a.write_text("1")
    first = await play.name(lambda: a.write_text("2"))
    a.write_text("mine")
    second = await play.name(lambda: a.write_text("3"), "a")
    assert (await play.checkpoints.undo([first])).conflicts == ("a",)
    assert (await play.checkpoints.undo([second, first])).conflicts == ("a",)
    assert (await play.checkpoints.undo([second])).is_done
    assert a.read_text() == "mine"
    assert (await play.checkpoints.undo([first])).conflicts == ("a",)


@pytest.mark.integration
async def test_turns_are_undone_together_and_done_again_in_their_order(play: Play):
    a = play.project / "a"
    a.write_text("1")
    first = await play.name(lambda: a.write_text("2"), "a")
    second = await play.name(lambda: a.write_text("3"), "a")
    assert (await play.checkpoints.undo([second, first])).is_done
    assert a.read_text() == "1"
    assert (await play.checkpoints.redo([second, first])).is_done
    assert a.read_text() == "3"


async def test_a_file_over_the_limit_is_named_and_left_alone(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    for module in (states, scan):
        monkeypatch.setattr(module, "MOST_FILE_BYTES", 10)
    big, small = play.project / "big", play.project / "small"
    big.write_text("x" * 11)

    def act() -> None:
        big.write_text("y" * 12)
        small.write_text("new")

    kept = await play.turn(act)
    assert kept is not None
    assert (kept.paths, kept.unkept) == (("big", "small"), ("big",))
    undone = await play.checkpoints.undo([kept.name])
    assert (undone.paths, (*undone.unkept,), undone.is_done) == (("small",), ("big",), True)
    assert big.read_text() == "y" * 12
    assert play.checkpoints.changes(kept.name) == ("edited big", "created small")
    assert "edited big (not kept)" in play.checkpoints.diff(kept.name)


async def test_nothing_is_written_through_a_link_that_was_planted_since(play: Play, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("2")
    folder = play.project / "d"
    folder.mkdir()
    (folder / "x").write_text("1")
    name = await play.name(lambda: (folder / "x").write_text("2"))
    folder.rename(play.project / "old")
    folder.symlink_to(outside)
    for force in (False, True):
        assert (await play.checkpoints.undo([name], force=force)).conflicts == ("d/x",)
    assert tree(outside) == {"x": ("file", 0o644, b"2")}
    assert folder.is_symlink()


@pytest.mark.integration
async def test_a_folder_that_the_turn_made_a_link_comes_back(play: Play, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = play.project / "d"
    folder.mkdir()
    (folder / "x").write_text("1")

    def act() -> None:
        folder.rename(outside / "moved")
        folder.symlink_to(outside)

    name = await play.name(act)
    there = tree(outside)
    assert (await play.checkpoints.undo([name])).is_done
    assert (folder / "x").read_text() == "1"
    assert (await play.checkpoints.redo([name])).is_done
    assert folder.readlink() == outside
    assert tree(outside) == there


async def test_git_and_blocked_places_are_in_no_checkpoint(play: Play):
    (play.project / ".git").mkdir()
    (play.project / "secret").mkdir()

    def act() -> None:
        (play.project / ".git" / "config").write_text("x")
        (play.project / "secret" / "key").write_text("x")

    assert await play.turn(act) is None
    with pytest.raises(Refused):
        await play.checkpoints.before_change("write", [f"{play.project}/.git/config"])
    with pytest.raises(Refused):
        await play.checkpoints.before_change("write", [f"{play.project.parent}/elsewhere"])


async def test_no_repository_is_in_a_checkpoint_nor_in_the_way_of_an_undo(play: Play):
    (play.project / ".gitignore").write_text("local\n")
    kept = {".hg/dirstate", "sub/.jj/x", ".sl/x", ".HG/x", "local/.hg/x"}
    others = {"main.py", "local/x", "hg~2"}
    for name in kept | others:
        (play.project / name).parent.mkdir(parents=True, exist_ok=True)
        (play.project / name).write_text("1")

    def act() -> None:
        for name in kept | others:
            (play.project / name).write_text("2")
        (play.project / "sub/.sl").write_text("2")

    made = await play.turn(act)
    assert made is not None
    assert {*made.paths} == others
    assert (await play.checkpoints.undo([made.name])).is_done
    assert {(play.project / name).read_text() for name in others} == {"1"}
    assert {(play.project / name).read_text() for name in kept} == {"2"}
    assert (play.project / "sub/.sl").read_text() == "2"


async def test_a_file_in_the_place_of_a_folder_is_named_with_what_went_and_the_folder_comes_back(
    play: Play,
):
    folder = play.project / "d"
    folder.mkdir()
    folder.chmod(0o750)
    (folder / "x").write_text("1")

    def replace() -> None:
        (folder / "x").unlink()
        folder.rmdir()
        folder.write_text("2")
        (play.project / "e" / "f").mkdir(parents=True)

    kept = await play.turn(replace)
    assert kept is not None
    assert kept.paths == ("d", "d/x", "e/f/")
    assert (await play.checkpoints.undo([kept.name])).is_done
    assert tree(play.project) == {"d": ("folder", 0o750, b""), "d/x": ("file", 0o644, b"1")}


@pytest.mark.integration
async def test_a_folder_laid_out_as_a_repository_comes_back_too(play: Play):
    bare = play.project / "fixture"
    for folder in ("objects", "refs"):
        (bare / folder).mkdir(parents=True)
    (bare / "HEAD").write_text("ref")
    before = tree(play.project)

    def act() -> None:
        for path in (bare / "HEAD", bare / "objects", bare / "refs", bare):
            path.unlink() if path.is_file() else path.rmdir()

    name = await play.name(act)
    assert (await play.checkpoints.undo([name])).is_done
    assert tree(play.project) == before


@pytest.mark.integration
async def test_a_project_too_large_is_said_once_and_tools_can_still_be_undone(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    for module in (scan, project_walk):
        monkeypatch.setattr(module, "MOST_PATHS", 2)
    for name in "abc":
        (play.project / name).write_text("1")
    said: list[str] = []
    for number in range(4):
        play.checkpoints.begin()
        await play.checkpoints.before_change("execute", ())
        await play.checkpoints.before_change("edit", [f"{play.project}/a"])
        (play.project / "a").write_text(f"2{number}")
        (play.project / "b").write_text(f"2{number}")
        kept = await play.checkpoints.end()
        assert kept is not None
        assert kept.paths == ("a",)
        said.append(play.checkpoints.notice)
        play.checkpoints.notice = ""
    assert "more than 2 files" in said[0]
    assert said[-2:] == ["", ""]
    monkeypatch.setattr(scan, "MOST_NEW_BYTES", 2)
    with pytest.raises(scan.TooMuch, match="bytes"):
        _scanned(play, lambda: False)
    with pytest.raises(scan.TooMuch, match="too long"):
        _scanned(play, lambda: True)


def _scanned(play: Play, is_over: Callable[[], bool]) -> scan.Snapshot:
    listing = scan.FolderListing(folder=play.project, files=["a", "b"], folders=[], left_out=set())
    snapshot = scan.Snapshot()
    scan.Scanner(play.roots, states.digest_of, is_over).scan([listing], {}, snapshot)
    return snapshot


async def test_after_two_looks_that_were_too_much_none_is_taken_any_more(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scan, "MOST_PATHS", 0)
    (play.project / "a").write_text("1")
    looks: list[int] = []
    look = scan.Scanner.scan

    def counted(*given: object) -> None:
        looks.append(len(looks))
        look(*given)  # type: ignore[arg-type] - as they came

    monkeypatch.setattr(scan.Scanner, "scan", counted)
    for _ in range(4):
        play.checkpoints.begin()
        await play.checkpoints.before_change("execute", ())
        await play.checkpoints.end()
    assert len(looks) == keeping.MOST_FAILURES == 2


@pytest.mark.integration
@every_row(("count", "each", "all_at_once"), [(3, 3, 0), (4, 0, 1)])
async def test_the_disk_is_waited_for_after_each_of_few_files_and_once_for_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, each: int, all_at_once: int
):
    project = tmp_path / str(count)
    project.mkdir()
    play = Play(project)
    for number in range(count):
        (project / str(number)).write_text("1")

    def change() -> None:
        for number in range(count):
            (project / str(number)).write_text("2")

    name = await play.name(change)
    waited: list[str] = []
    monkeypatch.setattr(planning, "MOST_SYNCED", 3)
    monkeypatch.setattr(planning.os, "sync", lambda: waited.append("all"))
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        waited.append("one" if path.is_relative_to(project) else "elsewhere")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    assert (await play.checkpoints.undo([name])).is_done
    assert (waited.count("one"), waited.count("all")) == (each, all_at_once)


async def test_a_second_look_too_large_keeps_what_tools_changed(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    a = play.project / "a"
    a.write_text("1")
    play.checkpoints.begin()
    await play.checkpoints.before_change("execute", ())
    a.write_text("2")
    await play.checkpoints.before_change("write", [f"{play.project}/a", f"{play.project}/d/new"])
    monkeypatch.setattr(scan, "MOST_PATHS", 0)
    (play.project / "d").mkdir()
    (play.project / "d" / "new").write_text("x")
    (play.project / "other").write_text("x")
    kept = await play.checkpoints.end()
    assert kept is not None
    assert kept.paths == ("a", "d/new")
    assert "too much" in play.checkpoints.notice
    assert (await play.checkpoints.undo([kept.name])).is_done
    assert tree(play.project).keys() == {"a", "other"}
    assert a.read_text() == "1"  # as it was before the command, not before the tool


async def test_incognito_keeps_nothing_at_all(project: Path):
    play = Play(project, may_write=False)
    assert await play.turn(lambda: (project / "a").write_text("1")) is None
    assert await play.turn(lambda: (project / "a").write_text("2"), "a") is None
    assert not this_host().state_folder.exists()


async def test_what_is_kept_is_for_its_owner_alone_and_only_what_changed(play: Play):
    (play.project / "same").write_text("never kept on disk")
    assert await play.turn(lambda: None) is None
    name = await play.name(lambda: (play.project / "a").write_text("new"))
    found = tree(this_host().state_folder)
    modes = {
        kind: {mode for k, mode, _ in found.values() if k == kind} for kind, _, _ in found.values()
    }
    assert modes == {"folder": {0o700}, "file": {0o600}}
    (record,) = [content for kind, _, content in found.values() if kind == "file"]
    assert record.endswith(b"\nnew")
    assert b"never kept" not in record
    play.checkpoints.close()
    assert (await Play(play.project).checkpoints.undo([name])).is_done  # in another session
    with pytest.raises(YbsError, match="no longer exists"):
        await play.checkpoints.undo(["session-1.0000"])
    with pytest.raises(YbsError, match="is not a checkpoint"):
        await play.checkpoints.undo(["../x"])


async def test_only_what_changed_is_read_again(play: Play, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scan, "UNSETTLED_NS", -(10**12))
    for number in range(9):
        (play.project / str(number)).write_text(f"{number}")
    taken: list[bytes] = []
    take = store.Pack.take

    def taking(pack: store.Pack, data: bytes) -> str:
        taken.append(data)
        return take(pack, data)

    monkeypatch.setattr(store.Pack, "take", taking)
    await play.turn(lambda: None)
    assert len(taken) == 9
    kept = await play.turn(lambda: (play.project / "4").write_text("longer"))
    assert kept is not None
    assert kept.paths == ("4",)
    assert taken[9:] == [b"longer"]


@pytest.mark.integration
async def test_a_full_disk_is_told_and_the_next_turn_is_kept(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    (play.project / "a").write_text("1")

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(ToolError, match="No space left"):
            await play.checkpoints.before_change("execute", ())
        assert "No space left" in play.checkpoints.notice
    play.checkpoints.notice = ""
    with monkeypatch.context() as patch:
        patch.setattr(keeping.Keeper, "add", full)
        assert await play.turn(lambda: (play.project / "a").write_text("2")) is None
    assert "No space left" in play.checkpoints.notice
    assert await play.turn(lambda: (play.project / "a").write_text("3")) is not None


async def test_a_look_that_is_cancelled_ends_and_counts_for_nothing(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(undoing, "SCAN_SECONDS", 0.0)
    await play.checkpoints.before_change("execute", ())
    assert "too long" in play.checkpoints.notice
    monkeypatch.undo()
    name = await play.name(lambda: (play.project / "a").write_text("2"))
    assert play.checkpoints.changes(name) == ("created a",)
