"""A snapshot of the project: what stands at every path but in bulk folders; only what changed is read again."""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, time_ns

from msgspec import Struct

from ybs.checkpoints.states import (
    ABSENT,
    ELSEWHERE,
    MOST_FILE_BYTES,
    MOST_IGNORED,
    MOST_IGNORED_BYTES,
    State,
    Take,
    state_of,
    unkept_file,
    unread_state,
)
from ybs.core.errors import Refused, YbsError
from ybs.security.paths.bulk import is_cache
from ybs.security.paths.opening import OpenEntry, stamp_of
from ybs.security.paths.path_text import above, lies_in
from ybs.security.paths.roots import Roots

MOST_PATHS = 50_000
MOST_NEW_BYTES = 1_000_000_000
#: A file that changed so shortly before it was read may change again without another time: clocks are coarse.
UNSETTLED_NS = 2_000_000_000


class TooMuch(YbsError):
    """The project is too large for a snapshot, or it takes too long."""


class FolderListing(Struct, kw_only=True):
    """The paths below a folder, relative to it: files and links, folders, and what was passed over.

    `ignored` are those of the files and folders that git ignores, `bulk` the folders that were passed over as such, with their states.
    """

    folder: Path
    files: list[str]
    folders: list[str]
    left_out: set[str]
    ignored: set[str] = set()
    bulk: Mapping[str, State] = {}


#: What is known of a path: the stamp that says whether it must be read again (None: it must), and its state.
KnownPaths = tuple[tuple[int, ...] | None, State]


class Snapshot:
    """What stood at every path, which paths git `ignored`, and which were left out as bulk or blocked.

    `fresh` are the files that were read and had changed since a moment.
    """

    def __init__(self, since_ns: int = sys.maxsize) -> None:
        self.since_ns = since_ns
        self.fresh: set[str] = set()
        self.known: dict[str, KnownPaths] = {}
        self.left_out: set[str] = set()
        self.ignored: set[str] = set()
        self.folders: list[str] = []

    def covers(self, path: str) -> bool:
        """Return whether the path was looked at, or was not there: it is neither left out nor elsewhere."""
        while path not in self.folders:
            if path in self.left_out or path in ("/", ""):
                return False
            path = os.path.dirname(path)  # noqa: PTH120 - texts, many of them
        return True

    def kept(self, path: str, status: os.stat_result) -> State | None:
        """Return what was kept of a path that is as it was; None where that is not known."""
        known = self.known.get(path)
        return known[1] if known is not None and known[0] == stamp_of(status) else None

    def has_room_for(self, path: str) -> bool:
        """Return whether what stands at the path now is kept too, however much else there is."""
        return path in self.known and path not in self.ignored


