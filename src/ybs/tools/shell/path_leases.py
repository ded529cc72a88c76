"""Keeps what runs in a sandbox from changing where a path leads while a program outside of the sandbox opens it.

A command in a sandbox could exchange a folder for a link in that moment. So a path is only `lent` while no command runs that may change files
on the way; or the commands that run are `paused` meanwhile. Either way none begins before that ends.

That holds for all processes of ybs that have one state folder: each command and each path that is lent has a file there as long as it lasts (`_Note`). Whoever begins
writes its own before it looks at those of other processes, so of two at least one sees the other. Commands of another process are not paused.
"""

import asyncio
import errno
import fcntl
import os
from collections.abc import AsyncGenerator, Collection, Generator, Hashable, Iterable
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary

from msgspec import Struct

from ybs.config import private_file
from ybs.config.host import states, unnamed
from ybs.core.errors import YbsError
from ybs.security.paths.path_text import lies_in, lies_in_one
from ybs.tools.shell.freezing import freeze, thaw

WAIT_SECONDS = 0.01
_MOST_WAITS = 100  # for a command that is just beginning or ending
_HAS_PROC = os.path.exists("/proc/self/stat")  # noqa: PTH110 - a text
#: Names of files of this process begin with it.
_OURS = f"{os.getpid()}-{os.urandom(6).hex()}."
_FOLDER, _COMMAND, _LENT = "leases", "command", "lent"
_MOST_BYTES = 1_000_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_numbers = count(1)
_checked: set[str] = set()


class _Note:
    """Tells other processes of ybs of a command or of paths that are lent, until it is closed, forgotten, or this process is gone.

    It is a file that is locked, in each state folder of this process. A file without a lock is of a process that was killed, and is removed.
    One of an incognito session names no folder but `/`, so it may be about any.
    """

    def __init__(self, kind: str, paths: Collection[str]) -> None:
        self._files: list[tuple[str, int]] = []
        #: Whether others can know of it. Where no process may write in the state folder, there is nothing to know.
        self.is_made = True
        is_named = not any(lies_in_one(path, unnamed) for path in paths)
        text = os.fsencode("\0".join((kind, *(paths if is_named else "/"))))
        for state in states:
            try:
                self.is_made &= self._write(f"{state}/{_FOLDER}", text)
            except (OSError, YbsError) as error:
                self.is_made &= getattr(error, "errno", 0) in (errno.EROFS, errno.EACCES)

    def _write(self, folder: str, text: bytes) -> bool:
        if folder not in _checked or not os.path.isdir(folder):  # noqa: PTH112 - a text
            private_file.make_folder(Path(folder))
            _checked.add(folder)
        while True:
            path = f"{folder}/{_OURS}{next(_numbers)}"
            handle = os.open(path, _NEW, private_file.FILE_MODE)
            self._files.append((path, handle))
            # Another process may take it for one of a dead process in this moment, and remove it.
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(handle).st_nlink:
                    return os.write(handle, text) == len(text)

    def close(self) -> None:
        """Remove it."""
        while self._files:
            path, handle = self._files.pop()
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108 - first, so that nobody takes it for one of a dead process
            os.close(handle)

    __del__ = close


class _Command(Struct):
    """A command that runs: the folders in which it may change files, its first process (0: not known yet), and how it is paused."""

    folders: tuple[str, ...]
    note: _Note | None = None
    first: int = 0
    #: How many want it paused, and the processes that were stopped for the first of them.
    pauses: int = 0
    stopped: frozenset[int] = frozenset()


class Pause(Struct, frozen=True):
    """Whether the paths cannot be changed, and how many commands are paused for that."""

    is_sure: bool
    paused: int = 0


#: By the mark of each. `_lock` guards these; whoever pauses a command holds `_pausing` besides, which may take a while.
_running: "WeakKeyDictionary[Hashable, _Command]" = WeakKeyDictionary()
_leased: list[str] = []
_lock, _pausing = Lock(), Lock()


def may_begin(mark: Hashable, folders: tuple[str, ...]) -> bool:
    """Note that a command begins which may change files in these folders; return False where it has to wait."""
    with _lock:
        if _meets(_leased, folders) or _is_elsewhere(_LENT, folders):
            return False
        command = _Command(folders, _Note(_COMMAND, folders) if folders else None)
        if command.note and _is_elsewhere(_LENT, folders):
            command.note.close()
            return False
        _running[mark] = command
        return True


def note_started(mark: Hashable, first: int) -> None:
    """Note the first process of a command that has begun."""
    if command := _running.get(mark):
        command.first = first


def note_ended(mark: Hashable) -> None:
    """Note that nothing of a command runs any more, or that it could not be started."""
    with _lock:
        if (command := _running.pop(mark, None)) and command.note:
            command.note.close()


@contextmanager
def lent(*paths: str) -> Generator[bool]:
    """Yield whether no command in a sandbox may change what paths lead to, or what lies below them; then none begins before this ends."""
    with _lock:
        is_still = not any(_meets(paths, each.folders) for each in _running.values())
        note = _Note(_LENT, paths) if is_still else None
        is_still = _is_sure(note, paths)
        if is_still:
            _leased.extend(paths)
        elif note:
            note.close()
    try:
        yield is_still
    finally:
        if is_still:
            _give_back(paths, note)


