"""What goes of the checkpoints, and what stays because another ybs may need it."""

import os
from pathlib import Path
from time import time

import pytest

from ybs.checkpoints import pruning
from ybs.checkpoints.pruning import forget
from ybs.checkpoints.states import Change, State, digest_of
from ybs.checkpoints.store import Running, Shelf, shelf_of

DAY = 86_400


def _keep(shelf: Shelf, session: str, content: bytes, *, days: float) -> str:
    """Add a record that is so old, with its content."""
    digest = digest_of(content)
    after = State(kind="file", mode=0o644, size=len(content), digest=digest)
    record = shelf.add(session, [Change(path="a", after=after)], lambda _: content)
    then = time() - days * DAY
    for path in shelf.folder.rglob("*"):
        if path.name.startswith(record.name) or path.parent.name + path.name == digest:
            os.utime(path, (then, then))
    return record.name


def _left(shelf: Shelf) -> tuple[set[str], set[str]]:
    return {path.stem for path, _ in shelf.records()}, {name for name, _ in shelf.objects.each()}


def test_the_gone_the_old_and_what_no_record_names_go_and_nothing_fresh(project: Path):
    shelf, other = shelf_of(project), shelf_of(project / "other")
    kept = _keep(shelf, "alive", b"kept", days=2)
    shared = _keep(other, "alive", b"gone", days=2)  # the same content, in another project
    _keep(shelf, "gone", b"gone", days=2)
    _keep(shelf, "alive", b"old", days=31)
    fresh = _keep(shelf, "gone", b"fresh", days=0)
    shelf.objects.put(digest_of(b"about to be named"), b"about to be named")
    wanted_again = _keep(shelf, "gone", b"again", days=2)
    shelf.objects.put(digest_of(b"again"), b"again")
    shelf.begin(kept)
    assert forget({"alive"}, retention_days=30) == 3
    wanted = {digest_of(content) for content in (b"kept", b"fresh", b"again", b"about to be named")}
    assert _left(shelf) == ({kept, fresh}, wanted)
    assert _left(other) == ({shared}, {digest_of(b"gone")})
    assert wanted_again not in _left(shelf)[0]
    assert shelf.began(kept)
    assert forget(None, retention_days=30) == 0


def test_what_is_too_much_goes_the_oldest_first(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pruning, "MOST_BYTES", 25)
    shelf = shelf_of(project)
    ages = {days: _keep(shelf, "s", f"{days}".encode() * 10, days=days) for days in (5, 4, 3)}
    assert forget({"s"}) == 1
    assert _left(shelf)[0] == {ages[4], ages[3]}
    young = [_keep(shelf, "s", f"y{number}".encode() * 10, days=0) for number in (1, 2)]
    assert forget({"s"}) == 2
    assert _left(shelf)[0] == set(young)


def test_a_damaged_record_or_content_is_no_obstacle(project: Path):
    shelf = shelf_of(project)
    name = _keep(shelf, "s", b"content", days=2)
    digest = digest_of(b"content")
    path = shelf.folder / "objects" / digest[:2] / digest[2:]
    path.write_bytes(b"changed")
    assert shelf.objects.get(digest) is None
    record = next(path for path, _ in shelf.records())
    record.write_text("{")
    assert forget({"s"}) == 0
    assert _left(shelf) == ({name}, {digest})  # written to a moment ago
    assert forget(None, retention_days=0) == 0


def test_nothing_kept_is_nothing_to_forget():
    assert forget({"s"}) == 0


def test_a_note_of_a_running_turn_holds_its_contents_until_it_is_old_or_its_session_gone(
    project: Path,
):
    shelf, digest = shelf_of(project), digest_of(b"before")
    before = State(kind="file", mode=0o644, size=6, digest=digest)
    for session, days, stays in (("alive", 2, True), ("gone", 2, False), ("alive", 31, False)):
        shelf.put(digest, lambda _: b"before")
        running = Running(turn=1, changes=(Change(path="a", before=before),))
        shelf.note(session, running, is_first=True)
        then = time() - days * DAY
        for path in shelf.folder.rglob("*"):
            if path.is_file():
                os.utime(path, (then, then))
        forget({"alive"}, retention_days=30)
        assert (shelf.running(session) is not None) == stays
        assert shelf.objects.has(digest, 6) == stays
        shelf.forget(session)
