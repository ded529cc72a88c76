"""Forget sessions that are too old or too many, and what was kept for an undo of those that are gone."""

from ybs.checkpoints.store import checkpoints_folder, forget
from ybs.config.host import Host
from ybs.transcripts.store import SessionStore

_FOREVER_DAYS = 36_500


def clean(
    host: Host,
    store: SessionStore,
    *,
    max_sessions: int = 0,
    retention_days: int = 0,
    keep: str = "",
) -> int:
    """Delete sessions as `SessionStore.clean` does, and the checkpoints of all that are gone; return how many it deleted."""
    removed = store.clean(max_sessions=max_sessions, retention_days=retention_days, keep=keep)
    # Checkpoints are in one place, also those of sessions in another folder than the usual one.
    kept = store.names() if store.folder == host.sessions_folder else None
    forget(checkpoints_folder(host), kept, retention_days=retention_days or _FOREVER_DAYS)
    return removed
