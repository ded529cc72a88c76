"""Sessions that are too old, and what was kept for an undo of those that are gone."""

from collections.abc import Collection
from pathlib import Path

from hosts import this_host
from saving import save
from ybs.session import cleaning
from ybs.session.cleaning import clean
from ybs.transcripts.store import SessionStore


def test_checkpoints_of_the_sessions_that_stay_are_kept(tmp_path, monkeypatch):
    asked: list[tuple[Collection[str] | None, float]] = []

    def forget(_folder: Path, sessions: Collection[str] | None, *, retention_days: float) -> int:
        asked.append((sessions, retention_days))
        return 0

    monkeypatch.setattr(cleaning, "forget", forget)
    usual, other = SessionStore(this_host().sessions_folder), SessionStore(tmp_path / "other")
    for store in (usual, other):
        save(store, "new")
        save(store, "old", age_days=50)
        clean(this_host(), store, retention_days=40)
        clean(this_host(), store, retention_days=0)
    assert asked == [(["new"], 40), (["new"], 36_500), (None, 40), (None, 36_500)]
