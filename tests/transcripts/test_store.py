"""The folder of saved sessions: what it lists, finds, copies and deletes, and what it never touches."""

import json
import os
import stat
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from saving import DAY, files_in, save, started
from ybs.config.private_file import Busy, Unsafe
from ybs.core.errors import YbsError
from ybs.core.events import (
    AssistantSaid,
    Rewound,
    SessionEnded,
    SessionStarted,
    Titled,
    UserSaid,
)
from ybs.transcripts import reading
from ybs.transcripts.log import Log
from ybs.transcripts.reading import Transcript, read
from ybs.transcripts.store import SessionStore, hits_in


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions")


def names(store: SessionStore) -> list[str]:
    return [each.name for each in store.sessions()]


def test_sessions_are_listed_the_newest_first_with_what_a_list_shows(store: SessionStore):
    assert store.sessions() == []
    save(store, "old", age_days=2, project="/other")
    save(store, "new")
    new, old = store.sessions()
    assert (new.name, new.title, new.project, new.messages) == ("new", "Title of new", "/p", 2)
    assert (new.provider, new.model, new.is_open) == ("openai", "m", False)
    assert new.size == new.path.stat().st_size
    assert round(new.changed_at - old.changed_at) == 2 * DAY
    assert [each.name for each in store.sessions(project="/other")] == ["old"]
    assert store.sessions(project="/nowhere") == []


def test_only_the_ends_of_a_session_that_has_ended_are_read(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
):
    save(store, "ended")
    save(store, "crashed", UserSaid(content="Please fix the parser"), AssistantSaid(content="ok"))
    long = AssistantSaid(content="x" * 100_000)
    ending = (Titled(title="Long"), SessionEnded(reason="q", message_count=7))
    save(store, "long", UserSaid(content="a"), long, *ending)
    whole: list[str] = []

    def read_whole(path: Path) -> Transcript:
        whole.append(path.stem)
        return read(path)

    monkeypatch.setattr(reading, "read", read_whole)
    listed = {each.name: (each.title, each.messages) for each in store.sessions()}
    assert listed["crashed"] == ("Fix the parser", 2)
    assert (listed["long"], listed["ended"]) == (("Long", 7), ("Title of ended", 2))
    assert whole == ["crashed"]


def test_a_session_that_was_gone_on_with_after_its_end_is_read_anew(store: SessionStore):
    said, titled = UserSaid(content="one two three"), Titled(title="T")
    ended = SessionEnded(reason="q", message_count=1)
    save(store, "again", said, titled, ended, started(), UserSaid(content="four"))
    (again,) = store.sessions()
    assert (again.title, again.messages) == ("T", 2)


def test_a_long_beginning_and_a_missing_one_are_no_reason_to_leave_a_session_out(
    store: SessionStore,
):
    config = {"provider": "x" * 10_000, "model": "m"}
    long = SessionStarted(session="s", folder="/far", config=config)
    save(store, "headless", UserSaid(content="what is this about"))
    path = store.folder / "headless.jsonl"
    path.write_bytes(path.read_bytes().partition(b"\n")[2])
    save(store, "long", UserSaid(content="x"))
    path = store.folder / "long.jsonl"
    path.write_bytes(b"")
    log = store.open_log("long")
    log.add(long)
    log.close()
    found = {each.name: (each.project, each.title) for each in store.sessions()}
    assert found == {"long": ("/far", ""), "headless": ("", "What is this about")}
    assert [each.name for each in store.sessions(project="/far")] == ["long"]


def test_who_writes_a_session_is_seen(store: SessionStore):
    save(store, "a", UserSaid(content="x"))
    assert [each.is_open for each in store.sessions()] == [False]
    log = store.open_log("a")
    assert [each.is_open for each in store.sessions()] == [True]
    with pytest.raises(Busy):
        store.delete("a")
    log.close()
    assert [each.is_open for each in store.sessions()] == [False]


