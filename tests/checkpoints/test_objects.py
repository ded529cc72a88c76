"""The contents that checkpoints hold: once each, and gone when they are let go of."""

import errno
import gc
import os
from pathlib import Path

import pytest

from hosts import this_host
from ybs.checkpoints.keeping import Keeper
from ybs.checkpoints.objects import Objects, Pack
from ybs.checkpoints.states import Change, State, digest_of
from ybs.core.errors import YbsError
from ybs.security.paths.roots import Roots


def test_a_content_that_is_held_already_takes_no_more_room(tmp_path: Path):
    pack = Pack(tmp_path)
    digests = [pack.take(content) for content in (b"one", b"other", b"one")]
    assert pack.size == len(b"one" + b"other")
    assert [pack.get(digest) for digest in digests] == [b"one", b"other", b"one"]
    assert pack.get(digest_of(b"none")) is None
    pack.close()


def test_what_is_let_go_of_holds_nothing_any_more_and_may_be_let_go_of_again(tmp_path: Path):
    pack = Pack(tmp_path)
    digest = pack.take(b"content")
    pack.close()
    pack.close()
    with pytest.raises(ValueError, match="closed"):
        pack.get(digest)


def test_a_pack_that_cannot_be_made_says_why_and_nothing_more(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        Pack(tmp_path / "gone")
    gc.collect()  # its end raises nothing, which pytest would tell


def test_contents_are_held_in_a_file_that_has_no_name(tmp_path: Path):
    pack = Pack(tmp_path)
    pack.take(b"content")
    assert list(tmp_path.iterdir()) == []
    pack.close()


def test_a_content_that_was_wanted_at_this_very_time_stays(tmp_path: Path):
    objects, digest = Objects(tmp_path), digest_of(b"content")
    objects.put(digest, b"content")
    ((_, status),) = objects.each()
    assert not objects.drop(digest, before=status.st_mtime)
    assert objects.drop(digest, before=status.st_mtime + 1)
    assert objects.each() == []


def test_a_content_that_is_gone_before_any_was_held_is_told_as_damage(project: Path):
    keeper = Keeper(Roots(this_host(), project))
    gone = State(kind="file", mode=0o644, size=4, digest=digest_of(b"gone"))
    with pytest.raises(YbsError, match="damaged in the meantime"):
        keeper.add("s", [Change(path="a", before=gone)])


def test_a_content_that_was_damaged_is_written_again_and_one_that_is_whole_becomes_fresh(
    tmp_path: Path,
):
    objects, digest = Objects(tmp_path), digest_of(b"content")
    objects.put(digest, b"content")
    path = tmp_path / digest[:2] / digest[2:]
    path.write_bytes(b"con")
    objects.put(digest, b"content")
    assert (objects.get(digest), objects.has(digest, 7)) == (b"content", True)
    os.utime(path, (1, 1))
    objects.put(digest, b"content")
    assert not objects.drop(digest, before=1_000_000_000)
    assert objects.get(digest) == b"content"


def test_a_link_and_what_a_crash_left_are_told_by_name_and_can_be_removed(tmp_path: Path):
    objects, digest = Objects(tmp_path), digest_of(b"content")
    objects.put(digest, b"content")
    folder = tmp_path / digest[:2]
    (folder / ".left").write_bytes(b"con")
    (folder / "dangling").symlink_to("nowhere")
    names = {digest, f".{digest[:2]}left", f"{digest[:2]}dangling"}
    assert {name for name, _ in objects.each()} == names
    assert [objects.drop(name, before=float("inf")) for name in sorted(names)] == [True] * 3
    assert list(folder.iterdir()) == []


def test_a_content_that_cannot_be_written_whole_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    objects, digest = Objects(tmp_path), digest_of(b"content")

    def fails(_: Path, __: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fails)
        with pytest.raises(OSError, match="No space left"):
            objects.put(digest, b"content")
    assert objects.each() == []
    assert objects.get(digest) is None
