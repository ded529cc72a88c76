"""Hard links: a blocked file under another name is the same file, and as blocked."""

import os
from collections.abc import Iterable
from time import time_ns

_MOST_FILES = 200_000  # of the blocked folders; a scan takes about a second then
_CLOCK_NS = 20_000_000  # file times may lag behind the clock by a tick of the kernel


class BlockedFiles:
    """The files of the blocked paths by device and number, looked up only for files with several names.

    They are listed once. A link made later changes the file's status, so its time tells whether the list
    is old.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = tuple(paths)
        self._known: frozenset[tuple[int, int]] = frozenset()
        self._listed_ns = 0

    def hold(self, status: os.stat_result) -> bool:
        """Return whether this is one of the blocked files under another name."""
        if status.st_nlink < 2:
            return False
        if status.st_ctime_ns + _CLOCK_NS >= self._listed_ns:
            self._listed_ns = time_ns()
            self._known = frozenset(_files(self._paths))
        return (status.st_dev, status.st_ino) in self._known


def _files(paths: Iterable[str]) -> Iterable[tuple[int, int]]:
    """Yield the files with several names in these paths; others cannot be meant."""
    pending = list(paths)
    left = _MOST_FILES
    while pending and left > 0:
        path = pending.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        yield from _one(entry.path)
        except NotADirectoryError:
            yield from _one(path)
        except OSError:
            continue  # it is not there, or nobody may read it, the model's tools included


def _one(path: str) -> Iterable[tuple[int, int]]:
    try:
        status = os.lstat(path)
    except OSError:
        return
    if status.st_nlink > 1:
        yield status.st_dev, status.st_ino