def test_f02_what_is_no_session_is_not_listed(store: SessionStore, tmp_path: Path):
    save(store, "good")
    victim = tmp_path / "victim.jsonl"
    victim.write_bytes((store.folder / "good.jsonl").read_bytes())
    (store.folder / "link.jsonl").symlink_to(victim)
    (store.folder / "hard.jsonl").hardlink_to(victim)
    (store.folder / "folder.jsonl").mkdir()
    os.mkfifo(store.folder / "pipe.jsonl")
    for name, data in {"empty": b"", "junk": b"junk\n", ".hidden": b"x"}.items():
        (store.folder / f"{name}.jsonl").write_bytes(data)
    (store.folder / "notes.txt").write_text("x")
    assert names(store) == ["good"]
    for name in ("link", "hard", "pipe"):
        with pytest.raises(Unsafe):
            store.read(name)


def test_the_newest_of_a_project_is_one_in_which_something_was_said(store: SessionStore):
    save(store, "said", age_days=1)
    save(store, "silent", Titled(title=""), SessionEnded(reason="q", message_count=0))
    save(store, "other", project="/other")
    newest = store.newest("/p")
    assert newest is not None
    assert newest.name == "said"
    assert store.newest("/nowhere") is None


def test_new_names_are_never_taken_ones_and_the_files_are_the_owners_alone(store: SessionStore):
    before = os.umask(0)
    try:
        made = [store.create() for _ in range(12)]
    finally:
        os.umask(before)
    assert len(set(made)) == 12
    assert all(name.startswith(f"session-{time.strftime('%Y')}") for name in made)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in store.folder.iterdir()}
    assert (modes, stat.S_IMODE(store.folder.stat().st_mode)) == ({0o600}, 0o700)
    assert names(store) == []  # nothing was said in them


def test_f02_a_planted_name_is_passed_over(store: SessionStore, tmp_path: Path):
    first = store.create()
    planted = store.folder / f"{first}-2.jsonl"
    planted.symlink_to(tmp_path / "not-there")
    store.create()
    assert planted.is_symlink()
    assert not (tmp_path / "not-there").exists()


def test_a_session_that_is_not_there_is_not_made_by_asking_for_it(store: SessionStore):
    for work in (store.read, store.open_log, store.delete):
        with pytest.raises(YbsError, match=r"(there is no session|the session file) .*nowhere"):
            work("nowhere")
    assert not store.folder.exists()


def rewound(store: SessionStore) -> str:
    log = Log(store.folder / "long.jsonl")
    for event in (started(), UserSaid(content="a"), UserSaid(content="b")):
        log.add(event)
    log.add(Rewound(keeps=1), parent=2)
    log.add(UserSaid(content="c"))
    log.close()
    return "long"


def test_a_copy_holds_the_chain_alone_and_has_its_own_title(store: SessionStore):
    rewound(store)
    assert store.copy("long", "important-bugfix", title="Important") == "important-bugfix"
    copy, original = store.read("important-bugfix"), store.read("long")
    assert copy.replay.messages == original.replay.messages
    assert [(line.event, line.parent) for line in copy.lines] == [(n, n - 1) for n in range(1, 7)]
    assert copy.lines[1].timestamp == original.lines[1].timestamp
    assert b'"content":"b"' not in (store.folder / "important-bugfix.jsonl").read_bytes()
    found = store.find("important")
    assert (found.title, found.messages, found.project) == ("Important", 2, "/p")
    with pytest.raises(YbsError, match="a session called important-bugfix exists already"):
        store.copy("long", "important-bugfix")
    assert store.read("important-bugfix").replay.messages == original.replay.messages


def test_a_copy_of_a_session_that_has_ended_ends_once_and_keeps_its_title(store: SessionStore):
    save(store, "a")
    store.copy("a", "b")
    kinds = [type(each.event) for each in store.read("b").events]
    assert kinds == [SessionStarted, UserSaid, AssistantSaid, Titled, SessionEnded]
    assert store.find("b").title == "Title of a"


def test_times_that_a_hand_has_spoiled_do_not_hinder_a_copy(store: SessionStore):
    times = ("", "yesterday", "0001-01-01T00:00:00+14:00", "2026-01-18T14:30:22Z", "2026-01-18")
    store.folder.mkdir(mode=0o700)
    line = '{{"timestamp":"{}","type":"user","content":"x"}}\n'
    path = store.folder / "a.jsonl"
    path.write_text("".join(map(line.format, times)))
    path.chmod(0o600)
    store.copy("a", "b")
    copied = [each.timestamp for each in store.read("b").lines]
    assert len(copied) == len(times) + 2
    assert copied[3] == "2026-01-18T14:30:22.000Z"


