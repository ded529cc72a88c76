"""Detect new and changed autorun files, documents for agents, and repository settings between two looks."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock

from msgspec import Struct

from ybs.config.host import Host
from ybs.core.errors import Refused
from ybs.security.paths.folder_index import IndexedPaths, index_of
from ybs.security.paths.git_names import means_repository
from ybs.security.paths.opening import read_whole
from ybs.security.paths.targets import hooks_in, named_in, programs, settings_of
from ybs.security.sandbox.places import lies_in

_MOST_BYTES = 256_000
_MOST_READ = 2_000
_MOST_FOLDERS = 200

#: What tells a state from another one: the mode, and the content or, of large files, the time of the last change.
_State = tuple[int, int]


class WatchedChange(Struct, frozen=True, kw_only=True):
    """A path that is new, or another one than before; `is_repository`: version control keeps its settings there."""

    path: str
    is_new: bool
    is_repository: bool = False


class AutorunFiles:
    """Those below the folders that are writable, which may become more. Of a new folder the first look finds nothing new."""

    def __init__(self, host: Host) -> None:
        self._host, self._lock = host, Lock()
        self._folders: Sequence[str] = ()
        self._states: dict[str, _State] = {}
        self._repositories: dict[str, tuple[_State | None, ...]] = {}
        self._read: dict[str, tuple[int, int]] = {}
        #: Folders that could not be looked at.
        self.unseen: tuple[str, ...] = ()

    def begin(self, folders: Sequence[str]) -> None:
        """Look at what there is, where nobody did yet."""
        with self._lock:
            if not self._folders:
                self._look(folders)

    def accept(self, paths: Iterable[str]) -> None:
        """Take files, by their whole paths, for known as they are now."""
        with self._lock:
            for path in paths if self._folders else ():
                self._states.pop(path, None)
                if (state := self._state(path, self._read)) is not None:
                    self._states[path] = state

    def look(self, folders: Sequence[str]) -> list[WatchedChange]:
        """Return new and changed files since the last look at each folder."""
        with self._lock:
            return self._look(folders)

    def _look(self, folders: Sequence[str]) -> list[WatchedChange]:
        known_folders, self._folders = self._folders, folders
        found = [index_of(folder).look(is_fresh=True) for folder in folders]
        unseen, self.unseen = self.unseen, tuple(path for each in found for path in each.unseen)
        old, old_repositories = self._states, self._repositories
        known, self._read = self._read, {}
        later = {path for each in found for path in each.autorun}
        for folder, paths in zip(folders, found, strict=True):
            later.update(_led_to(self._host, folder, paths))
        states = ((path, self._state(path, known)) for path in later)
        self._states = new = {path: state for path, state in states if state is not None}
        self._repositories = {
            path: tuple(_settings(self._host, path)) for each in found for path in each.repositories
        }
        changes = [
            *(WatchedChange(path=path, is_new=path not in old) for path in _other(new, old)),
            *(
                WatchedChange(path=path, is_new=path not in old_repositories, is_repository=True)
                for path in _other(self._repositories, old_repositories)
            ),
        ]
        # What was not seen before is not known to be new; the sandbox held it.
        told = (each for each in changes if _is_in(each.path, known_folders))
        return sorted(
            (each for each in told if not _is_in(each.path, unseen)), key=lambda each: each.path
        )

    def _state(self, path: str, known: dict[str, tuple[int, int]]) -> _State | None:
        """Return the state of a file, or None where it is gone; a link counts with what it leads to."""
        try:
            own, status = os.lstat(path), os.stat(path)  # noqa: PTH116 - texts throughout
        except OSError:
            return None if not os.path.lexists(path) else (0, 0)  # a link that leads nowhere
        if stat.S_ISDIR(status.st_mode) and (end := self._inner(path)):
            files = sorted(_files_in(end))
            return status.st_mode, hash(tuple((each, self._state(each, known)) for each in files))
        stamp = hash((own.st_ino, own.st_ctime_ns, status.st_ino, status.st_ctime_ns))
        old = known.get(path)
        content = old[1] if old is not None and old[0] == stamp else self._content(path, status)
        self._read[path] = (stamp, content)
        return status.st_mode, content

    def _inner(self, link: str) -> str:
        """Return the folder that a link leads to, where that lies below one of the folders; else nothing."""
        end = os.path.realpath(link)
        is_below = _is_in(end, self._folders) and not any(
            lies_in(each, end) for each in self._folders
        )
        return end if is_below else ""

    def _content(self, path: str, status: os.stat_result) -> int:
        is_small = stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_BYTES
        if is_small and len(self._read) < _MOST_READ:
            try:
                data = read_whole(os.path.realpath(path), _MOST_BYTES)
            except (OSError, ValueError, Refused):
                data = None
            if data is not None:
                return hash(data)
        return hash((status.st_ino, status.st_ctime_ns))


def _led_to(host: Host, root: str, found: IndexedPaths) -> Iterator[str]:
    """Yield the files that settings and `PATH` lead to. A link counts with what it leads to."""
    for path in named_in(host, root, found):
        yield from _files_in(path)
    yield from programs(host, root)


def _files_in(path: str) -> Iterator[str]:
    """Yield the files below a path, or the path itself; of very many the first. Repositories are looked at by themselves."""
    if not os.path.isdir(path):  # noqa: PTH112
        yield path
        return
    for count, (folder, below, names) in enumerate(os.walk(path)):
        if count == _MOST_FOLDERS:
            return
        below[:] = [name for name in below if not means_repository(name)]
        yield from (f"{folder}/{name}" for name in names)


def _other(new: Mapping[str, object], old: Mapping[str, object]) -> Iterator[str]:
    return (path for path, state in new.items() if old.get(path) != state)


def _is_in(path: str, folders: Sequence[str]) -> bool:
    return any(lies_in(path, folder) for folder in folders)


def _settings(host: Host, repository: str) -> Iterator[_State | None]:
    """Yield what tells whether a repository's settings or hooks are other ones than before."""
    paths = [repository, *settings_of(host, repository)]
    folders = [path for path in paths if path.rpartition("/")[2] == "hooks"]
    hooks = (each for folder in folders for each in hooks_in(folder))
    for path in (*paths, *hooks):
        try:
            status = os.lstat(path)
        except OSError:
            yield None
            continue
        is_content = not stat.S_ISDIR(status.st_mode)
        # A folder's own time changes with each commit; that of its hooks does not, nor when one is written in place.
        changed = status.st_ctime_ns if is_content or path in folders else 0
        yield status.st_mode, hash((status.st_ino, changed))
