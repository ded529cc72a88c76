"""A program of the host, run for ybs itself: a group of its own, bounds on time and output, a certain end."""

import asyncio
import os
import signal
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE

from ybs.core.time_limits import time_limit
from ybs.security.launcher import start_in_loop
from ybs.security.loop_process import LoopProcess
from ybs.security.sandbox.launch import Launch

_CHUNK = 65_536
_MOST_ERROR_BYTES = 20_000
_LOOK_SECONDS = 0.5  # between two looks at whether it hangs
STUCK = "it waits at a named pipe that stands where a file should be, such as a .gitignore"


class Failed(Exception):
    """The program ended with an error (then there is a `code`), ran too long, or printed too much."""

    def __init__(self, words: str, code: int = 0) -> None:
        super().__init__(words)
        self.code = code


async def run_child(
    launch: Launch,
    *,
    folder: Path,
    stdin: bytes | None,
    timeout_seconds: float,
    most_bytes: int,
    has_own_group: bool = True,
) -> bytes:
    """Run a program to its end and return what it printed. Raises Failed and OSError; closes the descriptors.

    Without a group of its own it dies with the group of this process, but what it starts may live on.
    """
    process = await start_in_loop(
        launch,
        folder=folder,
        stdin=DEVNULL if stdin is None else PIPE,
        stdout=PIPE,
        stderr=PIPE,
        has_own_group=has_own_group,
    )
    watch = _Watch(process, has_own_group=has_own_group)
    try:
        async with time_limit(timeout_seconds):
            printed, said = await _talk(process, stdin, most_bytes)
            code = await process.wait()
    except TimeoutError as error:
        raise Failed(f"it took longer than {timeout_seconds:g} s") from error
    finally:
        watch.end()
        await _end(process, has_own_group=has_own_group)
    if watch.has_killed:
        raise Failed(STUCK)
    if code:
        words = said.decode(errors="replace").strip()
        raise Failed(words or f"it ended with code {code}", code)
    return printed


class _Watch:
    """Kills a program that hangs at a named pipe: it would hang until its time is over."""

    def __init__(self, process: LoopProcess, *, has_own_group: bool) -> None:
        self._process, self._has_own_group = process, has_own_group
        self._was_stuck = self.has_killed = False
        self._wait()

    def end(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        is_now = is_stuck(self._process.pid)
        if is_now and self._was_stuck:  # not merely for a moment
            self.has_killed = True
            _kill(self._process, has_own_group=self._has_own_group)
            return
        self._was_stuck = is_now
        self._wait()


async def _talk(process: LoopProcess, stdin: bytes | None, most_bytes: int) -> tuple[bytes, bytes]:
    assert process.stdout is not None  # noqa: S101 - both are pipes
    assert process.stderr is not None  # noqa: S101
    process.give(stdin or b"")
    try:
        async with asyncio.TaskGroup() as tasks:
            printed = tasks.create_task(_read(process.stdout, most_bytes))
            said = tasks.create_task(_read(process.stderr, _MOST_ERROR_BYTES, keeps_reading=True))
    except (
        ExceptionGroup
    ) as group:  # not `except*`: what that raises is in a group before Python 3.11.4
        raise Failed(str(group.exceptions[0])) from None
    return printed.result(), said.result()


async def _read(
    stream: asyncio.StreamReader, most_bytes: int, *, keeps_reading: bool = False
) -> bytes:
    kept = bytearray()
    while data := await stream.read(_CHUNK):
        kept += data[: most_bytes + 1 - len(kept)]
        if len(kept) > most_bytes and not keeps_reading:
            raise Failed(f"it printed more than {most_bytes:,} bytes")
    return bytes(kept)


async def _end(process: LoopProcess, *, has_own_group: bool) -> None:
    """Kill what is left of the group, the program itself first, so that its number is not another's yet."""
    if process.returncode is None:
        _kill(process, has_own_group=has_own_group)
    await process.wait()
    process.close()


def _kill(process: LoopProcess, *, has_own_group: bool) -> None:
    with suppress(ProcessLookupError):
        if has_own_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


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
            if _bytes_of(f"/proc/{process}/task/{thread}/wchan") in places:
                return True
            children = _bytes_of(f"/proc/{process}/task/{thread}/children").decode().split()
            processes += children[: _MOST_PROCESSES - len(processes)]
    return False


def _threads_of(process: str) -> list[str]:
    try:
        return os.listdir(f"/proc/{process}/task")  # noqa: PTH208 - names alone
    except OSError:
        return []  # it has ended, or this is not Linux


def _bytes_of(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - often, and a Path is slower
            return file.read()
    except OSError:
        return b""  # it has ended meanwhile
