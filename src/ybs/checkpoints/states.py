"""The state of a path (nothing, a file, a link or a folder), before and after a turn, and why one cannot be made again.

`why_unkept` is the only place that says so: the question before a command, the report of an undo and the docs go by it.
"""

import os
import stat
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from ybs.core.errors import Refused
from ybs.security.paths.bulk import MOST_KEPT_BYTES
from ybs.security.paths.names import shown_name
from ybs.security.paths.opening import OpenEntry
from ybs.security.paths.roots import Roots

MOST_FILE_BYTES = MOST_KEPT_BYTES
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY

#: Takes what a file holds and returns its digest; it may keep it.
Take = Callable[[bytes], str]
#: The prefix of the state of a path that is not a file, a folder or a link.
_SPECIAL = "special "


class State(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What stands at a path. A file without `digest` is too large to be kept, or may not be read.

    `mark` tells two of those apart. `target` is where a link leads, spelled as `shown_name` does.
    """

    kind: Literal["absent", "file", "link", "folder", "other"] = "absent"
    mode: int = 0
    size: int = 0
    digest: str = ""
    target: str = ""
    mark: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether it can be made again."""
        return self.kind != "other" and not self.mark

    @property
    def is_lost(self) -> bool:
        """Whether something is lost with it that nobody can make again."""
        return not (self.is_kept or self.is_special)

    @property
    def is_bulk(self) -> bool:
        """Whether it is a folder that was not looked into."""
        return self.kind == "folder" and bool(self.mark)

    @property
    def is_special(self) -> bool:
        """Whether it is a pipe, a socket or a device, in which nothing is kept."""
        return self.kind == "other" and self.mark.startswith(_SPECIAL)


ABSENT = State()
#: A folder of dependencies, build outputs or caches. Only that it is there is known, and no undo brings it back.
BULK = State(kind="folder", mark="bulk")
#: The same of an ignored folder that there was no room for.
FULL = State(kind="folder", mark="full")
#: What nobody looks at: it lies in none of the folders that undo walks through.
ELSEWHERE = State(kind="other", mark="elsewhere")
#: Of the files and folders that git ignores so many are kept, and so much of what the files hold.
MOST_IGNORED = 5_000
MOST_IGNORED_BYTES = 100_000_000
WHY_LARGE = f"is over {MOST_FILE_BYTES // 1_000_000} MB"
WHY_BULK = "holds dependencies, build outputs or a cache"
WHY_NO_ROOM = (
    f"is ignored by git, and undo keeps {MOST_IGNORED:,} such files and folders, "
    f"with {MOST_IGNORED_BYTES // 1_000_000} MB in all"
)
WHY_SPECIAL = "is not a plain file, or cannot be read"
WHY_ELSEWHERE = "lies where undo does not look"


def why_unkept(state: State) -> str:
    """Return why no undo brings back what stood there, without its subject; empty where one does."""
    if state.is_kept:
        return ""
    if state.kind == "other":
        return WHY_ELSEWHERE if state == ELSEWHERE else WHY_SPECIAL
    if state.kind == "file":
        return WHY_LARGE if state.size > MOST_FILE_BYTES else WHY_NO_ROOM
    return WHY_NO_ROOM if state == FULL else WHY_BULK


class Change(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A path that a turn changed: what stood there before and after.

    `is_broken`: somebody else changed it between two changes of the turn, so what stood before is not all there was.
    `is_ignored`: git ignores it, and no tool named it. Programs write such files at any time.
    """

    path: str
    before: State = ABSENT
    after: State = ABSENT
    is_broken: bool = False
    is_ignored: bool = False

    @property
    def why_not_undone(self) -> str:
        """Why what stood there before cannot be made again, or something would be lost by that; empty where it can."""
        return why_unkept(self.before) or ("" if self.after.is_special else why_unkept(self.after))

    @property
    def why_not_redone(self) -> str:
        """Why one of both sides cannot be made again; empty where both can."""
        return why_unkept(self.before) or why_unkept(self.after)


def digest_of(data: bytes) -> str:
    """Return the name of a content."""
    from hashlib import blake2b  # nothing is kept before the first change

    return blake2b(data, digest_size=20).hexdigest()


def state_at(roots: Roots, path: str, take: Take = digest_of) -> State:
    """Return what stands at an absolute path. A path through a link stands for nothing here."""
    return seen_at(roots, path, take)[0]


def seen_at(roots: Roots, path: str, take: Take) -> tuple[State, os.stat_result | None]:
    """Return what `state_at` does, and the status of what stands there."""
    from pathlib import Path

    try:
        with roots.held(Path(path)) as place:
            status = place.status()
            return (ABSENT if status is None else state_of(place, status, take)), status
    except (Refused, FileNotFoundError, NotADirectoryError):
        return ABSENT, None
    except OSError as error:
        return State(kind="other", mark=f"errno {error.errno}"), None


def state_of(place: OpenEntry, status: os.stat_result, take: Take) -> State:
    """Return the state of an entry whose status is known."""
    mode = stat.S_IMODE(status.st_mode)
    try:
        if stat.S_ISREG(status.st_mode):
            return _file_state(place, status, take)
        if stat.S_ISDIR(status.st_mode):
            return State(kind="folder", mode=mode)
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(place.name, dir_fd=place.folder)
            return State(kind="link", target=shown_name(target))
    except FileNotFoundError:
        return ABSENT
    except (OSError, Refused):  # it may not be read, or became something else in this moment
        return State(kind="other", mode=mode, mark=_mark(status))
    return State(kind="other", mode=mode, mark=_SPECIAL + _mark(status))


def unkept_file(status: os.stat_result) -> State:
    """Return the state of a file that is not read."""
    mode = stat.S_IMODE(status.st_mode)
    return State(kind="file", mode=mode, size=status.st_size, mark=_mark(status))


def unread_state(place: OpenEntry, status: os.stat_result) -> State | None:
    """Return the state of an entry that `state_of` could not keep, without reading it; None for any other."""
    if not stat.S_ISREG(status.st_mode):
        state = state_of(place, status, digest_of)
        return state if state.is_lost else None
    if status.st_size > MOST_FILE_BYTES:
        return unkept_file(status)
    is_readable = os.access(place.name, os.R_OK, dir_fd=place.folder)
    return None if is_readable else State(kind="other", mark=_mark(status))


def _file_state(place: OpenEntry, status: os.stat_result, take: Take) -> State:
    mode, size = stat.S_IMODE(status.st_mode), status.st_size
    if size > MOST_FILE_BYTES:
        return unkept_file(status)
    descriptor = place.open(_READ)
    try:
        data = _read(descriptor, size)
    finally:
        os.close(descriptor)
    if len(data) > MOST_FILE_BYTES:  # it grew
        return State(kind="file", mode=mode, size=len(data), mark=_mark(status))
    return State(kind="file", mode=mode, size=len(data), digest=take(data))


def _read(descriptor: int, size: int) -> bytes:
    data = os.read(descriptor, size + 1)
    if len(data) == size:  # mostly; one more read would say the same
        return data
    pieces, most = [data], MOST_FILE_BYTES + 1 - len(data)
    while piece := os.read(descriptor, most):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _mark(status: os.stat_result) -> str:
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


class KeptTurn(Struct, frozen=True, kw_only=True):
    """What a turn changed and was kept under a name.

    `unkept` are changed paths that no undo brings back, `shared` those that somebody else changed during the turn as well.
    `are_edits`: all of them were files before, and are files now. `made` are files that commands made and no tool named.
    """

    name: str
    paths: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    are_edits: bool = False
    made: tuple[str, ...] = ()


class Restored(Struct, frozen=True, kw_only=True):
    """What an undo or redo did: all or nothing.

    `conflicts` are paths that somebody else changed since, or where nothing may be written; while there are some
    nothing is done. `unkept` are paths that cannot be brought back, each with the reason, `left` ignored files that somebody else changed since,
    `stayed` folders that are not empty, and `beyond` says why commands may have changed more. `problem` says what ended it half-way, in words for the person: done once more it goes on.
    `overwritten` names what a forced undo found, itself a checkpoint: to undo that brings all of it back.
    """

    paths: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    unkept: Mapping[str, str] = {}
    left: tuple[str, ...] = ()
    stayed: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    is_done: bool = False
    problem: str = ""
    overwritten: str = ""


class Recovered(Struct, frozen=True, kw_only=True):
    """What a turn that was killed had changed; `has_more` tells that commands changed more, or may have."""

    kept: KeptTurn | None
    has_more: bool
