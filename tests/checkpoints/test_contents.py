"""The contents that checkpoints hold: once each, and gone when they are let go of."""

import gc
import os
from pathlib import Path

import pytest

from hosts import this_host
from ybs.checkpoints.keeping import Keeper
from ybs.checkpoints.states import Change, State, digest_of
from ybs.checkpoints.store import Pack, StoredContents
from ybs.config.private_file import Unsafe
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


@pytest.mark.integration
def test_a_pack_that_cannot_be_made_says_why_and_nothing_more(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        Pack(tmp_path / "gone")
    gc.collect()  # its end raises nothing, which pytest would tell


def test_contents_are_held_in_a_file_that_has_no_name(tmp_path: Path):
    pack = Pack(tmp_path)
    pack.take(b"content")
    assert list(tmp_path.iterdir()) == []
    pack.close()


def test_a_content_that_the_disk_gives_back_as_another_one_is_none(tmp_path: Path):
    pack = Pack(tmp_path)
    digests = [pack.take(content) for content in (b"one", b"two")]
    os.pwrite(pack._file.fileno(), b"T", len(b"one"))
    assert [pack.get(digest) for digest in digests] == [b"one", None]
    pack.close()


def test_a_content_that_is_gone_before_any_was_held_is_told_as_damage(project: Path):
    keeper = Keeper(Roots(this_host(), project))
    gone = State(kind="file", mode=0o644, size=4, digest=digest_of(b"gone"))
    with pytest.raises(YbsError, match="damaged in the meantime"):
        keeper.add("s", [Change(path="a", before=gone)])


def _file(content: bytes) -> State:
    return State(kind="file", mode=0o644, size=len(content), digest=digest_of(content))


def _told(path: Path, *pieces: bytes) -> StoredContents:
    """Learn of contents that a file should have behind its first line."""
    contents = StoredContents()
    with path.open("rb") as file:
        file.readline()
        contents.add(path, file, {digest_of(piece): len(piece) for piece in pieces})
    return contents


def test_contents_are_read_from_behind_their_line_and_what_is_not_there_is_none(tmp_path: Path):
    path, pieces = tmp_path / "file", (b"one", b"", b"two\n", b"three")
    path.write_bytes(b"line\n" + b"".join(pieces))
    contents = _told(path, *pieces)
    assert [contents.get(digest_of(piece)) for piece in pieces] == [*pieces]
    assert all(contents.has(_file(piece)) for piece in pieces)
    assert contents.has(State(kind="link", target="x"))
    assert not contents.has(_file(b"four"))
    assert contents.get(digest_of(b"four")) is None


def test_a_content_that_is_cut_off_or_changed_is_not_there_and_those_before_it_are(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"line\noneTWOthre")
    contents = _told(path, b"one", b"two", b"three")
    assert [contents.has(_file(piece)) for piece in (b"one", b"two", b"three")] == [
        True,
        False,
        False,
    ]
    gets = [contents.get(digest_of(piece)) for piece in (b"one", b"two", b"three")]
    assert gets == [b"one", None, None]
    path.unlink()
    assert contents.get(digest_of(b"one")) is None


def test_the_file_is_left_behind_the_last_content_though_it_is_cut_off(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"line\nonetw")
    with path.open("rb") as file:
        file.readline()
        assert not StoredContents().add(path, file, {"1": 3, "2": 3})
        assert (file.tell(), file.readline()) == (11, b"")


def test_a_file_that_became_a_link_is_not_read(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"line\none")
    contents = _told(path, b"one")
    path.rename(tmp_path / "other")
    path.symlink_to(tmp_path / "other")
    with pytest.raises(Unsafe, match="symbolic link"):
        contents.get(digest_of(b"one"))
