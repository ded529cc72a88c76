"""Bringing paths to the states of a plan: the rights on the way, and what must not happen meanwhile."""

import errno
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from session.trees import tree
from ybs.checkpoints.planning import RestoreStep, Restoring
from ybs.checkpoints.states import ABSENT, State, digest_of, state_at
from ybs.core.errors import Refused
from ybs.security.paths.opening import OpenEntry
from ybs.security.paths.roots import Roots

CONTENTS = {digest_of(text): text for text in (b"1", b"2", b"mine")}


def _file(text: str, mode: int = 0o644) -> State:
    return State(kind="file", mode=mode, size=len(text), digest=digest_of(text.encode()))


def _folder(mode: int = 0o755) -> State:
    return State(kind="folder", mode=mode)


def _restoring(
    project: Path, targets: dict[str, State], get: Callable[[str], bytes | None] = CONTENTS.get
) -> Restoring:
    """Return the undo that brings relative paths to these states from what stands there now."""
    roots = Roots(this_host(), project)
    steps: dict[str, RestoreStep] = {}
    for path, target in targets.items():
        found = state_at(roots, f"{project}/{path}")
        steps[f"{project}/{path}"] = RestoreStep(expected=found, target=target, found=found)
    return Restoring(roots, steps, get)


def test_a_folder_gets_the_rights_to_work_in_it_first_and_its_own_mode_last(project: Path):
    seen: list[int] = []

    def get(digest: str) -> bytes | None:
        seen.append((project / "d").stat().st_mode & 0o777)
        return CONTENTS.get(digest)

    (project / "d").mkdir()
    (project / "d").chmod(0o550)
    targets = {"d": _folder(0o555), "d/a": _file("1", 0o600), "d/e": _folder(0o500)}
    _restoring(project, targets, get).do()
    assert seen == [0o750]
    assert tree(project) == {
        "d": ("folder", 0o555, b""),
        "d/a": ("file", 0o600, b"1"),
        "d/e": ("folder", 0o500, b""),
    }
    (project / "d").chmod(0o755)
    (project / "d" / "e").chmod(0o755)


def test_nobody_waits_for_a_pipe_that_took_the_place_of_a_folder(project: Path):
    (project / "d").mkdir()
    restoring = _restoring(project, {"d": _folder(0o700)})
    (project / "d").rmdir()
    os.mkfifo(project / "d")
    restoring.do()
    assert tree(project) == {"d": ("other", 0o700, b"")}


def test_a_folder_that_is_not_empty_stays_with_its_mode_and_is_named(project: Path):
    (project / "d").mkdir()
    (project / "d" / "a").write_text("1")
    restoring = _restoring(project, {"d": ABSENT, "d/a": ABSENT})
    (project / "d" / "mine").write_text("mine")
    (project / "d").chmod(0o700)
    restoring.do()
    assert restoring.stayed == [f"{project}/d"]
    assert tree(project) == {"d": ("folder", 0o755, b""), "d/mine": ("file", 0o644, b"mine")}


def test_a_folder_that_cannot_go_for_another_reason_ends_the_undo(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "d").mkdir()
    restoring = _restoring(project, {"d": ABSENT})

    def fails(_: str, dir_fd: int) -> None:
        assert dir_fd >= 0
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "rmdir", fails)
    with pytest.raises(OSError, match="Read-only"):
        restoring.do()
    assert restoring.stayed == []


@every_row(
    "name, target", [("a", _file("1")), ("a", ABSENT), ("a", _folder()), ("a", _file("2", 0o600))]
)
def test_what_somebody_changed_since_the_plan_stays_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, name: str, target: State
):
    project = tmp_path_factory.mktemp("project")
    (project / name).write_text("2")
    restoring = _restoring(project, {name: target})
    (project / name).write_text("mine")
    with pytest.raises(Refused, match="changed just now"):
        restoring.do()
    assert tree(project) == {name: ("file", 0o644, b"mine")}


def test_a_damaged_copy_is_refused_and_leaves_nothing_behind(project: Path):
    (project / "a").write_text("2")
    with pytest.raises(Refused, match="a stored copy is damaged"):
        _restoring(project, {"a": _file("1")}, lambda _: None).do()
    assert tree(project) == {"a": ("file", 0o644, b"2")}


def test_what_a_killed_undo_left_half_written_is_replaced(project: Path):
    (project / "a").write_text("2")
    left = project / f".ybs-undo-{digest_of(b'a')[:16]}.tmp"
    left.write_text("half")
    left.chmod(0o666)
    _restoring(project, {"a": _file("1", 0o640)}).do()
    assert tree(project) == {"a": ("file", 0o640, b"1")}


@every_row("step, expected", [(0, 0), (1, 1)])
def test_a_file_of_another_user_stays_theirs(
    project: Path, monkeypatch: pytest.MonkeyPatch, step: int, expected: int
):
    given: list[tuple[int, int]] = []

    def noted(_: int, user: int, group: int) -> None:
        given.append((user, group))
        raise PermissionError

    (project / "a").write_text("2")
    restoring = _restoring(project, {"a": _file("1"), f"new{step}": _file("1")})
    owner = (project / "a").stat()
    monkeypatch.setattr(os, "fchown", noted)
    monkeypatch.setattr(os, "geteuid", lambda: owner.st_uid + step)
    restoring.do()
    assert given == [(owner.st_uid, owner.st_gid)] * expected


def test_an_undo_leaves_no_file_open(project: Path):
    for name in ("edited", "mode", "gone"):
        (project / name).write_text("2")
    (project / "d").mkdir()
    targets = {"edited": _file("1"), "mode": _file("2", 0o600), "gone": ABSENT, "d": _folder(0o700)}
    restoring = _restoring(project, targets)
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 - how many, no more
    restoring.do()
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208 - likewise


@every_row("has_path", [True, False])
def test_what_may_not_be_read_gets_its_mode_where_linux_lets_it_and_does_not_stay_open(
    project: Path, monkeypatch: pytest.MonkeyPatch, has_path: bool
):
    opened, path_flag = OpenEntry.open, getattr(os, "O_PATH", 0)

    def unreadable(place: OpenEntry, flags: int, mode: int = 0o666) -> int:
        if not flags & path_flag:
            raise PermissionError
        return opened(place, flags, mode)

    name = f"d{has_path}"
    restoring = _restoring(project, {name: _folder(0o750)})
    monkeypatch.setattr(OpenEntry, "open", unreadable)
    if not has_path:
        monkeypatch.delattr(os, "O_PATH", raising=False)
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 - how many, no more
    with nullcontext() if hasattr(os, "O_PATH") else pytest.raises(PermissionError):
        restoring.do()
        assert tree(project)[name] == ("folder", 0o750, b"")
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208 - likewise


def test_a_file_that_only_its_mode_changed_keeps_its_place_on_the_disk(project: Path):
    (project / "a").write_text("1")
    before = (project / "a").stat().st_ino
    _restoring(project, {"a": _file("1", 0o600)}).do()
    assert (project / "a").stat().st_ino == before
    assert tree(project) == {"a": ("file", 0o600, b"1")}