class Unkept:
    """What a snapshot does not keep, and all that lies in none of its folders. What git keeps itself (`.git`) is left out."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._folders, known = snapshot.folders, snapshot.known.items()
        self._states = {path: state for path, (_, state) in known if state.is_lost}

    def at(self, path: str) -> tuple[str, State]:
        """Return what is not kept of a path, and where: itself, a folder that it lies in, or what lies in it; else the path."""
        for here in (path, *above(path)):
            if here in self._states:
                return here, self._states[here]
        below = f"{path}/"
        within = (each for each in self._states.items() if each[0].startswith(below))
        is_walked = any(lies_in(path, folder) for folder in self._folders)
        return next(within, (path, ABSENT if is_walked else ELSEWHERE))


class Scanner:
    """Takes snapshots. `is_over` ends one early. Without `reads` it has only what another one would not keep."""

    def __init__(
        self, roots: Roots, take: Take, is_over: Callable[[], bool], *, reads: bool = True
    ) -> None:
        self._roots, self._take, self._is_over, self._reads = roots, take, is_over, reads
        self._new_bytes = self._ignored_bytes = self._ignored_files = 0
        #: How long it took to find what must be read.
        self.seconds = 0.0

    def scan(
        self, listings: Iterable[FolderListing], known: Mapping[str, KnownPaths], snapshot: Snapshot
    ) -> None:
        """Look at all paths; what is `known` with the same stamp is not read. Raises TooMuch and NoRoom."""
        unread: list[tuple[str, list[str]]] = []
        bulk: dict[str, State] = {}
        count, began = 0, monotonic()
        for listing in listings:
            top = str(listing.folder).rstrip("/")
            snapshot.folders.append(str(listing.folder))
            snapshot.left_out.update(f"{top}/{path}" for path in listing.left_out)
            snapshot.ignored.update(f"{top}/{path}" for path in listing.ignored)
            count += len(listing.files) + len(listing.folders) - len(listing.ignored)
            if count > MOST_PATHS:
                raise TooMuch(f"there are more than {MOST_PATHS:,} files and folders")
            for below, names in _by_folder(listing):
                folder = f"{top}/{below}"
                unread.append((folder, self._stat(folder, names, known, snapshot)))
            bulk |= {f"{top}/{path}": state for path, state in listing.bulk.items()}
        self.seconds = monotonic() - began
        if self._new_bytes > MOST_NEW_BYTES:
            raise TooMuch(f"the files hold more than {MOST_NEW_BYTES:,} bytes")
        for folder, names in unread if self._reads else ():
            self._read(folder, names, snapshot)
        snapshot.known.update((path, (None, state)) for path, state in bulk.items())

    def _stat(
        self, folder: str, names: list[str], known: Mapping[str, KnownPaths], snapshot: Snapshot
    ) -> list[str]:
        """Take over what is as it was in a folder, which ends in a slash; return the names that must be read."""
        unread: list[str] = []
        for place in self._places(folder, names):
            if (status := _status(place)) is None:
                continue
            path = folder + place.name
            has_room = path not in snapshot.ignored or self._has_room(status)
            if (old := known.get(path)) is not None and old[0] == stamp_of(status):
                snapshot.known[path] = old
                continue
            if not has_room:
                snapshot.known[path] = None, unkept_file(status)
                continue
            if not self._reads and (state := unread_state(place, status)) is not None:
                snapshot.known[path] = None, state
                continue
            unread.append(place.name)
            self._new_bytes += status.st_size if status.st_size <= MOST_FILE_BYTES else 0
        return unread

    def _has_room(self, status: os.stat_result) -> bool:
        """Count an ignored file, and return whether what it holds is kept."""
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_FILE_BYTES:
            return True  # it takes none
        self._ignored_files += 1
        self._ignored_bytes += status.st_size
        return self._ignored_files <= MOST_IGNORED and self._ignored_bytes <= MOST_IGNORED_BYTES

    def _read(self, folder: str, names: list[str], snapshot: Snapshot) -> None:
        unsettled = time_ns() - UNSETTLED_NS
        for place in self._places(folder, names):
            if (status := _status(place)) is None:
                continue
            state = state_of(place, status, self._take)
            path = folder + place.name
            is_settled = max(status.st_mtime_ns, status.st_ctime_ns) < unsettled
            is_file = not stat.S_ISDIR(status.st_mode)
            if is_newer(status, snapshot.since_ns):
                snapshot.fresh.add(path)
            snapshot.known[path] = (stamp_of(status) if is_settled and is_file else None), state
            if state.kind == "folder" and not _is_open(place):
                snapshot.left_out.add(path)

    def _places(self, folder: str, names: list[str]) -> Iterator[OpenEntry]:
        """Yield the places in a folder that is held open. One that has gone, or is a link by now, has none."""
        if not names:
            return
        with suppress(OSError, Refused), self._roots.held(Path(folder) / "x") as place:
            for name in names:
                if self._is_over():
                    raise TooMuch("reading the files takes too long")
                yield place.beside(name)


def _status(place: OpenEntry) -> os.stat_result | None:
    with suppress(OSError):  # no right to enter its folder
        return place.status()
    return None


def is_newer(status: os.stat_result, since_ns: int) -> bool:
    """Return whether it is a file, or a link, that changed since then."""
    return status.st_ctime_ns > since_ns and not stat.S_ISDIR(status.st_mode)


def _is_open(place: OpenEntry) -> bool:
    """Return whether what is in a folder can be listed; of one that cannot nobody knows what was in it."""
    return os.access(place.name, os.R_OK | os.X_OK, dir_fd=place.folder)


def _by_folder(listing: FolderListing) -> Iterable[tuple[str, list[str]]]:
    """Return the names by their folder, which is empty or ends in a slash."""
    grouped: dict[str, list[str]] = {}
    for path in (*listing.files, *listing.folders):
        folder, slash, name = path.rpartition("/")
        grouped.setdefault(folder + slash, []).append(name)
    return grouped.items()


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