def may_change(*paths: str) -> bool:
    """Return whether a command that runs may change what paths lead to, or what lies below them."""
    return bool(_changing(paths)) or _is_elsewhere(_COMMAND, paths)


@asynccontextmanager
async def paused(
    paths: Collection[str], *, may_pause: bool = True, may_begin: bool = False
) -> AsyncGenerator[Pause]:
    """Pause the commands that may change what paths lead to, until this ends. Without `may_pause` none of them may run.

    With `may_begin` others may begin meanwhile, as one does that itself waits for nothing but those that run now.
    """
    leased = () if may_begin else paths
    with _lock:
        _leased.extend(leased)
        note = _Note(_LENT, leased) if leased else None
    taken: list[_Command] = []
    work: asyncio.Future[bool] | None = None
    try:
        if may_pause and _HAS_PROC:
            commands = await _settled(paths, leased)
        else:
            commands = _changing(paths)
        is_sure = note is None or _is_sure(note, leased)
        if not (commands and may_pause and is_sure):
            yield Pause(is_sure and not commands)
            return
        work = asyncio.ensure_future(asyncio.to_thread(_pause_all, commands, taken))
        yield Pause(await asyncio.shield(work), len(commands))
    finally:
        # Also where who waits here is cancelled once more.
        await asyncio.shield(asyncio.ensure_future(_end(leased, note, work, taken)))


async def _end(
    paths: Iterable[str],
    note: _Note | None,
    work: asyncio.Future[bool] | None,
    taken: Iterable[_Command],
) -> None:
    """Let the commands go on, and new ones begin."""
    if work is not None:
        await asyncio.wait({work})
        await asyncio.to_thread(_resume_all, taken)
    _give_back(paths, note)


def _give_back(paths: Iterable[str], note: _Note | None) -> None:
    with _lock:
        for path in paths:
            _leased.remove(path)
        if note:
            note.close()


def _is_sure(note: _Note | None, paths: Collection[str]) -> bool:
    """Return whether other processes know that paths are lent, and have no command at work that may change what they lead to."""
    return note is not None and note.is_made and not _is_elsewhere(_COMMAND, paths)


def _is_elsewhere(kind: str, paths: Collection[str]) -> bool:
    """Return whether another process has a command, or paths that it lends, that paths have to do with; or may have, where that cannot be read."""
    try:
        return any(_meets(paths, others) for others in _others(kind))
    except OSError:
        return kind == _COMMAND  # without its files no command would begin any more


def _others(kind: str) -> Generator[list[str]]:
    """Yield the paths of each note of other processes; remove those of dead ones. Raises OSError."""
    for state in states:
        folder = f"{state}/{_FOLDER}"
        try:
            names = os.listdir(folder)  # noqa: PTH208 - names, not paths
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
        for name in names:
            if name.startswith(_OURS):
                continue
            with suppress(FileNotFoundError):
                handle = os.open(f"{folder}/{name}", _READ)
                try:
                    fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    os.unlink(f"{folder}/{name}")  # noqa: PTH108 - a text
                except BlockingIOError:
                    found, *others = os.fsdecode(os.read(handle, _MOST_BYTES)).split("\0")
                    if found == kind:
                        yield others
                finally:
                    os.close(handle)


def _meets(paths: Iterable[str], folders: Iterable[str]) -> bool:
    pairs = ((path, folder) for folder in folders for path in paths)
    return any(lies_in(path, folder) or lies_in(folder, path) for path, folder in pairs)


def _changing(paths: Collection[str]) -> list[_Command]:
    with _lock:
        return [each for each in _running.values() if _meets(paths, each.folders)]


async def _settled(paths: Collection[str], lent_out: Collection[str]) -> list[_Command]:
    """Return the commands that may change what paths lead to, once none is just beginning or ending, and none of another process runs."""
    commands, left = _changing(paths), _MOST_WAITS
    while left and not (all(map(_has_process, commands)) and not _is_elsewhere(_COMMAND, lent_out)):
        await asyncio.sleep(WAIT_SECONDS)
        commands, left = _changing(paths), left - 1
    return commands


def _has_process(command: _Command) -> bool:
    try:
        with open(f"/proc/{command.first}/stat", "rb") as file:  # noqa: PTH123 - as quick as can be
            return file.read().rpartition(b")")[2].split()[0] not in b"ZX"
    except OSError:
        return False


def _pause_all(commands: Iterable[_Command], taken: list[_Command]) -> bool:
    """Pause commands; note each that is, and return whether all are."""
    with _pausing:
        for command in commands:
            if not command.pauses:
                stopped = None
                with suppress(OSError):  # there may be no more descriptors
                    stopped = freeze(command.first)
                if stopped is None:
                    return False
                command.stopped = stopped
            command.pauses += 1
            taken.append(command)
        return True


def _resume_all(taken: Iterable[_Command]) -> None:
    with _pausing:
        for command in taken:
            command.pauses -= 1
            if not command.pauses:
                thaw(command.stopped)
