"""Looking at all of a project: what is read, what is known already, and where it becomes too much."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from ybs.checkpoints import scan, states
from ybs.checkpoints.scan import FolderListing, KnownPaths, Scanner, Snapshot, TooMuch
from ybs.checkpoints.states import BULK, State, digest_of
from ybs.security.paths.roots import Roots


def _file(text: str) -> State:
    return State(kind="file", mode=0o644, size=len(text), digest=digest_of(text.encode()))


def _scanned(
    project: Path,
    known: Mapping[str, KnownPaths] | None = None,
    *,
    since_ns: int = 2**63,
    files: Sequence[str] | None = None,
    left_out: Iterable[str] = (),
    ignored: Iterable[str] = (),
    bulk: Iterable[str] = (),
) -> tuple[Snapshot, list[bytes]]:
    """Look at a folder, and return what was seen, and what was read."""
    read: list[bytes] = []

    def take(data: bytes) -> str:
        read.append(data)
        return digest_of(data)

    every = sorted(project.iterdir())
    listing = FolderListing(
        folder=project,
        files=[path.name for path in every if not path.is_dir()] if files is None else [*files],
        folders=[path.name for path in every if path.is_dir()],
        left_out={*left_out},
        ignored={*ignored},
        bulk=dict.fromkeys(bulk, BULK),
    )
    snapshot = Snapshot(since_ns)
    Scanner(Roots(this_host(), project), take, lambda: False).scan([listing], known or {}, snapshot)
    return snapshot, read


def _states(snapshot: Snapshot) -> dict[str, State]:
    return {os.path.basename(path): state for path, (_, state) in snapshot.known.items()}  # noqa: PTH119


def test_a_snapshot_has_every_path_and_says_what_it_did_not_look_at(project: Path):
    (project / "a").write_text("1")
    (project / "d").mkdir()
    (project / "link").symlink_to("a")
    snapshot, read = _scanned(
        project, left_out={"out", "big"}, ignored={"a"}, bulk={"big"}, files=["a", "link", "gone"]
    )
    assert _states(snapshot) == {
        "a": _file("1"),
        "d": State(kind="folder", mode=0o755),
        "link": State(kind="link", target="a"),
        "big": BULK,
    }
    assert read == [b"1"]
    assert (snapshot.folders, snapshot.fresh) == ([str(project)], set())
    assert snapshot.left_out == {f"{project}/out", f"{project}/big"}
    assert snapshot.ignored == {f"{project}/a"}
    inside = ("a", "new", "d/new", "out", "out/x", "big/x/y")
    assert [snapshot.covers(f"{project}/{path}") for path in inside] == [True] * 3 + [False] * 3
    assert not snapshot.covers(f"{project.parent}/a")
    assert not snapshot.covers("relative")


@every_row(
    "listings, is_too_much",
    [
        ([("abc", "d", "")], False),
        ([("abc", "de", "")], True),
        ([("abcx", "de", "xe")], False),  # ignored ones have a limit of their own
        ([("ab", "", ""), ("c", "d", "")], False),
        ([("ab", "d", ""), ("c", "d", "")], True),  # of all folders together
        ([("abx", "d", "x"), ("c", "", "")], False),
    ],
)
def test_more_paths_than_the_limit_are_too_much_at_the_first_look_as_at_any_other(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    listings: list[tuple[str, str, str]],
    is_too_much: bool,
):
    monkeypatch.setattr(scan, "MOST_PATHS", 4)
    scanner = Scanner(Roots(this_host(), project), digest_of, lambda: False)
    every = [
        FolderListing(
            folder=project, files=[*files], folders=[*folders], left_out=set(), ignored={*no}
        )
        for files, folders, no in listings
    ]
    if not is_too_much:
        scanner.scan(every, {}, Snapshot())
        return
    with pytest.raises(TooMuch, match="more than 4 files and folders"):
        scanner.scan(every, {}, Snapshot())


@every_row(
    "sizes, is_too_much",
    [([5, 5], False), ([5, 6], True), ([5, 5, 11], False), ([10], False), ([11, 11], False)],
)
def test_more_bytes_than_the_limit_are_too_much_but_large_files_are_not_read(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    sizes: list[int],
    is_too_much: bool,
):
    project = tmp_path_factory.mktemp("project")
    for number, size in enumerate(sizes):
        (project / str(number)).write_bytes(b"x" * size)
    monkeypatch.setattr(scan, "MOST_NEW_BYTES", 10)
    for module in (scan, states):
        monkeypatch.setattr(module, "MOST_FILE_BYTES", 10)
    if not is_too_much:
        small = [b"x" * size for size in sizes if size <= 10]
        assert _scanned(project)[1] == small
        return
    with pytest.raises(TooMuch, match="more than 10 bytes"):
        _scanned(project)


def test_of_ignored_files_so_much_is_kept_and_those_beyond_it_are_only_known(project, monkeypatch):
    for name, text in {"a": "12345", "b": "12345", "c": "1", "d": "1" * 11, "e": "12345"}.items():
        (project / name).write_text(text)
    (project / "link").symlink_to("x" * 40)
    monkeypatch.setattr(scan, "MOST_IGNORED_BYTES", 10)
    for module in (scan, states):
        monkeypatch.setattr(module, "MOST_FILE_BYTES", 10)
    files = ["link", "d", "a", "b", "c", "e"]
    snapshot, read = _scanned(project, files=files, ignored={"link", "a", "b", "c", "d"})
    assert read == [b"12345"] * 3
    assert {name for name, state in _states(snapshot).items() if not state.is_kept} == {"c", "d"}
    assert _states(snapshot)["c"].size == 1


@every_row("ns, is_read_again", [(-1, False), (0, True), (1, True)])
@pytest.mark.parametrize("time", ["st_mtime_ns", "st_ctime_ns"])
def test_a_file_is_known_again_once_it_did_not_change_for_a_while(
    project: Path, monkeypatch: pytest.MonkeyPatch, time: str, ns: int, is_read_again: bool
):
    file = project / "a"
    file.write_text("1")
    changed = file.stat().st_ctime_ns
    modified = changed + (10**9 if time == "st_mtime_ns" else -(10**9))
    os.utime(file, ns=(modified, modified))
    last = max(modified, file.stat().st_ctime_ns)
    assert (last == modified) == (time == "st_mtime_ns")
    monkeypatch.setattr(scan, "time_ns", lambda: last + scan.UNSETTLED_NS - ns)
    snapshot, _ = _scanned(project)
    again, read = _scanned(project, snapshot.known)
    assert read == ([b"1"] if is_read_again else [])
    assert again.known == snapshot.known


@every_row("change", ["content", "size", "mode", "another file"])
def test_a_file_of_another_stamp_is_read_again(project, monkeypatch, change):
    monkeypatch.setattr(scan, "UNSETTLED_NS", -(10**12))
    file = project / "a"
    file.write_text("1")
    file.chmod(0o644)
    snapshot, _ = _scanned(project)
    match change:
        case "content":
            file.write_text("2")
            os.utime(file, ns=(1, 1))
        case "size":
            file.write_text("12")
        case "mode":
            file.chmod(0o600)
        case _:
            file.rename(project / "b")
            file.write_text("1")
    again, read = _scanned(project, snapshot.known, files=["a"])
    assert read == [file.read_bytes()]
    assert _states(again)["a"].mode == file.stat().st_mode & 0o777


def test_the_files_and_links_that_changed_since_a_moment_are_fresh_and_folders_are_not(project):
    (project / "a").write_text("1")
    (project / "link").symlink_to("a")
    (project / "d").mkdir()
    last = max((project / name).lstat().st_ctime_ns for name in ("a", "link"))
    first = min((project / name).lstat().st_ctime_ns for name in ("a", "link"))
    assert _scanned(project, since_ns=last)[0].fresh == set()
    fresh = _scanned(project, since_ns=first - 1)[0].fresh
    assert fresh == {f"{project}/a", f"{project}/link"}


def test_of_a_folder_that_cannot_be_listed_and_entered_nobody_knows_what_is_in_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "d").mkdir()
    asked: list[tuple[str, int]] = []

    def access(name: str, mode: int, *, dir_fd: int) -> bool:
        assert dir_fd >= 0
        asked.append((name, mode))
        return False

    monkeypatch.setattr(os, "access", access)
    assert _scanned(project)[0].left_out == {f"{project}/d"}
    assert asked == [("d", os.R_OK | os.X_OK)]


def test_a_look_that_is_over_ends_before_the_next_path(project: Path):
    for name in "abc":
        (project / name).write_text("1")
    over = iter([False] * 4 + [True])  # all are looked at, and one is read
    listing = FolderListing(folder=project, files=["a", "b", "c"], folders=[], left_out=set())
    snapshot = Snapshot()
    scanner = Scanner(Roots(this_host(), project), digest_of, lambda: next(over))
    with pytest.raises(TooMuch, match="takes too long"):
        scanner.scan([listing], {}, snapshot)
    assert list(snapshot.known) == [f"{project}/a"]


def test_how_long_a_look_took_is_told_without_the_reading(project, monkeypatch):
    times = iter([3.0, 5.5])
    monkeypatch.setattr(scan, "monotonic", lambda: next(times))
    scanner = Scanner(Roots(this_host(), project), digest_of, lambda: False)
    assert scanner.seconds == 0.0
    scanner.scan([], {}, Snapshot())
    assert scanner.seconds == 2.5
