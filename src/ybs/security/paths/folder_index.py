"""An index of all folders of a project, kept between commands: its repositories and autorun files.

Every folder is listed once. Later only those are listed again whose time of change is another one: a folder's entries
cannot change without that, and nobody can set it. Nothing is passed over but what lies in a repository's own folder. What
could not be looked at, in time or at all, is named (`unseen`), so that whoever relies on the index can close it.
"""

import os
import stat
from errno import EACCES
from functools import cache
from threading import Lock
from time import monotonic, time_ns

from msgspec import Struct

from ybs.config.editables import left_out
from ybs.security.paths.autorun import MODULES, NAMES, PAIRS, kind_of
from ybs.security.paths.git_names import PARTS, REPOSITORIES, is_repository

#: How long one look may take. The next one goes on where it ended.
LOOK_SECONDS = 10.0
#: What is installed here comes by the thousand, and nobody opens a folder in it: repositories alone count.
_DEPENDENCIES = frozenset(
    {"node_modules", "bower_components", "site-packages", "dist-packages", "vendor", "pods"}
    | {".tox", ".nox", ".pnpm-store", ".gradle"}
)
#: Looked at last, so that a look that takes too long has seen the project's own folders.
_LAST = _DEPENDENCIES | {".venv", "venv", "target", "dist", "build", "__pycache__"}
#: Bytes of a path; the system takes 4,096 (PATH_MAX), with the names below.
_LONGEST = 3_000
_CLOCK_NS = 20_000_000  # file times may lag behind the clock by a tick of the kernel
#: Names of the top and pairs of names below it are held.
_HELD_DEPTH = 2


class IndexedPaths(Struct):
    """What an index knows: absolute paths.

    `repositories` are folders of version control (or the files in their place) and bare repositories; where the root itself is
    one, its parts stand for it. `autorun` are the files that run or are read later, `links` those of them that are links or lie
    behind one of their name, such as `.cargo/config.toml` for a link `.cargo`; these need not exist. `held` are those entries at the
    root's top that the sandbox holds, and the links below them. `special` are sockets, pipes and devices. `unseen` are folders that
    were not looked at.
    """

    repositories: list[str] = []
    autorun: list[str] = []
    links: list[str] = []
    held: list[str] = []
    special: list[str] = []
    unseen: list[str] = []


class _Names(Struct, frozen=True):
    """The names in a folder: of what is not a folder, of links, and all without their case."""

    others: frozenset[str] = frozenset()
    links: frozenset[str] = frozenset()
    folded: frozenset[str] = frozenset()


#: Of single folders: their time of change with their names.
_known: dict[str, tuple[tuple[int, ...], _Names]] = {}


class _Folder(Struct, gc=False):
    """One folder: its stamp (None: it may change again unseen), the folders in it, and what counts among its entries."""

    stamp: int | None
    folders: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    autorun: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    is_bare: bool = False


class FolderIndex:
    """The folders below a root. Used by several threads."""

    def __init__(self, root: str, look_seconds: float | None = None) -> None:
        self._root = root
        self._look_seconds = LOOK_SECONDS if look_seconds is None else look_seconds
        self._folders: dict[str, _Folder] = {}
        self._lock = Lock()
        self._found = IndexedPaths()
        self._ended = self._took = 0.0

    def look(self, *, is_fresh: bool = False, rests: float = 1.0) -> IndexedPaths:
        """Return the current index or, unless `is_fresh`, a recent one if a look takes long: it rests so many times as long as it takes."""
        with self._lock:
            began = monotonic()
            if is_fresh or began - self._ended >= rests * self._took:
                self._found = self._looked(began + self._look_seconds)
                self._ended = monotonic()
                self._took = self._ended - began
            return self._found

    def _looked(self, end: float) -> IndexedPaths:
        found, known, fresh = IndexedPaths(), self._folders, dict[str, _Folder]()
        pending, last = [_Below(self._root, depth=0)], list[_Below]()
        while pending or last:
            below = (pending or last).pop()
            path = below.path
            if monotonic() > end:
                found.unseen += [path, *(each.path for each in (*pending, *last))]
                break
            try:
                folder = _folder_at(below, known.get(path))
            except PermissionError as error:
                found.unseen.append(error.filename)
                continue
            if folder is None:
                continue
            fresh[path] = folder
            if folder.repositories or folder.autorun or folder.held or folder.is_bare:
                _add(found, below, folder)
            found.special += [f"{path}/{name}" for name in folder.special]
            for name in folder.folders:
                (last if name.lower() in _LAST else pending).append(below.one(name))
        # What was not come to is looked at next time, and what is known of it need not be listed again.
        self._folders = {**known, **fresh} if found.unseen else fresh
        return found


class _Below:
    """A folder on the way: how deep, whether its files run later, whether the sandbox holds it, and whether it lies among dependencies."""

    __slots__ = ("depth", "is_autorun", "is_held", "is_installed", "path")

    def __init__(
        self,
        path: str,
        *,
        depth: int,
        is_autorun: bool = False,
        is_held: bool = False,
        is_installed: bool = False,
    ) -> None:
        self.path, self.depth = path, depth
        self.is_autorun, self.is_held, self.is_installed = is_autorun, is_held, is_installed

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2].lower()

    def one(self, name: str) -> "_Below":
        lower = name.lower()
        is_autorun = self.is_autorun or kind_of(lower, self.name) is not None
        return _Below(
            f"{self.path}/{name}",
            depth=self.depth + 1,
            is_autorun=is_autorun,
            is_held=is_autorun and (self.is_held or self.holds(lower)),
            is_installed=(self.is_installed or lower in _DEPENDENCIES)
            and f"{self.path}/{name}" not in _looked_in(tuple(left_out)),
        )

    def holds(self, lower: str) -> bool:
        """Return whether the sandbox holds an entry: at the top by its name, one folder below it by two names."""
        if not self.depth:
            return kind_of(lower) == "held"
        return self.depth < _HELD_DEPTH and NAMES.get(f"{self.name}/{lower}") == "held"