def test_a_copy_that_does_not_fit_the_disk_is_not_there_by_half(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
):
    rewound(store)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            store.copy("long", "copy")
    assert files_in(store.folder) == ["long.jsonl"]


def test_a_fork_goes_its_own_way(store: SessionStore):
    transcript = store.read(rewound(store))
    name = store.fork(transcript)
    fork = store.read(name)
    # Who reads it puts wrong numbers right, so it is looked at as it lies there.
    rows = [json.loads(row) for row in (store.folder / f"{name}.jsonl").read_text().splitlines()]
    assert [(row["event"], row["parent"]) for row in rows] == [
        (number, number - 1) for number in range(1, len(rows) + 1)
    ]
    log = store.open_log(name, last=fork.last)
    log.add(UserSaid(content="d"))
    log.close()
    said = [message.text for message in store.read(name).replay.messages]  # type: ignore[union-attr] - no results here
    assert said == ["a", "c", "d"]
    assert store.read("long").replay.messages == transcript.replay.messages
    assert fork.replay.started == started()


def test_what_was_said_is_found_in_all_sessions(store: SessionStore):
    words = 'Straße: the "quoted" word\nand a Second line ' + "x" * 100
    save(store, "one", UserSaid(content=words), age_days=1)
    save(store, "two", AssistantSaid(content="y" * 100 + " second thoughts " + "z" * 100))
    save(store, "three", title="A third thing")
    hits = store.search("SECOND")
    assert [(hit.saved.name, hit.line) for hit in hits] == [("two", 2), ("one", 2)]
    assert hits[0].excerpt.startswith("…yyy")
    assert hits[0].excerpt.endswith("zzz…")
    assert 'the "quoted" word and a Second line' in hits[1].excerpt
    assert [hit.saved.name for hit in store.search("second LINE")] == ["one"]
    assert [hit.saved.name for hit in store.search('straße "quoted"')] == ["one"]
    assert [hit.saved.name for hit in store.search("third")] == ["three"]
    assert len(store.search("second", most=1)) == 1
    for each in hits:
        each.saved.path.unlink()
    assert [list(hits_in(each.saved, ["second"])) for each in hits] == [[], []]  # deleted meanwhile
    hits[0].saved.path.symlink_to("elsewhere")
    assert list(hits_in(hits[0].saved, ["second"])) == []
    assert store.search("  ") == store.search("nobody said this") == store.search("timestamp") == []


def test_old_sessions_go_but_never_one_that_is_kept_or_open(store: SessionStore):
    for number in range(6):
        save(store, f"s{number}", age_days=number * 10)
    log = store.open_log("s5")
    (store.folder / "notes.txt").write_text("x")
    (store.folder / "link.jsonl").symlink_to(store.folder / "notes.txt")
    assert store.clean(max_sessions=0, retention_days=0) == 0
    assert store.clean(max_sessions=0, retention_days=35, keep="s4") == 0
    assert store.clean(max_sessions=0, retention_days=35) == 1
    assert names(store) == ["s0", "s1", "s2", "s3", "s5"]
    assert store.clean(max_sessions=2, retention_days=0, keep="s3") == 1
    assert names(store) == ["s0", "s1", "s3", "s5"]
    log.close()
    assert files_in(store.folder)[:2] == ["link.jsonl", "notes.txt"]
    assert SessionStore(store.folder / "nowhere").clean(max_sessions=1, retention_days=1) == 0


def test_a_session_that_another_ybs_deletes_meanwhile_hides_no_other(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
):
    scandir = os.scandir

    for number in range(3):
        save(store, f"s{number}", age_days=number)
    gone = store.folder / "s1.jsonl"

    @contextmanager
    def losing(folder: Path) -> Generator[Iterator["os.DirEntry[str]"]]:
        with scandir(folder) as entries:
            yield (e for e in entries if e.name != gone.name or gone.unlink() or True)

    monkeypatch.setattr(os, "scandir", losing)
    assert names(store) == ["s0", "s2"]
