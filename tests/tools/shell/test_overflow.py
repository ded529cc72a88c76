"""Long outputs on disk: private, bounded, removed after some days, and never in the way of a command."""

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from ybs.core.errors import Refused
from ybs.security.incognito import WRITES_NOTHING
from ybs.security.paths.roots import Roots
from ybs.tools.shell import overflow as room
from ybs.tools.shell.overflow import Outputs, OverflowFile, outputs_folder, sweep


@pytest.fixture
def outputs(project: Path) -> Outputs:
    return Outputs(Roots(this_host(), project))


def written(overflow: OverflowFile) -> bytes:
    assert overflow.path is not None
    return overflow.path.read_bytes()


def test_an_output_gets_a_file_only_once_it_is_too_long(outputs: Outputs):
    overflow = OverflowFile(outputs, 5)
    overflow.add(b"ab\nc")
    assert overflow.path is None
    assert not this_host().state_folder.exists()
    overflow.add(b"de")
    overflow.add(b"f\n")
    overflow.close()
    assert written(overflow) == b"ab\ncdef\n"
    assert f"[whole output, 8 bytes, 2 lines: {overflow.path} - use read_file" in overflow.note()


def test_a_short_output_leaves_nothing_to_tell(outputs: Outputs):
    overflow = OverflowFile(outputs, 5)
    overflow.add(b"abcde")
    assert overflow.note() == ""
    overflow.close()
    assert (overflow.path, overflow.note(), overflow.size) == (None, "", 5)


def test_where_nothing_may_be_written_nothing_is_held_either():
    overflow = OverflowFile(None, 0)
    for _ in range(3):
        overflow.add(b"abc\n")
    assert overflow.note() == f"[the whole output was not kept: {WRITES_NOTHING}]"
    assert (overflow.size, overflow.lines, overflow._held) == (12, 3, [])


def test_a_text_is_kept_as_a_whole(outputs: Outputs, monkeypatch: pytest.MonkeyPatch):
    path = Path(outputs.keep("grün \ud800\n"))
    assert (path.parent, path.read_bytes()) == (outputs.folder, "grün ?\n".encode())
    monkeypatch.setattr(room, "_make_private", raises)
    assert outputs.keep("x") == ""


def raises(_folder: Path) -> None:
    raise OSError


def test_the_file_and_its_folders_are_private(outputs: Outputs):
    this_host().state_folder.mkdir(parents=True, mode=0o755)
    before = os.umask(0)
    try:
        overflow = OverflowFile(outputs, 0)
        overflow.add(b"x")
    finally:
        os.umask(before)
        overflow.close()
    assert overflow.path is not None
    assert overflow.path.stat().st_mode & 0o777 == 0o600
    for folder in (overflow.path.parent, outputs_folder(this_host()), this_host().state_folder):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_link_in_the_place_of_a_folder_is_not_followed(outputs, tmp_path, level):
    place = (this_host().state_folder, outputs_folder(this_host()), outputs.folder)[level]
    place.parent.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    overflow = OverflowFile(outputs, 0)
    overflow.add(b"x")
    overflow.close()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert "was not kept" in overflow.note()
    assert "is not a folder of yours" in overflow.note()


def test_a_file_that_is_there_already_is_not_written_into(outputs, monkeypatch):
    monkeypatch.setattr(room.time, "strftime", lambda _: "now")
    monkeypatch.setattr(room.os, "urandom", bytes)
    _descriptor, path = outputs.create()
    os.close(_descriptor)
    with pytest.raises(FileExistsError):
        outputs.create()
    path.unlink()
    path.symlink_to(outputs.folder / "target")
    with pytest.raises(OSError, match=r"exists|symbolic"):
        outputs.create()
    assert not (outputs.folder / "target").exists()


def test_an_output_beyond_the_bound_is_cut_there_and_that_is_said(outputs, monkeypatch):
    monkeypatch.setattr(room, "MOST_BYTES", 10)
    overflow = OverflowFile(outputs, 4)
    for _ in range(5):
        overflow.add(b"abcd")
    overflow.close()
    assert written(overflow) == b"abcdabcdab"
    assert "[output of 20 bytes, 0 lines; its first 10 bytes: " in overflow.note()
    assert "the rest was not kept: it is too long]" in overflow.note()


def test_a_disk_that_gets_full_ends_the_file_and_not_the_command(outputs, monkeypatch):
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) > 3:
            return write(descriptor, data[:3])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(room.os, "write", full)
    overflow = OverflowFile(outputs, 0)
    overflow.add(b"abcd")
    overflow.add(b"efgh")
    overflow.close()
    assert written(overflow) == b"abc"
    assert "its first 3 bytes" in overflow.note()
    assert "the rest was not kept: No space left on device" in overflow.note()


