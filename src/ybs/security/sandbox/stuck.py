"""Detect a program that hangs at a named pipe that was put where a file should be."""

import os
from collections.abc import Collection

#: Where in the system a thread waits for the one who opens the other end (https://man7.org/linux/man-pages/man7/fifo.7.html).
OPENING = frozenset({b"wait_for_partner"})
#: Where it waits for what is written; a program that reads from pipes does that too.
READING = OPENING | {b"pipe_read", b"anon_pipe_read"}
#: So many processes of a program are looked at.
_MOST_PROCESSES = 64


def is_stuck(pid: int, places: Collection[bytes] = OPENING) -> bool:
    """Return whether a thread of the process, or of one that it started, waits in one of these places of the system.

    Only Linux tells (https://man7.org/linux/man-pages/man5/proc_pid_wchan.5.html); elsewhere it is never so.
    """
    processes = [str(pid)]
    for process in processes:
        for thread in _threads_of(process):
            if _read(f"/proc/{process}/task/{thread}/wchan") in places:
                return True
            children = _read(f"/proc/{process}/task/{thread}/children").decode().split()
            processes += children[: _MOST_PROCESSES - len(processes)]
    return False


def _threads_of(process: str) -> list[str]:
    try:
        return os.listdir(f"/proc/{process}/task")  # noqa: PTH208 - names alone
    except OSError:
        return []  # it has ended, or this is not Linux


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - often, and a Path is slower
            return file.read()
    except OSError:
        return b""  # it has ended meanwhile
