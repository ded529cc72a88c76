"""Processes that left the group of their command: found by a mark in their environment, and ended.

This needs /proc, so elsewhere only the group is ended. A program that empties its environment *and* has no parent
any more is not found; only a sandbox holds such a one.
"""

import asyncio
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from itertools import count
from time import sleep

from msgspec import Struct

from ybs.security.sandbox.launch import Launch
from ybs.tools.shell.path_leases import WAIT_SECONDS, may_begin, note_ended, note_started

VARIABLE = "RUN_BY_YBS"
_SHORT_SECONDS = 1.0  # numbers may begin again from 1 while a longer one runs
_MOST_TRIES = 1000  # numbers tried one by one; beyond that, looking who is there is quicker
_MOST_ROUNDS = 5  # what is found may just have made another one
_GONE = b"?"  # nothing to wait for
_calls = count(1)


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
        """Wait until no path that the command may change is leased; then none is lent until `end_all`. It is called before each start."""
        try:
            while not may_begin(self, launch.writable):  # noqa: ASYNC110 - event loops share this
                await asyncio.sleep(WAIT_SECONDS)
        except asyncio.CancelledError:
            for descriptor in launch.descriptors:
                os.close(descriptor)
            raise

    def started(self, first: int) -> None:
        """Say which process the command has begun with."""
        note_started(self, first)

    def abandon(self) -> None:
        """Say that the command could not be started."""
        note_ended(self)

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
        note_ended(self)
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


def signal_group(group: int, number: int) -> None:
    """Send a signal to a process group, if it is still there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
