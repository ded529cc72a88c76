"""Delete checkpoints of deleted sessions, old ones, and the oldest where they take too much room."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from time import time

from ybs.checkpoints.store import CheckpointStore, is_record

MOST_BYTES = 2_000_000_000
#: What is younger always stays: another ybs may be about to name it.
GRACE_SECONDS = 86_400.0
_DAY_SECONDS = 86_400.0


def forget(folder: Path, sessions: Collection[str] | None, *, retention_days: float = 30) -> int:
    """Remove the checkpoints in `folder` of other sessions than these (None: of none), old ones, and too many; count them.

    What is younger than a day stays. It may be slow: call it in a thread. It does not raise.
    """
    fresh = time() - GRACE_SECONDS
    oldest = min(time() - retention_days * _DAY_SECONDS, fresh)
    kept: list[tuple[float, int, Path]] = []
    gone = 0
    for store in _stores(folder):
        for path, status in store.records():
            changed_at = status.st_mtime
            session = path.stem.rpartition(".")[0]
            is_gone = sessions is not None and session not in sessions
            if changed_at < oldest or (is_gone and changed_at < fresh):
                gone += _remove(path)
            elif is_record(path):
                kept.append((changed_at, status.st_size, path))
    total = 0
    for changed_at, size, path in sorted(kept, key=lambda record: -record[0]):
        if total + size > MOST_BYTES and changed_at < fresh:
            gone += _remove(path)
        else:
            total += size
    return gone


def _remove(path: Path) -> int:
    with suppress(OSError):
        path.unlink()
        return int(is_record(path))
    return 0


def _stores(base: Path) -> list[CheckpointStore]:
    with suppress(OSError):
        return [CheckpointStore(folder) for folder in base.iterdir()]
    return []
