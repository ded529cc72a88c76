"""Second names (hard links) of files that are closed, or that programs of the person read: an archive can bring them into a project.

Only files with several names can be meant, so there are few to look for, and mostly none.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from time import time_ns
from typing import TypeAlias

#: A device and a file's number on it.
Identity: TypeAlias = tuple[int, int]

_MOST_FILES = 200_000  # of the closed folders; a scan takes about a second then
#: Before commands run, the tops of the closed folders: what an archive can name without having seen it.
_MOST_NEAR = 20_000
_CLOCK_NS = 20_000_000  # file times may lag behind the clock by a tick of the kernel


class BlockedFiles:
    """The files of the blocked paths, looked up only for files with several names.

    They are listed once. A link made later changes the file's status, so its time tells whether the list
    is old.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = tuple(paths)
        self._known: frozenset[Identity] = frozenset()
        self._listed_ns = 0

    def hold(self, status: os.stat_result) -> bool:
        """Return whether this is one of the blocked files under another name."""
        if status.st_nlink < 2:
            return False
        if status.st_ctime_ns + _CLOCK_NS >= self._listed_ns:
            self._listed_ns = time_ns()
            self._known = frozenset(_several(self._paths, _MOST_FILES))
        return (status.st_dev, status.st_ino) in self._known


def second_names(closed: Sequence[str], folders: Iterable[str]) -> list[str]:
    """Return the paths in the folders that are second names of files in the closed paths."""
    return named_again(frozenset(_several(closed, _MOST_NEAR)), folders)


def named_again(known: frozenset[Identity], folders: Iterable[str]) -> list[str]:
    """Return the paths in the folders that are files of these identities."""
    if not known:
        return []
    numbers = {number for _, number in known}
    found = (path for path, number in _files(folders, _MOST_FILES) if number in numbers)
    return [path for path in found if any(each in known for each in identity(path))]


def identity(path: str) -> Iterator[Identity]:
    """Yield the identity of a file if it has several names."""
    try:
        status = os.lstat(path)
    except OSError:
        return
    if status.st_nlink > 1:
        yield status.st_dev, status.st_ino


def _several(paths: Iterable[str], most: int) -> Iterator[Identity]:
    for path, _ in _files(paths, most):
        yield from identity(path)


def _files(paths: Iterable[str], most: int) -> Iterator[tuple[str, int]]:
    """Yield the files in these paths, those near their tops first, and their numbers; a path that is a file, too, with 0."""
    pending = deque(paths)
    while pending and most > 0:
        path = pending.popleft()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    most -= 1
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        yield entry.path, entry.inode()
        except NotADirectoryError:
            yield path, 0
        except OSError:
            continue  # it is not there, or nobody may read it, the model's tools included
