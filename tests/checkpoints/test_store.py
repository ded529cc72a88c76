"""Records of turns on disk: what they name, and where they are not written."""

import os
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from hosts import this_host
from ybs.checkpoints.keeping import Keeper
from ybs.checkpoints.states import Change, State, digest_of
from ybs.checkpoints.store import (
    CheckpointStore,
    RunningTurn,
    StoredContents,
    TurnRecord,
    checkpoints_folder,
    store_of,
)
from ybs.config.private_file import Unsafe
from ybs.core.errors import YbsError
from ybs.security.paths.roots import Roots


def _file(text: str) -> State:
    return State(kind="file", mode=0o644, size=len(text), digest=digest_of(text.encode()))


CHANGES = (Change(path="a", before=_file("1"), after=_file("2")), Change(path="b"))


def test_a_record_is_read_as_it_was_added_with_its_contents(tmp_path: Path):
    store = CheckpointStore(tmp_path / "checkpoints" / "project")
    texts, contents = {digest_of(text): text for text in (b"1", b"2")}, StoredContents()
    record = store.add("s", CHANGES, texts.get, beyond="much", since_ns=7)
    expected = TurnRecord(name=record.name, changes=CHANGES, beyond="much", since_ns=7)
    assert store.read(record.name) == record == expected
    assert record.name.startswith("s.")
    assert record.sizes == dict.fromkeys(texts, 1)
    assert store.read(record.name, contents) == record
    assert {digest: contents.get(digest) for digest in texts} == texts


def test_a_content_that_is_the_same_before_and_after_is_kept_once(tmp_path: Path):
    store, contents = CheckpointStore(tmp_path / "checkpoints" / "project"), StoredContents()
    text = "x" * 1000
    changes = [
        Change(path="a", before=_file(text)),
        Change(path="b", before=_file("\n"), after=_file(text)),
    ]
    texts = {digest_of(each): each for each in (text.encode(), b"\n")}
    record = store.add("s", changes, texts.get)
    assert record == TurnRecord(name=record.name, changes=tuple(changes))
    ((path, status),) = store.records()
    assert status.st_size == len(msgspec.json.encode(record)) + 1 + len(text) + 1
    assert path.stat().st_mode & 0o777 == 0o600
    assert store.read(record.name, contents).changes == tuple(changes)
    assert {digest: contents.get(digest) for digest in texts} == texts


@pytest.mark.parametrize("content", [None, b"12", b""])
def test_a_record_whose_content_is_gone_or_another_one_is_not_kept(
    tmp_path: Path, content: bytes | None
):
    store = CheckpointStore(tmp_path / "checkpoints" / "project")
    with pytest.raises(YbsError, match="damaged in the meantime"):
        store.add("s", CHANGES, lambda _: content)
    assert [*store.records()] == []