@cache
def _looked_in(folders: tuple[str, ...]) -> frozenset[str]:
    """Return folders of editable installs without links: Python looks in them at each start, whatever they are called and lie in."""
    return frozenset(map(os.path.realpath, folders))


@cache
def index_of(root: str) -> FolderIndex:
    """Return the index of a folder, one for the whole process."""
    return FolderIndex(root)


def listed(folder: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names in a folder that are not folders, and those of the links; it is listed once for each time of its change."""
    found = _names(folder) or _Names()
    return found.others, found.links


def names_in(folder: str) -> frozenset[str] | None:
    """Return all names in a folder without their case, which some systems ignore; None where it cannot be listed."""
    found = _names(folder)
    return found and found.folded


def _names(folder: str) -> _Names | None:
    try:
        status = os.stat(folder)  # noqa: PTH116 - texts throughout
        stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
        known = _known.get(folder)
        if known is not None and known[0] == stamp:
            return known[1]
        with os.scandir(folder) as entries:
            kinds = {each.name: (each.is_dir(follow_symlinks=False), each.is_symlink()) for each in entries}  # fmt: skip
    except (OSError, ValueError):
        return None
    found = _Names(
        frozenset(name for name, (is_folder, _) in kinds.items() if not is_folder),
        frozenset(name for name, (_, is_link) in kinds.items() if is_link),
        frozenset(map(str.casefold, kinds)),
    )
    if status.st_ctime_ns + _CLOCK_NS < time_ns():
        _known[folder] = stamp, found
    return found


def _folder_at(below: _Below, known: _Folder | None) -> _Folder | None:
    """Return what is known of a folder; None where it has gone, or belongs to somebody else who lets nobody in.

    Raises PermissionError with the folder, or the one around it, that may not be looked at: a command can work in it, or take
    that back (`chmod 311 .`). The same goes for one below which paths are too long for the system, and not for a program that walks there.
    """
    try:
        status = os.lstat(below.path)
    except PermissionError as error:
        raise PermissionError(EACCES, "", below.path.rpartition("/")[0] or "/") from error
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    is_settled = status.st_ctime_ns + _CLOCK_NS < time_ns()
    stamp = hash((status.st_dev, status.st_ino, status.st_ctime_ns)) if is_settled else None
    if known is not None and stamp is not None and known.stamp == stamp:
        return known
    try:
        return _listed(below, stamp)
    except PermissionError as error:
        if status.st_uid != os.geteuid() and not os.access(below.path, os.X_OK):
            return None
        raise PermissionError(EACCES, "", below.path) from error
    except OSError:
        return None


def _listed(below: _Below, stamp: int | None) -> _Folder:
    if len(os.fsencode(below.path)) > _LONGEST:
        raise PermissionError(EACCES, "", below.path)
    folders, others, links, special = list[str](), list[str](), list[str](), list[str]()
    with os.scandir(below.path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_symlink():
                links.append(entry.name)
            else:
                others.append(entry.name)
                if not entry.is_file(follow_symlinks=False):
                    special.append(entry.name)
    names = {*folders, *others, *links}
    is_bare = is_repository(names.__contains__)
    if is_bare and below.depth:
        return _Folder(stamp, special=tuple(special), is_bare=True)
    repositories = names & (REPOSITORIES | PARTS if is_bare else REPOSITORIES)
    files = () if below.is_installed else _autorun_files(below, others, links)
    behind = [] if below.is_installed else _behind(links)
    held = [name for name in names - repositories if below.holds(name.lower())]
    if (
        below.is_held
    ):  # what lies in it is held with it, but for what links lead to; documents may be written
        held += [name for name in links if kind_of(name.lower(), below.name) != "read"]
    held += [name for name in behind if not below.depth and NAMES[name.lower()] == "held"]
    return _Folder(
        stamp,
        folders=tuple(name for name in folders if name not in repositories),
        repositories=tuple(repositories),
        autorun=(*files, *behind),
        links=(*set(files).intersection(links), *behind),
        held=tuple(held),
        special=tuple(special),
    )


def _autorun_files(below: _Below, others: list[str], links: list[str]) -> list[str]:
    names = [*others, *links]
    if below.is_autorun:
        return names
    above = below.name
    packages = [name for name in links if name.lower() in MODULES]  # as far as one can see
    return [*(name for name in names if kind_of(name.lower(), above)), *packages]


def _behind(links: list[str]) -> list[str]:
    """Return what runs or is read later behind links of the first of two names; none of it need exist."""
    return [
        f"{name}{pair[len(name) :]}"
        for name in links
        for pair in PAIRS
        if pair.startswith(f"{name.lower()}/")
    ]


def _add(found: IndexedPaths, below: _Below, folder: _Folder) -> None:
    path = below.path
    if folder.is_bare:
        found.repositories.append(path)
    found.repositories += [f"{path}/{name}" for name in folder.repositories]
    found.autorun += [f"{path}/{name}" for name in folder.autorun]
    found.links += [f"{path}/{name}" for name in folder.links]
    found.held += [f"{path}/{name}" for name in folder.held]
