"""What goes of the checkpoints, and what stays."""

import os
from pathlib import Path
from time import time

import pytest

from hosts import this_host
from ybs.checkpoints.states import Change, State, digest_of
from ybs.checkpoints.store import (
    GRACE_SECONDS,
    CheckpointStore,
    RunningTurn,
    StoredContents,
    checkpoints_folder,
    forget,
    is_record,
    store_of,
)

DAY = 86_400


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def sync(_: int) -> None:
        pass

    monkeypatch.setattr(os, "fsync", sync)


def _keep(store: CheckpointStore, session: str, content: bytes, *, days: float) -> str:
    """Add a record that is so old, with its content."""
    digest = digest_of(content)
    after = State(kind="file", mode=0o644, size=len(content), digest=digest)
    record = store.add(session, [Change(path="a", after=after)], lambda _: content)
    then = time() - days * DAY
    for path in store.folder.rglob(f"{record.name}*"):
        os.utime(path, (then, then))
    return record.name


def _left(store: CheckpointStore) -> set[str]:
    return {path.stem for path, _ in store.records()}


def test_the_gone_and_the_old_go_and_nothing_fresh(project: Path):
    store, other = store_of(this_host(), project), store_of(this_host(), project / "other")
    kept = _keep(store, "alive", b"kept", days=2)
    shared = _keep(other, "alive", b"gone", days=2)  # the same content, in another project
    _keep(store, "gone", b"gone", days=2)
    _keep(store, "alive", b"old", days=31)
    fresh = _keep(store, "gone", b"fresh", days=0)
    store.begin(kept)
    assert forget(checkpoints_folder(this_host()), {"alive"}, retention_days=30) == 2
    assert _left(store) == {kept, fresh}
    assert _left(other) == {shared}
    contents = StoredContents()
    other.read(shared, contents)
    assert contents.get(digest_of(b"gone")) == b"gone"
    assert store.began(kept)
    assert forget(checkpoints_folder(this_host()), None, retention_days=30) == 0


def test_what_is_too_much_goes_the_oldest_first(project: Path, monkeypatch: pytest.MonkeyPatch):
    store = store_of(this_host(), project)
    # The oldest is the largest: it is its age that counts.
    ages = {
        days: _keep(store, "s", f"{days}".encode() * (900 + days), days=days) for days in (5, 4, 3)
    }
    sizes = sorted(status.st_size for _, status in store.records())
    monkeypatch.setattr("ybs.checkpoints.store.MOST_BYTES", sum(sizes[:2]))
    assert forget(checkpoints_folder(this_host()), {"s"}) == 1
    assert _left(store) == {ages[4], ages[3]}
    young = [_keep(store, "s", b"y" * 900, days=0) for _ in "12"]
    assert forget(checkpoints_folder(this_host()), {"s"}) == 2
    assert _left(store) == set(young)
    store.begin(young[0])
    store.note("s", RunningTurn(turn=1), is_first=True)
    old = time() - 2 * DAY
    for path, _ in store.records():  # notes do not count: they stay until they are old
        if not is_record(path):
            os.utime(path, (old, old))
    assert forget(checkpoints_folder(this_host()), {"s"}) == 0
    assert (store.began(young[0]), store.running("s")) == (True, RunningTurn(turn=1))


def test_a_damaged_record_or_content_is_no_obstacle(project: Path):
    store, contents = store_of(this_host(), project), StoredContents()
    name = _keep(store, "s", b"content", days=2)
    ((path, _),) = store.records()
    path.write_bytes(path.read_bytes()[:-1] + b"T")
    store.read(name, contents)
    assert contents.get(digest_of(b"content")) is None
    path.write_text("{")
    assert forget(checkpoints_folder(this_host()), {"s"}) == 0
    assert _left(store) == {name}  # written to a moment ago
    assert forget(checkpoints_folder(this_host()), None, retention_days=0) == 0


def test_nothing_kept_is_nothing_to_forget():
    assert forget(checkpoints_folder(this_host()), {"s"}) == 0


def test_a_note_of_a_running_turn_stays_until_it_is_old_or_its_session_gone(project: Path):
    store = store_of(this_host(), project)
    store.make()
    for session, days, stays in (("alive", 2, True), ("gone", 2, False), ("alive", 31, False)):
        store.note(session, RunningTurn(turn=1), is_first=True)
        then = time() - days * DAY
        for path, _ in store.records():
            os.utime(path, (then, then))
        forget(checkpoints_folder(this_host()), {"alive"}, retention_days=30)
        assert (store.running(session) is not None) == stays
        store.forget(session)


def test_what_is_as_old_as_the_limit_to_the_moment_stays(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ybs.checkpoints.store.MOST_BYTES", 0)
    now = float(int(time()) + DAY)
    monkeypatch.setattr("ybs.checkpoints.store.time", lambda: now)
    store = store_of(this_host(), project)
    names = [_keep(store, session, session.encode(), days=0) for session in ("alive", "gone")]

    def put_back(then: float) -> None:
        for path in store.folder.rglob("*"):
            os.utime(path, (then, then))

    put_back(now - GRACE_SECONDS)
    assert forget(checkpoints_folder(this_host()), {"alive"}) == 0
    assert _left(store) == set(names)
    put_back(now - GRACE_SECONDS - 1)
    assert forget(checkpoints_folder(this_host()), {"alive"}) == 2
    assert _left(store) == set()
    monkeypatch.setattr("ybs.checkpoints.store.MOST_BYTES", 1000)
    name = _keep(store, "alive", b"alive", days=0)
    put_back(now - 30 * DAY)
    assert forget(checkpoints_folder(this_host()), {"alive"}) == 0
    assert _left(store) == {name}
    put_back(now - 30 * DAY - 1)
    assert forget(checkpoints_folder(this_host()), {"alive"}, retention_days=31) == 0
    assert forget(checkpoints_folder(this_host()), {"alive"}) == 1


def test_a_record_that_cannot_be_removed_is_not_counted(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    store = store_of(this_host(), project)
    name = _keep(store, "gone", b"content", days=2)

    def fails(_: Path) -> None:
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fails)
        assert forget(checkpoints_folder(this_host()), set()) == 0
    assert _left(store) == {name}
    assert forget(checkpoints_folder(this_host()), set()) == 1
