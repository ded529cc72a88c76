"""Stops everything in the sandbox of a command for a moment: while a program outside opens a path that the command could exchange for a link.

The processes are known by their namespace, which none of them can leave (https://man7.org/linux/man-pages/man7/pid_namespaces.7.html), and
none can keep SIGSTOP out. One that is not stopped yet may have begun another one meanwhile, so they are looked through until all stand still.
Where the sandbox has no such namespace (Landlock, macOS) nothing is stopped.
"""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from time import sleep

_MOST_ROUNDS = 20
#: One that waits for a child that was stopped as it began (vfork) is never stopped itself: then all go on, and are stopped anew.
_MOST_TRIES = 5
_WAIT_SECONDS = 0.002
_STANDING = (b"T", b"t", b"Z", b"X")


def freeze(first: int) -> frozenset[int] | None:
    """Stop all processes in the sandbox that a process has started, and return those that were not stopped before; None where that cannot be had."""
    if not (namespace := _namespace_below(first)):
        return None
    for _ in range(_MOST_TRIES):
        stopped = set[int]()
        for _ in range(_MOST_ROUNDS):
            inside = (pid for pid in _processes() if _namespace(pid) == namespace)
            if not (moving := [pid for pid in inside if not _stands(pid)]):
                return frozenset(stopped)
            for pid in moving:
                with suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
            stopped.update(moving)
            sleep(_WAIT_SECONDS)
        thaw(stopped)
    return None


def thaw(processes: Iterable[int]) -> None:
    """Let processes go on."""
    for pid in processes:
        with suppress(OSError):  # it was killed
            os.kill(pid, signal.SIGCONT)


def _namespace_below(first: int) -> str:
    """Return the namespace of the first descendant that has another one than ybs; empty where none has."""
    own, pending = _namespace(os.getpid()), [first]
    for pid in pending:  # it grows meanwhile
        if (namespace := _namespace(pid)) not in ("", own):
            return namespace
        pending += _children(pid)
    return ""


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")  # noqa: PTH115 - a text
    except OSError:  # it has ended, or is another user's
        return ""


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in _read(f"/proc/{pid}/task/{pid}/children").split()]
    except OSError:
        return []


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208 - names


def _stands(pid: int) -> bool:
    """Return whether no thread of a process runs, or will before it is let go on."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names
        stats = [_read(f"/proc/{pid}/task/{each}/stat") for each in tasks]
    except OSError:  # it ended meanwhile; the next round says
        return False
    return all(each.rpartition(b")")[2].split()[0] in _STANDING for each in stats)


def _read(name: str) -> bytes:
    with open(name, "rb") as file:  # noqa: PTH123 - a Path for each costs more than the look
        return file.read()
