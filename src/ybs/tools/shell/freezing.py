"""Stops everything in the sandbox of a command for a moment: while a program outside opens a path that the command could exchange for a link.

All processes in a namespace descend from its first one (https://man7.org/linux/man-pages/man7/pid_namespaces.7.html), and none can keep SIGSTOP
out. One that is not stopped yet may have begun another one meanwhile, so they are looked through until all stand still, twice in a row.
Where the sandbox has no such namespace (Landlock, macOS) nothing is stopped. What is read in /proc here anybody may read.
"""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from time import sleep

_MOST_ROUNDS = 20
#: One that waits for a child that was stopped as it began (vfork) is never stopped itself: then all go on, and are stopped anew.
_MOST_TRIES = 5
_WAIT_SECONDS = 0.002
_STANDING = (b"T", b"t", b"Z", b"X")


def freeze(first: int) -> frozenset[int] | None:
    """Stop all processes in the sandbox that a process has started, and return those that were not stopped before; None where that cannot be had."""
    if first < 2 or not (top := _top_below(first)):  # never all of the machine
        return None
    for _ in range(_MOST_TRIES):
        stopped = set[int]()
        try:
            if _stop(top, stopped):
                return frozenset(stopped)
        except BaseException:
            thaw(stopped)
            raise
        thaw(stopped)
    return None


def thaw(processes: Iterable[int]) -> None:
    """Let processes go on."""
    for pid in processes:
        with suppress(OSError):  # it was killed
            os.kill(pid, signal.SIGCONT)


def _stop(top: int, stopped: set[int]) -> bool:
    """Stop a process and all below it, and note those that were not; return whether all stand still."""
    calm = 0
    for _ in range(_MOST_ROUNDS):
        moving = [pid for pid in _tree(top) if not _stands(pid)]
        calm = 0 if moving else calm + 1
        if calm > 1:
            return True
        for pid in moving:
            stopped.add(pid)
            with suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
        sleep(_WAIT_SECONDS if moving else 0)
    return False


def _top_below(first: int) -> int:
    """Return the first process of the namespace that a process has made for those below it; 0 where it has not."""
    own = _depth(os.getpid())
    return next((pid for pid in _tree(first) if _depth(pid) > own), 0)


def _depth(pid: int) -> int:
    """Return in how many namespaces a process has a number."""
    try:
        lines = _read(f"/proc/{pid}/status").splitlines()
    except OSError:  # it has ended
        return 0
    return next((len(line.split()) for line in lines if line.startswith(b"NSpid:")), 0)


def _tree(top: int) -> list[int]:
    """Return a process and all below it, those above before those below."""
    below: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names
        with suppress(OSError, ValueError, IndexError):  # it is no process, or has ended
            parent = int(_fields(f"/proc/{int(name)}/stat")[1])
            below.setdefault(parent, []).append(int(name))
    found = [top]
    for pid in found:  # it grows meanwhile
        found += below.get(pid, ())
    return found


def _stands(pid: int) -> bool:
    """Return whether no thread of a process runs, or will before it is let go on."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names
        return all(_fields(f"/proc/{pid}/task/{each}/stat")[0] in _STANDING for each in tasks)
    except OSError:  # it ended meanwhile; the next round says
        return False


def _fields(file: str) -> list[bytes]:
    """Return what stands behind the name in a `stat` of /proc: the state, the parent, and more."""
    return _read(file).rpartition(b")")[2].split()


def _read(name: str) -> bytes:
    with open(name, "rb") as file:  # noqa: PTH123 - a Path for each costs more than the look
        return file.read()
