"""Keeps what runs in a sandbox from changing where a path leads while a program outside of the sandbox opens it.

A command in a sandbox could exchange a folder for a link in that moment. So a path is only `lent` while no command runs that may change files
on the way; or the commands that run are `paused` meanwhile. Either way none begins before that ends.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Collection, Generator, Hashable, Iterable
from contextlib import asynccontextmanager, contextmanager, suppress
from threading import Lock
from weakref import WeakKeyDictionary

from msgspec import Struct

from ybs.security.sandbox.places import lies_in
from ybs.tools.shell.freezing import freeze, thaw

WAIT_SECONDS = 0.01
_MOST_WAITS = 100  # for a command that is just beginning or ending
_HAS_PROC = os.path.exists("/proc/self/stat")  # noqa: PTH110 - a text


class _Command(Struct):
    """A command that runs: the folders in which it may change files, its first process (0: not known yet), and how it is paused."""

    folders: tuple[str, ...]
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
        if _meets(_leased, folders):
            return False
        _running[mark] = _Command(folders)
        return True


def note_started(mark: Hashable, first: int) -> None:
    """Note the first process of a command that has begun."""
    if command := _running.get(mark):
        command.first = first


def note_ended(mark: Hashable) -> None:
    """Note that nothing of a command runs any more, or that it could not be started."""
    with _lock:
        _running.pop(mark, None)


@contextmanager
def lent(*paths: str) -> Generator[bool]:
    """Yield whether no command in a sandbox may change what paths lead to, or what lies below them; then none begins before this ends."""
    with _lock:
        is_still = not any(_meets(paths, each.folders) for each in _running.values())
        if is_still:
            _leased.extend(paths)
    try:
        yield is_still
    finally:
        if is_still:
            _give_back(paths)


def may_change(*paths: str) -> bool:
    """Return whether a command that runs may change what paths lead to, or what lies below them."""
    return bool(_changing(paths))


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
    taken: list[_Command] = []
    work: asyncio.Future[bool] | None = None
    try:
        commands = await _settled(paths) if may_pause and _HAS_PROC else _changing(paths)
        if not (commands and may_pause):
            yield Pause(not commands)
            return
        work = asyncio.ensure_future(asyncio.to_thread(_pause_all, commands, taken))
        yield Pause(await asyncio.shield(work), len(commands))
    finally:
        # Also where who waits here is cancelled once more.
        await asyncio.shield(asyncio.ensure_future(_end(leased, work, taken)))


async def _end(
    paths: Iterable[str], work: asyncio.Future[bool] | None, taken: Iterable[_Command]
) -> None:
    """Let the commands go on, and new ones begin."""
    if work is not None:
        await asyncio.wait({work})
        await asyncio.to_thread(_resume_all, taken)
    _give_back(paths)


def _give_back(paths: Iterable[str]) -> None:
    with _lock:
        for path in paths:
            _leased.remove(path)


def _meets(paths: Iterable[str], folders: Iterable[str]) -> bool:
    pairs = ((path, folder) for folder in folders for path in paths)
    return any(lies_in(path, folder) or lies_in(folder, path) for path, folder in pairs)


def _changing(paths: Collection[str]) -> list[_Command]:
    with _lock:
        return [each for each in _running.values() if _meets(paths, each.folders)]


async def _settled(paths: Collection[str]) -> list[_Command]:
    """Return the commands that may change what paths lead to, once none is just beginning or ending."""
    commands, left = _changing(paths), _MOST_WAITS
    while left and not all(map(_has_process, commands)):
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
