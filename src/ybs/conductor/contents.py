"""The content of a folder: the state of each path, and the mapping of its absolute paths to those of a copy."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import copyfileobj
from time import time_ns

from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.project_walk import listings_of_project
from ybs.checkpoints.scan import KnownPaths, Scanner, Snapshot
from ybs.checkpoints.states import FULL, State, Take, state_at
from ybs.config.host import is_in_memory
from ybs.core.errors import Refused, ToolError
from ybs.security.paths.names import real_name, shown_name
from ybs.security.paths.roots import Roots
from ybs.tools.searching.ignore import Ignore
from ybs.tools.searching.walk import Deadline

#: Rights beyond these, such as setuid, are nobody's to hand on.
_RIGHTS = 0o777


class Contents(Struct, kw_only=True):
    """The states by path, which of the paths git ignores, and the folders that are not looked into: of dependencies, builds and caches.

    `full` are those among them that hold too much that git ignores.
    """

    states: dict[str, State]
    ignored: set[str]
    bulk: list[str]
    full: set[str] = set()
    #: What another look at the same folder need not read again.
    known: Mapping[str, KnownPaths] = {}


def look(
    roots: Roots,
    take: Take,
    deadline: Deadline,
    known: Mapping[str, KnownPaths] | None = None,
    above: Ignore | None = None,
) -> Contents:
    """Look at all of a project; `take` keeps what its files hold. Raises TooMuch and NoRoom.

    `above` has the rules of git for a project whose own place does not tell them.
    """
    snapshot, scanner = Snapshot(), Scanner(roots, take, lambda: deadline.is_over)
    scanner.scan(listings_of_project(roots, deadline, above), known or {}, snapshot)
    top = f"{str(roots.folder).rstrip('/')}/"
    below = _below(top)
    states = {below(path): plain(state) for path, (_, state) in snapshot.known.items()}
    return Contents(
        states={path: state for path, state in states.items() if not state.is_bulk},
        ignored=set(map(below, snapshot.ignored)),
        bulk=[path for path, state in states.items() if state.is_bulk],
        full={path for path, state in states.items() if state == FULL},
        known=snapshot.known,
    )


def plain(state: State) -> State:
    """Return a state without the rights that are nobody's to hand on."""
    mode = state.mode & _RIGHTS
    return state if mode == state.mode else replace(state, mode=mode)


def _below(top: str) -> Callable[[str], str]:
    return lambda path: path.removeprefix(top)


def path_in(folder: Path, path: str) -> str:
    """Return the absolute path of one in a folder."""
    return f"{str(folder).rstrip('/')}/{path}"


def moved_text(text: str, here: Path, there: Path) -> str:
    """Return a text with each path that lies in one folder as that in another; `/a/app-two` does not lie in `/a/app`."""
    return re.sub(rf"(?<![\w.~-]){re.escape(str(here))}(?![\w-]|\.\w)", lambda _: str(there), text)


def moved_link(state: State, here: Path, there: Path) -> State:
    """Return a link that leads into one folder by an absolute path as one that leads to the same place in another."""
    if state.kind != "link":
        return state
    target = real_name(state.target)
    if not (Path(target).is_absolute() and Path(target).is_relative_to(here)):
        return state
    return replace(state, target=shown_name(str(there / Path(target).relative_to(here))))


#: A copy takes no more.
MOST_COPIED_BYTES = 1_000_000_000
#: What is left for others on the disk.
LEAST_FREE_BYTES = 500_000_000
#: So many ignored files, and as many folders, that are too large to be copied are shown as they are; the sandbox takes a time for each.
MOST_SHOWN = 50
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_OWN_RIGHTS = 0o700


class Copied(Struct, kw_only=True):
    """What stands in a copy: the states by path, and what is only `shown` there, by a link to the original, or not at all."""

    base: dict[str, State]
    shown: tuple[str, ...]


