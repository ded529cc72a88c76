"""What goes of the checkpoints: those of sessions that are gone, old ones, and the oldest where they are too much."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from time import time

from ybs.checkpoints.store import CheckpointStore
from ybs.core.errors import YbsError

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
    kept: list[tuple[float, Path, CheckpointStore]] = []
    gone = 0
    stores = _stores(folder)
    for store in stores:
        for path, status in store.records():
            changed_at = status.st_mtime
            session = path.stem.rpartition(".")[0]
            is_gone = sessions is not None and session not in sessions
            if changed_at < oldest or (is_gone and changed_at < fresh):
                gone += _remove(path)
            elif path.suffix == ".json":
                kept.append((changed_at, path, store))
    kept.sort(key=lambda record: -record[0])
    return gone + _drop(kept, stores, fresh)


def _drop(
    records: list[tuple[float, Path, CheckpointStore]], stores: list[CheckpointStore], fresh: float
) -> int:
    """Remove the records, newest first, beyond the bound, and the contents that no record names any more."""
    named: dict[Path, set[str]] = {store.folder: store.running_digests() for store in stores}
    total = gone = 0
    for changed_at, path, store in records:
        sizes: dict[str, int] = {}
        with suppress(YbsError):
            sizes = store.read(path.stem).sizes
        others = named[store.folder]
        added = sum(size for digest, size in sizes.items() if digest not in others)
        if total + added > MOST_BYTES and changed_at < fresh:
            gone += _remove(path)
        else:
            total += added
            others.update(sizes)
    for store in stores:
        for digest, status in store.objects.each():
            if digest not in named[store.folder] and status.st_mtime < fresh:
                store.objects.drop(digest, before=fresh)
    return gone


def _remove(path: Path) -> int:
    with suppress(OSError):
        path.unlink()
        return int(path.suffix == ".json")
    return 0


def _stores(base: Path) -> list[CheckpointStore]:
    with suppress(OSError):
        return [CheckpointStore(folder) for folder in base.iterdir()]
    return []
