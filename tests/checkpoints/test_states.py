"""What stands at a path, looked at while somebody writes there."""

import errno
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hosts import this_host
from rows import every_row
from ybs.checkpoints import states
from ybs.checkpoints.states import (
    ABSENT,
    Change,
    State,
    digest_of,
    state_at,
    state_of,
    unkept_file,
    why_unkept,
)
from ybs.core.errors import Refused
from ybs.security.paths.roots import Roots


def test_a_file_that_grew_since_its_size_was_asked_for_is_read_whole(project: Path):
    file, roots = project / "a", Roots(this_host(), project)
    file.write_text("ab")
    with roots.held(file) as place:
        status = place.status()
        assert status is not None
        file.write_text("abcdefgh")
        assert state_of(place, status, digest_of) == state_at(roots, str(file))


def test_each_kind_of_thing_has_its_state(project: Path):
    (project / "file").write_text("1")
    (project / "file").chmod(0o640)
    (project / "folder").mkdir(mode=0o750)
    (project / "link").symlink_to("no\udcffwhere")
    os.mkfifo(project / "pipe", 0o600)
    roots = Roots(this_host(), project)

    def at(path: str) -> State:
        return state_at(roots, f"{project}/{path}")

    assert at("file") == State(kind="file", mode=0o640, size=1, digest=digest_of(b"1"))
    assert at("folder") == State(kind="folder", mode=0o750)
    assert at("link") == State(kind="link", target="no\\xffwhere")
    pipe = at("pipe")
    assert (pipe.kind, pipe.mode, pipe.is_kept, pipe.is_special) == ("other", 0o600, False, True)
    assert [at(path) for path in ("gone", "gone/x", "file/x", "link/x")] == [ABSENT] * 4
    unknown = at("x" * 300)
    assert unknown == State(kind="other", mark=f"errno {errno.ENAMETOOLONG}")
    assert not unknown.is_special
    for one, other, is_kept, can_be_undone in (
        (at("file"), at("link"), True, True),
        (at("file"), unknown, False, False),
        (unknown, at("file"), False, False),
        (at("file"), pipe, False, True),
        (pipe, at("file"), False, False),
    ):
        change = Change(path="a", before=one, after=other)
        change = Change(path="a", before=one, after=other)
        assert (not change.why_not_redone, not change.why_not_undone) == (is_kept, can_be_undone)


@every_row(
    "error, expected",
    [(FileNotFoundError(), ABSENT), (PermissionError(), None), (Refused("a hard link"), None)],
)
def test_a_file_that_goes_while_it_is_looked_at_is_absent_and_one_that_may_not_be_read_is_not(
    project: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, expected: State | None
):
    file, roots = project / "a", Roots(this_host(), project)
    file.write_text("1")

    def fails(*_: object) -> int:
        raise error

    monkeypatch.setattr("ybs.security.paths.opening.OpenEntry.open", fails)
    state = state_at(roots, str(file))
    mark = unkept_file(file.stat()).mark
    assert state == (expected or State(kind="other", mode=0o644, mark=mark))


@pytest.mark.parametrize("most_at_once", [4, 100])
@every_row(
    "size, grown, is_kept",
    [
        *((0, 0, True), (10, 10, True), (11, 11, False), (10, 9, True)),
        *((3, 10, True), (3, 11, False), (3, 30, False), (10, 11, False), (10, 30, False)),
    ],
)
def test_a_file_over_the_limit_is_not_kept_and_read_no_further_than_that(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    grown: int,
    is_kept: bool,
    most_at_once: int,
):
    monkeypatch.setattr(states, "MOST_FILE_BYTES", 10)
    file, roots = project / "a", Roots(this_host(), project)
    file.write_bytes(b"x" * size)
    reads: list[int] = []
    read = os.read

    def counted(descriptor: int, count: int) -> bytes:
        data = read(descriptor, min(count, most_at_once))  # a file system may give less than it has
        reads.append(len(data))
        return data

    monkeypatch.setattr(os, "read", counted)
    with roots.held(file) as place:
        status = place.status()
        assert status is not None
        file.write_bytes(b"x" * grown)
        state = state_of(place, status, digest_of)
    mark = unkept_file(status).mark
    digest = digest_of(b"x" * grown) if is_kept else ""
    length = size if size > 10 else min(grown, 11)
    assert state == State(
        kind="file", mode=0o644, size=length, digest=digest, mark="" if is_kept else mark
    )
    assert sum(reads) == (0 if size > 10 else length)


def test_no_file_stays_open_that_was_looked_at(project: Path, monkeypatch: pytest.MonkeyPatch):
    (project / "a").write_text("1")
    roots, still_open = Roots(this_host(), project), set[int]()
    open_, close = os.open, os.close

    def opened(*given: Any, **options: Any) -> int:
        still_open.add(descriptor := open_(*given, **options))
        return descriptor

    def closed(descriptor: int) -> None:
        still_open.remove(descriptor)
        close(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opened)
        patch.setattr(os, "close", closed)
        assert state_at(roots, f"{project}/a").size == 1
    assert still_open == set()


def test_nobody_waits_for_a_pipe_that_took_the_place_of_a_file(project: Path):
    file, roots = project / "a", Roots(this_host(), project)
    file.write_text("1")
    with roots.held(file) as place:
        status = place.status()
        assert status is not None
        file.unlink()
        os.mkfifo(file)
        state = state_of(place, status, digest_of)
    assert (state.kind, state.size) == ("file", 0)  # the next look knows it for what it is
    assert state_at(roots, str(file)).kind == "other"


def test_two_things_that_are_not_kept_differ_by_their_marks(project: Path):
    file = project / "a"
    file.write_text("1")
    os.utime(file, ns=(3, 4))
    status = file.stat()
    mark = f"{status.st_ino} 1 4 {status.st_ctime_ns}"
    assert unkept_file(status) == State(kind="file", mode=0o644, size=1, mark=mark)
    assert [State(kind="file", mark=each).is_kept for each in (mark, "")] == [False, True]


def test_what_is_left_out_on_disk_means_nothing_and_no():
    nothing = State(kind="absent", mode=0, size=0, digest="", target="", mark="")
    change = Change(path="a", before=nothing, after=nothing, is_broken=False, is_ignored=False)
    assert msgspec.json.decode(b"{}", type=State) == nothing == ABSENT
    assert msgspec.json.decode(b'{"path":"a"}', type=Change) == change
    assert msgspec.json.encode(nothing) == b"{}"
    assert msgspec.json.encode(Change(path="a")) == b'{"path":"a"}'


def test_each_reason_is_told_by_the_docs_and_each_state_that_is_not_kept_has_one():
    page = Path(__file__).parents[2].joinpath("docs/terminal.md").read_text("utf-8")
    reasons = {
        why_unkept(state)
        for state in (
            State(kind="file", mark="1", size=states.MOST_FILE_BYTES + 1),
            State(kind="file", mark="1"),
            states.BULK,
            states.FULL,
            State(kind="other", mark="special 1"),
            states.ELSEWHERE,
        )
    }
    assert reasons == {
        states.WHY_LARGE,
        states.WHY_NO_ROOM,
        states.WHY_BULK,
        states.WHY_SPECIAL,
        states.WHY_ELSEWHERE,
    }
    assert all(f"| {reason}" in page for reason in reasons)
    assert why_unkept(ABSENT) == why_unkept(State(kind="folder")) == ""