class Copying:
    """Fills an empty folder of our own.

    Dependencies, build outputs, caches and large ignored files are links to the originals; without `has_links`, where nothing would
    keep commands from writing through them, they are not there.
    """

    def __init__(
        self,
        roots: Roots,
        contents: Contents,
        folder: Path,
        get: Callable[[str], bytes | None],
        *,
        has_links: bool,
    ) -> None:
        self._roots, self._contents, self._folder, self._get = roots, contents, folder, get
        self._has_links = has_links
        states = contents.states
        large = [path for path, state in states.items() if state.kind == "file" and state.mark]
        self._shown = [path for path in large if path in contents.ignored][:MOST_SHOWN]
        self._shown += [path for path in contents.bulk if path not in contents.full]
        self._shown += sorted(contents.full)[:MOST_SHOWN]
        self._large = [path for path in large if path not in contents.ignored]

    def _check_size(self) -> None:
        """Raise ToolError where the project is too large."""
        states = self._contents.states
        size = sum(state.size for state in states.values() if state.digest)
        size += sum(states[path].size for path in self._large)
        if size > MOST_COPIED_BYTES:
            raise ToolError(
                f"the project holds {size:,} bytes, and a copy of it may have {MOST_COPIED_BYTES:,}"
            )
        disk = os.statvfs(self._folder)
        if size + LEAST_FREE_BYTES > disk.f_bavail * disk.f_frsize:
            where = "memory (/dev/shm)" if is_in_memory(str(self._folder)) else "the disk"
            raise ToolError(
                f"a copy of the project takes {size:,} bytes, and {where} is nearly full"
            )

    def do(self, deadline: Deadline) -> Copied:
        """Write all of it. Raises ToolError where that is too much or takes too long, and OSError."""
        self._check_size()
        states = self._contents.states
        folders = sorted(path for path, state in states.items() if state.kind == "folder")
        self._make_folders(folders)
        base = {path: states[path] for path in folders}
        for path, state in states.items():
            if deadline.is_over:
                raise ToolError("making the copy takes too long")
            if state.digest or state.kind == "link":
                self._write(path, state)
                base[path] = state
        base |= self._copy_large()
        for path in self._shown if self._has_links else ():
            with suppress(OSError):  # the folder that it lies in could not be read
                self._place(path).symlink_to(path_in(self._roots.folder, path))
        for path in reversed(folders):
            self._place(path).chmod(states[path].mode)
        return Copied(base=base, shown=tuple(self._shown))

    def _make_folders(self, folders: Sequence[str]) -> None:
        for top in self._roots.folders:  # the tools may work in a part of the project alone
            if top.is_relative_to(self._roots.folder):
                (self._folder / top.relative_to(self._roots.folder)).mkdir(
                    parents=True, exist_ok=True
                )
        for path in folders:
            self._place(path).mkdir(_OWN_RIGHTS)

    def _write(self, path: str, state: State) -> None:
        place = self._place(path)
        if state.kind == "link":
            place.symlink_to(real_name(moved_link(state, self._roots.folder, self._folder).target))
            return
        data = self._get(state.digest)
        if data is None:
            raise ToolError("a part of the copy was damaged while it was made; try again")
        descriptor = os.open(place, _NEW, 0o600)
        with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - it wraps the descriptor
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            os.fchmod(descriptor, state.mode)
            # Builds go by times: what is newer than its source is not made again.
            changed_ns = self._changed_ns(path)
            os.utime(descriptor, ns=(changed_ns, changed_ns))

    def _changed_ns(self, path: str) -> int:
        try:
            return os.lstat(path_in(self._roots.folder, path)).st_mtime_ns
        except OSError:  # it has gone since
            return time_ns()

    def _copy_large(self) -> Iterator[tuple[str, State]]:
        """Copy the files that are too large to be held, and yield them as they are in the copy."""
        inside = Roots(self._roots.host, self._folder)
        for path in self._large:
            place = self._place(path)
            with suppress(OSError, Refused):  # it has gone, or may not be read
                self._stream(Path(path_in(self._roots.folder, path)), place)
                yield path, plain(state_at(inside, str(place)))

    def _place(self, path: str) -> Path:
        return Path(path_in(self._folder, path))

    def _stream(self, source: Path, place: Path) -> None:
        with self._roots.held(source) as original:
            reading = original.open(_READ)
            with open(reading, "rb") as file:  # noqa: PTH123 - it wraps the descriptor
                writing = os.open(place, _NEW, 0o600)
                with open(writing, "wb") as copy:  # noqa: PTH123 - it wraps the descriptor
                    copyfileobj(file, copy, 1_000_000)
                    os.fchmod(writing, os.fstat(reading).st_mode & 0o777)