def test_some_room_on_the_disk_is_left_for_others(outputs, monkeypatch):
    monkeypatch.setattr(room, "LEAST_FREE_BYTES", 1 << 62)
    overflow = OverflowFile(outputs, 0)
    overflow.add(b"abcd")
    assert overflow.note() == "[the whole output was not kept: the disk is nearly full]"
    assert list(outputs.folder.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_cannot_be_made_is_told(outputs: Outputs, home: Path):
    home.chmod(0o500)
    overflow = OverflowFile(outputs, 0)
    overflow.add(b"abcd")
    home.chmod(0o700)
    assert "was not kept: Permission denied" in overflow.note()


def test_a_state_folder_that_is_a_file_is_told(outputs: Outputs):
    this_host().state_folder.parent.mkdir(parents=True)
    this_host().state_folder.touch()
    overflow = OverflowFile(outputs, 0)
    overflow.add(b"abcd")
    assert "[the whole output was not kept: " in overflow.note()


def test_a_file_that_nobody_needs_is_removed(outputs: Outputs):
    overflow = OverflowFile(outputs, 0)
    overflow.add(b"abcd")
    path = overflow.path
    overflow.discard()
    assert path is not None
    assert not path.exists()
    overflow.discard()


def test_old_files_and_then_the_oldest_are_removed(outputs, monkeypatch):
    monkeypatch.setattr(room, "MOST_BYTES_OF_ALL", 10)
    monkeypatch.setattr(room, "_LOOK_BYTES", 0)
    now = 1_700_000_000.0
    outputs.folder.mkdir(parents=True)
    week, day = 604_800, 86_400
    every = (("old", week + 1, 0), ("aged", week, 0), ("large", 6 * day, 6), ("fresh", day, 5), ("new", 0, 1))  # fmt: skip
    for name, seconds, size in every:
        file = outputs.folder / f"{name}.txt"
        file.write_bytes(b"x" * size)
        os.utime(file, (now - seconds,) * 2)
    (outputs.folder / "other").touch()
    (outputs_folder(this_host()) / "stray").touch()
    kept = {"other", "aged", "fresh", "new"}
    sweep(outputs_folder(this_host()), now)
    assert {file.stem for file in outputs.folder.iterdir()} == kept - {"aged"}
    monkeypatch.setattr(room, "MOST_BYTES_OF_ALL", 6)  # just enough
    sweep(outputs_folder(this_host()), now)
    assert {file.stem for file in outputs.folder.iterdir()} == kept - {"aged"}


def test_a_file_of_a_name_of_its_own_is_private_and_goes_as_outputs_do(outputs: Outputs):
    file = outputs.place_of("session-1.jsonl")
    file.write_text("{}")
    assert file.parent.stat().st_mode & 0o777 == 0o700
    sweep(outputs_folder(this_host()))
    assert file.exists()
    sweep(outputs_folder(this_host()), time.time() + 8 * 86_400)
    assert not file.exists()


@pytest.mark.integration
@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_the_outputs_of_all_sessions_stay_within_the_bound_of_all_at_any_moment(
    outputs: Outputs, monkeypatch: pytest.MonkeyPatch, at_once: int
):
    most, look, largest = 4_000, 50, 0
    monkeypatch.setattr(room, "MOST_BYTES", 1_000)
    monkeypatch.setattr(room, "MOST_BYTES_OF_ALL", most)
    monkeypatch.setattr(room, "_LOOK_BYTES", look)
    for _ in range(10 // at_once):
        spills = [OverflowFile(outputs, 0) for _ in range(at_once)]
        for _ in range(95):
            for overflow in spills:
                overflow.add(b"x" * 10)
            largest = max(largest, sum(file.stat().st_size for file in outputs.folder.iterdir()))
        for overflow in spills:
            overflow.close()
            assert overflow.path is not None
            assert (
                overflow.path.stat().st_size == 950
            )  # what is being written is not what makes room
    assert most - 17 * look - 950 <= largest <= most


def test_a_folder_that_cannot_be_listed_keeps_no_other_from_being_swept(outputs, monkeypatch):
    other = outputs_folder(this_host()) / "other"
    for folder in (outputs.folder, other):
        folder.mkdir(parents=True)
        (folder / "old.txt").touch()
        os.utime(folder / "old.txt", (0, 0))
    list_of = os.scandir

    def listed(folder: str | Path) -> Any:
        if str(folder) == str(other):
            raise PermissionError
        return list_of(folder)

    monkeypatch.setattr(room.os, "scandir", listed)
    outputs.sweep()
    assert not (outputs.folder / "old.txt").exists()
    assert (other / "old.txt").exists()


def test_sweeping_does_not_follow_links(outputs: Outputs, tmp_path: Path):
    (tmp_path / "mine").mkdir()
    old = tmp_path / "mine" / "old.txt"
    old.touch()
    os.utime(old, (0, 0))
    outputs_folder(this_host()).mkdir(parents=True)
    (outputs_folder(this_host()) / "link").symlink_to(tmp_path / "mine")
    sweep(outputs_folder(this_host()))
    assert old.exists()


def test_old_files_go_when_a_session_keeps_its_first_output(outputs: Outputs):
    outputs.folder.mkdir(parents=True)
    old = outputs.folder / "old.txt"
    old.touch()
    os.utime(old, (0, 0))
    OverflowFile(outputs, 0).add(b"x")
    assert not old.exists()


def test_outputs_of_this_project_can_be_read_and_those_of_others_not(outputs, project, tmp_path):
    roots = Roots(this_host(), project)
    mine = Outputs(roots).folder / "a.txt"
    assert roots.resolve(str(mine)) == mine
    with pytest.raises(Refused):
        roots.resolve(str(mine), is_write=True)
    with pytest.raises(Refused):
        roots.resolve(str(Outputs(Roots(this_host(), tmp_path)).folder / "a.txt"))


def test_no_two_projects_share_a_folder():
    names = ["/a/b", "/a_/b", "/a/_b", "/a_-b", "/a__b", "/" + "x" * 300, "/" + "x" * 299 + "y"]
    made = {room._name_of(name) for name in names}
    assert len(made) == len(names)
    assert all(len(name) <= 255 and "/" not in name for name in made)
