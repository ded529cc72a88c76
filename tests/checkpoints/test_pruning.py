"""What goes of the checkpoints, and what stays because another ybs may need it."""

import os
from pathlib import Path
from time import time

import pytest

from hosts import this_host
from ybs.checkpoints import pruning
from ybs.checkpoints.pruning import forget
from ybs.checkpoints.states import Change, State, digest_of
from ybs.checkpoints.store import CheckpointStore, Running, checkpoints_folder, store_of

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
    for path in store.folder.rglob("*"):
        if path.name.startswith(record.name) or path.parent.name + path.name == digest:
            os.utime(path, (then, then))
    return record.name


def _left(store: CheckpointStore) -> tuple[set[str], set[str]]:
    return {path.stem for path, _ in store.records()}, {name for name, _ in store.objects.each()}


def test_the_gone_the_old_and_what_no_record_names_go_and_nothing_fresh(project: Path):
    store, other = store_of(this_host(), project), store_of(this_host(), project / "other")
    kept = _keep(store, "alive", b"kept", days=2)
    assert not store.objects.drop(digest_of(b"kept"), before=time() - 3 * DAY)
    shared = _keep(other, "alive", b"gone", days=2)  # the same content, in another project
    _keep(store, "gone", b"gone", days=2)
    _keep(store, "alive", b"old", days=31)
    fresh = _keep(store, "gone", b"fresh", days=0)
    store.objects.put(digest_of(b"about to be named"), b"about to be named")
    wanted_again = _keep(store, "gone", b"again", days=2)
    store.objects.put(digest_of(b"again"), b"again")
    store.begin(kept)
    assert forget(checkpoints_folder(this_host()), {"alive"}, retention_days=30) == 3
    wanted = {digest_of(content) for content in (b"kept", b"fresh", b"again", b"about to be named")}
    assert _left(store) == ({kept, fresh}, wanted)
    assert _left(other) == ({shared}, {digest_of(b"gone")})
    assert wanted_again not in _left(store)[0]
    assert store.began(kept)
    assert forget(checkpoints_folder(this_host()), None, retention_days=30) == 0


def test_what_is_too_much_goes_the_oldest_first(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pruning, "MOST_BYTES", 20)
    store = store_of(this_host(), project)
    ages = {days: _keep(store, "s", f"{days}".encode() * 10, days=days) for days in (5, 4, 3)}
    assert forget(checkpoints_folder(this_host()), {"s"}) == 1
    assert _left(store)[0] == {ages[4], ages[3]}
    young = [_keep(store, "s", f"y{number}".encode() * 10, days=0) for number in (1, 2)]
    assert forget(checkpoints_folder(this_host()), {"s"}) == 2
    assert _left(store)[0] == set(young)
    store.begin(young[0])
    store.note("s", Running(turn=1), is_first=True)
    old = time() - 2 * DAY
    for path, _ in store.records():  # notes take no room: they stay until they are old
        if path.suffix != ".json":
            os.utime(path, (old, old))
    assert forget(checkpoints_folder(this_host()), {"s"}) == 0
    assert (store.began(young[0]), store.running("s")) == (True, Running(turn=1))


def test_a_damaged_record_or_content_is_no_obstacle(project: Path):
    store = store_of(this_host(), project)
    name = _keep(store, "s", b"content", days=2)
    digest = digest_of(b"content")
    path = store.folder / "objects" / digest[:2] / digest[2:]
    path.write_bytes(b"changed")
    assert store.objects.get(digest) is None
    record = next(path for path, _ in store.records())
    record.write_text("{")
    assert forget(checkpoints_folder(this_host()), {"s"}) == 0
    assert _left(store) == ({name}, {digest})  # written to a moment ago
    assert forget(checkpoints_folder(this_host()), None, retention_days=0) == 0


def test_nothing_kept_is_nothing_to_forget():
    assert forget(checkpoints_folder(this_host()), {"s"}) == 0


def test_a_note_of_a_running_turn_holds_its_contents_until_it_is_old_or_its_session_gone(
    project: Path,
):
    store, digest = store_of(this_host(), project), digest_of(b"before")
    before = State(kind="file", mode=0o644, size=6, digest=digest)
    for session, days, stays in (("alive", 2, True), ("gone", 2, False), ("alive", 31, False)):
        store.put(digest, lambda _: b"before")
        running = Running(turn=1, changes=(Change(path="a", before=before),))
        store.note(session, running, is_first=True)
        then = time() - days * DAY
        for path in store.folder.rglob("*"):
            if path.is_file():
                os.utime(path, (then, then))
        forget(checkpoints_folder(this_host()), {"alive"}, retention_days=30)
        assert (store.running(session) is not None) == stays
        assert store.objects.has(digest, 6) == stays
        store.forget(session)


def test_what_is_as_old_as_the_limit_to_the_moment_stays(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pruning, "MOST_BYTES", 0)
    now = float(int(time()) + DAY)
    monkeypatch.setattr(pruning, "time", lambda: now)
    store = store_of(this_host(), project)
    names = [_keep(store, session, session.encode(), days=0) for session in ("alive", "gone")]
    store.objects.put(digest_of(b"unnamed"), b"unnamed")

    def put_back(then: float) -> None:
        for path in store.folder.rglob("*"):
            os.utime(path, (then, then))

    put_back(now - pruning.GRACE_SECONDS)
    contents = {digest_of(content) for content in (b"alive", b"gone", b"unnamed")}
    assert forget(checkpoints_folder(this_host()), {"alive"}) == 0
    assert _left(store) == (set(names), contents)
    put_back(now - pruning.GRACE_SECONDS - 1)
    assert forget(checkpoints_folder(this_host()), {"alive"}) == 2
    assert _left(store) == (set(), set())
    monkeypatch.setattr(pruning, "MOST_BYTES", 100)
    name = _keep(store, "alive", b"alive", days=0)
    put_back(now - 30 * DAY)
    assert forget(checkpoints_folder(this_host()), {"alive"}, retention_days=30) == 0
    assert _left(store)[0] == {name}
    put_back(now - 30 * DAY - 1)
    assert forget(checkpoints_folder(this_host()), {"alive"}, retention_days=30) == 1


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
    assert _left(store)[0] == {name}
    assert forget(checkpoints_folder(this_host()), set()) == 1
