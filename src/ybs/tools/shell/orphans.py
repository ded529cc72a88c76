"""Processes that left the group of their command: found by a mark in their environment, and ended.

This needs /proc, so elsewhere only the group is ended. A program that empties its environment *and* has no parent
any more is not found; only a sandbox holds such a one.

A command in a sandbox could exchange a folder for a link while a program outside of it opens a path there. So a path is only
`lent` to one while no command runs that may change files on the way, or is `held`: those that run stand still meanwhile.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Collection, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from itertools import count
from threading import Lock
from time import sleep
from weakref import WeakKeyDictionary

from msgspec import Struct

from ybs.security.sandbox.launch import Launch
from ybs.security.sandbox.places import lies_in
from ybs.tools.shell.freezing import freeze, thaw

VARIABLE = "RUN_BY_YBS"
_SHORT_SECONDS = 1.0  # numbers may begin again from 1 while a longer one runs
_MOST_TRIES = 1000  # numbers tried one by one; beyond that, looking who is there is quicker
_MOST_ROUNDS = 5  # what is found may just have made another one
_GONE = b"?"  # nothing to wait for
_WAIT_SECONDS = 0.01
_MOST_WAITS = 100  # for a command that is just beginning or ending
_HAS_PROC = os.path.exists("/proc/self/stat")  # noqa: PTH110 - a text
_calls = count(1)
_lock = Lock()
#: The folders that running commands may change files in, and the paths that are lent.
_changing: "WeakKeyDictionary[CommandMark, tuple[str, ...]]" = WeakKeyDictionary()
_lent: list[str] = []
#: The first process of each command; of those that stand still how many want that, and which processes were stopped for it.
_first: "WeakKeyDictionary[CommandMark, int]" = WeakKeyDictionary()
_frozen: dict["CommandMark", tuple[int, frozenset[int]]] = {}


@contextmanager
def lent(path: str) -> Generator[bool]:
    """Yield whether no command in a sandbox may change what a path leads to; then none begins before this ends."""
    with _lock:
        is_still = not any(_any_lies_in((path,), folders) for folders in _changing.values())
        if is_still:
            _lent.append(path)
    try:
        yield is_still
    finally:
        if is_still:
            _lent.remove(path)


@asynccontextmanager
async def held(paths: Collection[str], *, may_freeze: bool = True) -> AsyncGenerator[bool]:
    """Yield whether no command in a sandbox can change what paths lead to before this ends: those that could stand still, and none begins.

    Without `may_freeze` none stands still, so that it takes none that runs.
    """
    with _lock:
        _lent.extend(paths)
    taken: list[CommandMark] = []
    try:
        for _ in range(_MOST_WAITS):
            with _lock:
                changing = [m for m, folders in _changing.items() if _any_lies_in(paths, folders)]
                is_clear = all(map(_runs, changing))  # none is just beginning or ending
                if may_freeze and is_clear:
                    taken = [mark for mark in changing if _hold(mark)]
            if is_clear or not (may_freeze and _HAS_PROC):
                break
            await asyncio.sleep(_WAIT_SECONDS)
        yield len(taken) == len(changing)
    finally:
        with _lock:
            for path in paths:
                _lent.remove(path)
            for mark in taken:
                _let_go(mark)


def _any_lies_in(paths: Iterable[str], folders: Iterable[str]) -> bool:
    return any(lies_in(path, folder) for folder in folders for path in paths)


def _runs(mark: "CommandMark") -> bool:
    first = _first.get(mark)
    try:
        return first is not None and not _is_dead(first)
    except OSError:
        return False


def _hold(mark: "CommandMark") -> bool:
    count, stopped = _frozen.get(mark, (0, None))
    stopped = freeze(_first[mark]) if stopped is None else stopped
    if stopped is None:
        return False
    _frozen[mark] = (count + 1, stopped)
    return True


def _let_go(mark: "CommandMark") -> None:
    count, stopped = _frozen.pop(mark)
    if count > 1:
        _frozen[mark] = (count - 1, stopped)
    else:
        thaw(stopped)


class CommandMark(Struct, frozen=True, weakref=True):
    """The mark of one command."""

    text: str

    @classmethod
    def new(cls) -> "CommandMark":
        """Make one that no other command has."""
        return cls(f"{token()}.{next(_calls)};")

    def put_on(self, environ: dict[str, str]) -> dict[str, str]:
        """Return a command's environment with the mark, behind that of a ybs around this one."""
        return {**environ, VARIABLE: environ.get(VARIABLE, "") + self.text}

    async def begin(self, launch: Launch) -> None:
        """Wait until nothing that the command may change is lent; then nothing of it is until `end_all`. It is called before each start."""
        try:
            while not self._has_begun(launch.writable):  # noqa: ASYNC110 - event loops share this
                await asyncio.sleep(_WAIT_SECONDS)
        except asyncio.CancelledError:
            for descriptor in launch.descriptors:
                os.close(descriptor)
            raise

    def _has_begun(self, folders: tuple[str, ...]) -> bool:
        with _lock:
            if _any_lies_in(_lent, folders):
                return False
            _changing[self] = folders
            return True

    def started(self, first: int) -> None:
        """Say which process the command has begun with."""
        _first[self] = first

    def end_all(self, shell: int, seconds: float) -> int:
        """Kill all processes that carry the mark, and return how many there were.

        `shell` is the number of the command's first process, and `seconds` how long it ran.
        """
        ended: set[int] = set()
        for _ in range(_MOST_ROUNDS):
            environs = {pid: _environ_of(pid) for pid in _candidates(shell, seconds)}
            found = [pid for pid, environ in environs.items() if self.text.encode() in environ]
            for pid in found:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            ended.update(found)
            is_clear = all(environ for pid, environ in environs.items() if pid > shell)
            if not found and is_clear:
                break
            sleep(
                0.001
            )  # for one that is about to begin or to be gone; this is a thread of its own
        with _lock:
            _changing.pop(self, None)
        return len(ended)


def _environ_of(pid: int) -> bytes:
    """Return the environment: empty for a process that is just beginning."""
    try:
        return _read(f"/proc/{pid}/environ") or (_GONE if _is_dead(pid) else b"")
    except OSError:
        return _GONE  # or another person's


def _is_dead(pid: int) -> bool:
    """Return whether the process has ended and only waits to be buried."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0] in b"ZX"


def _read(name: str) -> bytes:
    with open(name, "rb") as file:  # noqa: PTH123 - a Path for each costs more than the look
        return file.read()


@cache
def token() -> str:
    """Return the common prefix of this process's marks."""
    return f"ybs-{os.urandom(6).hex()}"


def _candidates(shell: int, seconds: float) -> Iterable[int]:
    """Return the numbers of processes to look at: after a short command, only those that are newer."""
    if seconds < _SHORT_SECONDS:
        newer = _newest_process() - shell
        if 0 <= newer <= _MOST_TRIES:
            return range(shell + 1, shell + newer + 1)
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - names, not paths
    except OSError:
        return ()


def _newest_process() -> int:
    """Return the number that was given out last; -1 where the system does not tell."""
    try:
        return int(_read("/proc/loadavg").split()[-1])
    except (OSError, ValueError, IndexError):
        return -1
