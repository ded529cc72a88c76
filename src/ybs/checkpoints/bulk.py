"""Bulk folders (dependencies, build outputs) in which something changed: undo keeps no copies there, but says so."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ybs.checkpoints.scan import FolderListing
from ybs.core.errors import Refused
from ybs.security.paths.bulk import is_cache
from ybs.security.paths.roots import Roots


def changed_bulk(
    roots: Roots, listings: Iterable[FolderListing], since_ns: int, is_over: Callable[[], bool]
) -> Iterator[str]:
    """Yield the bulk folders with something in them that changed since then, at any depth; pure caches are left out.

    What `is_over` leaves no time for counts as changed.
    """
    for listing in listings:
        for folder in sorted(listing.bulk):
            path = listing.folder / folder
            if not is_cache(folder) and _has_changed(roots, path, since_ns, is_over):
                yield str(path)


def _has_changed(roots: Roots, folder: Path, since_ns: int, is_over: Callable[[], bool]) -> bool:
    """Look at the time of the last change of each file and folder, which nobody can set; no link is followed."""
    with suppress(OSError, Refused), roots.held(folder) as place:
        for _, _, names, here in os.fwalk(folder.name, dir_fd=place.folder):
            if is_over() or any(_changed_ns(name, here) > since_ns for name in (".", *names)):
                return True
    return False


def _changed_ns(name: str, folder: int) -> int:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ctime_ns
    except OSError:
        return 0  # gone just now: the folder's own time says so
