"""When a session looks at all of its project, what it keeps of a turn, and when it lets go of that."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import time_ns

import pytest

from hosts import this_host
from rows import every_row
from ybs.checkpoints import keeping, scan
from ybs.checkpoints.keeping import Keeper
from ybs.checkpoints.scan import FolderListing, TooMuch
from ybs.checkpoints.states import ABSENT, Change, State, digest_of
from ybs.checkpoints.store import Pack, RunningTurn, StoredContents, TurnRecord
from ybs.security.paths.roots import Roots


class Looking:
    """A keeper, and how many looks it took at the project; each takes as long as the clock is told."""

    def __init__(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project, self.keeper = project, Keeper(Roots(this_host(), project))
        self.looks, self.seconds, self._now = 0, 0.0, 0.0
        monkeypatch.setattr(scan, "monotonic", lambda: self._now)

    def walk(self) -> Iterator[FolderListing]:
        self.looks += 1
        self._now += self.seconds
        names = sorted(path.name for path in self.project.iterdir())
        yield FolderListing(folder=self.project, files=names, folders=[], left_out=set())

    def scan(self, *, has_jobs: bool = False, is_over: Callable[[], bool] = lambda: False) -> int:
        """Look before a command, and return how many looks that took."""
        return self._counted(lambda: self.keeper.scan(self.walk, is_over, has_jobs=has_jobs))

    def settle(self, *, has_jobs: bool = False) -> int:
        """Look after a command, and return how many looks that took."""
        return self._counted(
            lambda: self.keeper.settle(self.walk, lambda: False, has_jobs=has_jobs)
        )

    def end(self) -> tuple[list[Change], set[str]]:
        """End the turn."""
        changes, shared = self.keeper.end(self.walk, lambda: False)
        return changes, set(shared)

    def _counted(self, act: Callable[[], object]) -> int:
        before = self.looks
        act()
        return self.looks - before


@pytest.fixture
def looking(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Looking]:
    (project / "a").write_text("1")
    looking = Looking(project, monkeypatch)
    yield looking
    looking.keeper.close()


@pytest.fixture
def packs(monkeypatch: pytest.MonkeyPatch) -> list[Pack]:
    """Return the files that hold contents, as they are made."""
    made: list[Pack] = []

    def make(folder: Path) -> Pack:
        made.append(Pack(folder))
        return made[-1]

    monkeypatch.setattr(keeping, "Pack", make)
    return made


def _file(text: str) -> State:
    return State(kind="file", mode=0o644, size=len(text), digest=digest_of(text.encode()))


def test_nothing_is_told_before_the_first_turn_and_nothing_is_kept_after_one(looking: Looking):
    keeper = looking.keeper
    told = (keeper.is_busy, keeper.is_open, keeper.is_unseen, keeper.has_given_up)
    assert (*told, keeper.was_unseen, keeper.commands_since_ns) == (*[False] * 5, 0)
    looking.scan()
    (looking.project / "a").write_text("2")
    looking.settle()
    assert (keeper.is_busy, keeper.is_open) == (True, False)
    looking.scan()
    assert (keeper.is_busy, keeper.is_open) == (True, True)
    path = str(looking.project / "a")
    assert looking.end() == ([Change(path=path, before=_file("1"), after=_file("2"))], set())
    assert (keeper.is_busy, keeper.is_open) == (False, False)


def test_the_time_of_the_commands_is_that_at_which_their_turn_began(looking: Looking):
    before = time_ns()
    looking.keeper.begin()
    looking.scan()
    begun = time_ns()
    looking.end()
    assert before <= looking.keeper.commands_since_ns <= begun
    looking.keeper.touch(str(looking.project / "a"))  # by a tool, which runs nothing
    looking.end()
    assert looking.keeper.commands_since_ns == 0


def test_a_job_that_runs_needs_one_look_and_its_end_a_new_one(looking: Looking):
    assert looking.scan(has_jobs=True) == 1
    assert (looking.settle(has_jobs=True), looking.scan(has_jobs=True)) == (0, 0)
    (looking.project / "by the job").write_text("1")
    assert (looking.scan(), looking.settle()) == (1, 1)
    (looking.project / "mine").write_text("1")
    changes, shared = looking.end()
    assert ([Path(change.path).name for change in changes], shared) == (["by the job"], set())


def test_what_a_tool_changed_needs_no_look_at_the_project(looking: Looking):
    path = str(looking.project / "a")
    looking.keeper.touch(path)
    (looking.project / "a").write_text("2")
    assert looking.settle() == 0
    assert looking.end() == ([Change(path=path, before=_file("1"), after=_file("2"))], set())
    assert looking.looks == 0


def test_what_a_tool_did_before_a_command_is_the_turns_though_nobody_looked_after_it(
    looking: Looking,
):
    keeper, path = looking.keeper, str(looking.project / "a")
    keeper.touch(path)
    (looking.project / "a").write_text("2")
    looking.scan()
    keeper.note("s", 1, lambda change: change)
    change = Change(path=path, before=_file("1"), after=_file("2"))
    assert keeper.store.running("s") == RunningTurn(turn=1, changes=(change,), has_more=True)
    assert looking.end() == ([change], set())


QUICK, LIMIT, SLOW = 0.125, 0.25, 0.5  # sums of them are exact


@every_row(
    "seconds, looks_after_a_command",
    [
        ([9.0, SLOW], 1),  # the first one finds the disk cold
        ([9.0, SLOW, SLOW], 0),
        ([QUICK, LIMIT, LIMIT, LIMIT], 1),
        ([QUICK, SLOW, QUICK, SLOW], 1),
        ([QUICK, SLOW, QUICK, SLOW, SLOW], 0),
        ([QUICK, SLOW, SLOW, QUICK], 0),  # for good
    ],
)
def test_two_slow_looks_in_a_row_leave_one_before_the_commands_and_one_after_the_turn(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    seconds: list[float],
    looks_after_a_command: int,
):
    project = tmp_path_factory.mktemp("project")
    (project / "a").write_text("1")
    looking = Looking(project, monkeypatch)
    monkeypatch.setattr(keeping, "SLOW_SECONDS", LIMIT)
    for each in seconds:
        looking.seconds = each
        looking.keeper.begin()
        looking.scan()
    assert looking.settle() == looks_after_a_command
    assert looking.scan() == looks_after_a_command
    looking.keeper.close()


def test_a_look_after_a_command_that_was_too_much_is_left_to_the_end(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
):
    looking.scan()
    with monkeypatch.context() as patch:
        patch.setattr(scan, "MOST_PATHS", 0)
        assert looking.settle() == 1
    (looking.project / "b").write_text("1")
    assert (looking.settle(), looking.scan()) == (0, 0)
    assert [change.path for change in looking.end()[0]] == [str(looking.project / "b")]


def test_a_look_that_took_too_long_makes_the_next_one_quicker(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scan, "UNSETTLED_NS", -(10**12))
    (looking.project / "b").write_text("2")
    over = iter([False, False, False, True])  # both are looked at, and one is read
    with pytest.raises(TooMuch, match="too long"):
        looking.scan(is_over=lambda: next(over))
    assert looking.keeper.is_unseen
    over = iter([False, False, False])
    looking.keeper.begin()
    looking.scan(is_over=lambda: next(over))
    assert next(over, None) is None


@pytest.mark.parametrize("is_more", [0, 1])
def test_contents_that_take_too_much_room_are_let_go_of_between_two_turns(
    looking: Looking, packs: list[Pack], monkeypatch: pytest.MonkeyPatch, is_more: int
):
    monkeypatch.setattr(scan, "UNSETTLED_NS", -(10**12))
    looking.scan()
    (looking.project / "b").write_text("new")
    looking.settle()
    monkeypatch.setattr(keeping, "MOST_PACK_BYTES", packs[0].size - is_more)
    looking.scan()
    assert len(packs) == 1  # the turn needs them
    looking.end()
    looking.scan()
    assert len(packs) == 1 + is_more


def test_a_session_that_ends_closes_the_file_that_holds_the_contents(
    looking: Looking, packs: list[Pack]
):
    for number in (1, 2):  # it may be used again
        looking.scan()
        looking.keeper.close()
        looking.keeper.close()
        assert len(packs) == number
        with pytest.raises(ValueError, match="closed"):
            packs[-1].get(digest_of(b"1"))
        looking.keeper.begin()


def test_what_a_killed_turn_needs_is_on_the_disk_in_each_turn(looking: Looking):
    keeper, path = looking.keeper, str(looking.project / "a")
    for number in (1, 2):
        keeper.begin()
        keeper.touch(path)
        keeper.note("s", number, lambda change: change)
        contents = StoredContents()
        running = keeper.store.running("s", contents)
        assert running is not None
        assert (running.turn, running.open) == (number, {path})
        assert contents.get(digest_of(b"1")) == b"1"


def test_a_note_has_each_content_once_and_one_that_failed_is_begun_anew_with_all(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
):
    keeper, project = looking.keeper, looking.project

    def note(*names: str) -> tuple[int, dict[str, bytes | None]]:
        """Touch files and return how many bytes the note has, and what it says stood there."""
        for name in names:
            keeper.touch(str(project / name))
        keeper.note("s", 1, lambda change: change)
        ((_, status),) = keeper.store.records()
        contents = StoredContents()
        running = keeper.store.running("s", contents)
        assert running is not None
        return status.st_size, {
            Path(change.path).name: contents.get(change.before.digest) for change in running.changes
        }

    for name, text in (("b", "y" * 5000), ("c", "y" * 5000), ("d", "z" * 5000)):
        (project / name).write_text(text)
    keeper.begin()
    size, _ = note("a", "b")
    more, _ = note("c")
    assert 5000 < size < more < 5000 + 2000

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    keeper.touch(str(project / "d"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(OSError, match="No space left"):
            note()
    assert note()[1] == {"a": b"1", "b": b"y" * 5000, "c": b"y" * 5000, "d": b"z" * 5000}


def test_what_is_only_looked_at_is_not_kept_and_what_is_kept_can_be_added(
    looking: Looking, packs: list[Pack]
):
    keeper, path = looking.keeper, str(looking.project / "a")
    assert keeper.look_at(path, keeps=False) == _file("1")
    assert packs == []
    change = Change(path="a", before=keeper.look_at(path))
    assert packs[0].get(digest_of(b"1")) == b"1"
    record = keeper.add("s", [change])
    assert record == TurnRecord(name=record.name, changes=(change,))


@every_row(
    "before, after, now, is_open, expected",
    [
        ("1", "2", "2", False, ("1", "2", False)),
        ("1", "2", "2", True, ("1", "2", False)),
        ("1", "2", "3", False, ("1", "3", True)),
        ("1", "2", "3", True, ("1", "3", False)),
        ("1", "1", "3", False, ("1", "1", False)),  # nothing that is the turn's
        ("1", "1", "3", True, ("1", "3", False)),
        ("1", "1", "1", True, ("1", "1", False)),
        ("1", "2", None, False, ("1", None, True)),
    ],
)
def test_a_killed_turn_has_what_its_tool_was_at_and_a_later_change_is_somebody_elses(
    project: Path,
    before: str,
    after: str,
    now: str | None,
    is_open: bool,
    expected: tuple[str, str | None, bool],
):
    keeper, file = Keeper(Roots(this_host(), project)), project / "a"
    file.unlink(missing_ok=True)
    if now is not None:
        file.write_text(now)
    change = Change(path="a", before=_file(before), after=_file(after))
    left = expected[1]
    assert keeper.completed(change, str(file), is_open=is_open) == Change(
        path="a",
        before=_file(expected[0]),
        after=ABSENT if left is None else _file(left),
        is_broken=expected[2],
    )
    keeper.close()
