"""The contents that checkpoints hold: once each, and gone when they are let go of."""

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


def test_what_is_let_go_of_is_closed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pack = Pack(tmp_path)
    pack.take(b"content")
    closed: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", closed.append)
        pack.close()
        pack.close()
    (handle,) = closed
    os.close(handle)


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