def test_nothing_is_kept_in_a_place_that_is_a_link(tmp_path: Path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    places = "checkpoints", "checkpoints/project", "checkpoints/project/records"
    for place in places:
        link = tmp_path / place
        link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        link.symlink_to(tmp_path / "elsewhere")
        store = CheckpointStore(tmp_path / places[1])
        with pytest.raises(Unsafe, match="symbolic link"):
            store.add("s", [Change(path="a", after=_file("1"))], lambda _: b"1")
        assert list((tmp_path / "elsewhere").iterdir()) == []
        link.unlink()


def test_no_content_is_held_in_a_place_that_is_a_link(project: Path, tmp_path: Path):
    (project / "a").write_text("1")
    keeper = Keeper(Roots(this_host(), project))
    keeper.store.folder.parent.mkdir(parents=True, mode=0o700)
    keeper.store.folder.parent.rmdir()
    keeper.store.folder.parent.symlink_to(tmp_path)
    with pytest.raises(Unsafe, match="symbolic link"):
        keeper.touch(str(project / "a"))


def test_notes_of_a_running_turn_are_joined_and_a_line_that_broke_off_is_left_out(tmp_path: Path):
    store = CheckpointStore(tmp_path / "checkpoints" / "project")
    assert store.running("s") is None
    first = RunningTurn(turn=3, changes=CHANGES, open=frozenset("a"), has_more=True)
    newer = Change(path="a", before=_file("1"), after=_file("3"))
    second = RunningTurn(turn=3, changes=(newer,), record="s.1234")
    texts, contents = {digest_of(text): text for text in (b"1", b"2", b"3")}, StoredContents()
    sizes = [{digest_of(text): 1 for text in each} for each in ((b"1", b"2"), (b"3",))]
    store.note("s", replace(first, contents=sizes[0]), texts.get, is_first=True)
    assert store.running("s") == first
    store.note("s", replace(second, contents=sizes[1]), texts.get, is_first=False)
    (note,) = [path for path, _ in store.records()]
    with note.open("ab") as file:
        file.write(b'{"turn":4,"chan')
    joined = RunningTurn(turn=3, changes=(newer, CHANGES[1]), record="s.1234")
    assert store.running("s", contents) == joined
    assert {digest: contents.get(digest) for digest in texts} == texts
    store.forget("s")
    assert store.running("s") is None


@pytest.mark.parametrize("left", [b"", b'{"turn":3,"chan', b"\0" * 40])
def test_a_note_whose_first_line_broke_off_says_nothing(tmp_path: Path, left: bytes):
    store = CheckpointStore(tmp_path / "checkpoints" / "project")
    store.make()
    store.note("s", RunningTurn(turn=3), is_first=True)
    ((path, _),) = store.records()
    path.write_bytes(left)
    assert store.running("s") is None


def test_a_record_waits_for_the_disk_and_a_note_of_a_running_turn_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    waits: list[int] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    store = CheckpointStore(tmp_path / "checkpoints" / "project")
    store.make()
    store.note("s", RunningTurn(turn=1), is_first=True)
    store.note("s", RunningTurn(turn=1), is_first=False)
    assert waits == []
    store.add("s", [Change(path="a")], lambda _: None)
    assert len(waits) == 1


def test_a_project_has_the_same_folder_whatever_the_version():
    name = "c5dcb9b6096fc43f5953036e"
    store = store_of(this_host(), Path("/home/someone/project"))
    assert store.folder == checkpoints_folder(this_host()) / name


def test_what_an_undo_that_broke_off_had_found_is_known_until_it_is_done(tmp_path: Path):
    store = CheckpointStore(tmp_path / "checkpoints" / "project")
    assert (store.began("s.1"), store.overwritten("s.1")) == (False, None)
    store.begin("s.1")
    assert (store.began("s.1"), store.overwritten("s.1")) == (True, None)
    record = store.add("s", CHANGES, lambda _: b"1")
    store.begin("s.1", record.name)
    assert (store.began("s.1"), store.overwritten("s.1")) == (True, record)
    store.finish("s.1")
    assert (store.began("s.1"), store.overwritten("s.1")) == (False, None)


def test_a_name_that_leads_elsewhere_is_not_a_checkpoint(tmp_path: Path):
    store = CheckpointStore(tmp_path)
    for name in ("../x", "a/b", ".x"):
        with pytest.raises(YbsError, match="is not a checkpoint"):
            store.read(name)
    for name in ("", "x", "x."):
        with pytest.raises(YbsError, match="no longer exists"):
            store.read(name)


def test_what_a_record_on_disk_leaves_out_means_nothing_and_no():
    assert msgspec.json.decode(b'{"name":"s.1","changes":[]}', type=TurnRecord) == TurnRecord(
        name="s.1", changes=(), beyond="", since_ns=0, version=2
    )
    assert msgspec.json.decode(b'{"turn":1}', type=RunningTurn) == RunningTurn(
        turn=1, changes=(), open=frozenset(), has_more=False, record="", contents={}
    )
    assert msgspec.json.encode(RunningTurn(turn=1)) == b'{"turn":1}'
    assert msgspec.json.encode(TurnRecord(name="s.1", changes=())) == b'{"name":"s.1","changes":[]}'
