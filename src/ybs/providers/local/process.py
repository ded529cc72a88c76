"""A process that outlives this run: started in a session of its own, known by its number and its start time.

A number alone proves nothing, since numbers are used again; so the start time is compared too.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import ParamSpec, TypeVar

from ybs.config import private_file
from ybs.security import launcher
from ybs.security.launcher import SYSTEM_ENVIRON, ask, named_system_program
from ybs.security.sandbox.launch import Launch

P = ParamSpec("P")
T = TypeVar("T")

STOP_SECONDS = 8.0
LOOK_SECONDS = 0.05
#: Between two looks by `ps`, which is a program to start.
PS_LOOK_SECONDS = 0.25
PS_SECONDS = 5.0
HAS_PROC = Path("/proc/self/stat").exists()


def start_time(pid: int) -> str:
    """Return when a process started, as the system counts; empty when there is none."""
    if not HAS_PROC:
        return _start_time_of_ps(pid)
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]  # a zombie has ended


def _start_time_of_ps(pid: int) -> str:
    """Ask `ps`, which every system has that has no `/proc`, such as macOS."""
    words = (named_system_program("ps") or "", "-o", "stat=", "-o", "lstart=", "-p", str(pid))
    settings = {**SYSTEM_ENVIRON, "TZ": "UTC"}  # a name for it, not for people
    try:
        said = ask(Launch(words, settings), PS_SECONDS)[1].decode(errors="replace")
    except OSError:
        return ""
    state, _, started = said.strip().partition(" ")
    return "" if state.startswith("Z") else " ".join(started.split())


async def unblocked(look: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Call what asks for a start time; in a thread where `ps` has to be waited for."""
    if HAS_PROC:
        return look(*arguments, **options)
    return await asyncio.to_thread(look, *arguments, **options)


def spawn(argv: list[str], words: bytes, log: Path, environ: Mapping[str, str]) -> int:
    """Start a process with `words` as its input and a new log, and return its number. The last log is kept beside it.

    It outlives this run, so no object of Python's holds it.
    """
    with suppress(OSError):
        log.replace(log.with_suffix(".last.log"))
    reading, writing = os.pipe()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    output = os.open(log, flags, 0o600)
    ends = ((reading, 0), (output, 1), (output, 2))
    actions = [(os.POSIX_SPAWN_DUP2, mine, its) for mine, its in ends]
    try:
        pid = launcher.spawn(argv, environ, *actions, setsid=True)
    finally:
        os.close(reading)
        os.close(output)
    with suppress(BrokenPipeError), os.fdopen(writing, "wb") as pipe:  # it may have ended already
        pipe.write(words)
    return pid


def kill(pid: int) -> None:
    """End a child, and all that it started, at once."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def exit_code(pid: int) -> int | None:
    """Return a child's exit code if it has ended."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


async def end(pid: int, started: str) -> None:
    """Send SIGTERM, then SIGKILL. Without a start time the PID may have been reused, so do nothing."""
    if not started:
        return
    for send, number in ((os.kill, signal.SIGTERM), (os.killpg, signal.SIGKILL)):
        if await unblocked(start_time, pid) != started:
            return
        with suppress(ProcessLookupError):
            send(pid, number)
        begun = monotonic()
        while monotonic() - begun < STOP_SECONDS:
            if await unblocked(start_time, pid) != started:
                return
            await asyncio.sleep(LOOK_SECONDS if HAS_PROC else PS_LOOK_SECONDS)


LOCK_SECONDS = 0.1
#: A wait that takes longer is told.
TOLD_AFTER = 0.5


def open_private(path: Path) -> int:
    """Open a file that only its owner can read, made where it is not there; return its descriptor."""
    private_file.make_folder(path.parent)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


@asynccontextmanager
async def held(path: Path, waits: Callable[[], None] = lambda: None) -> AsyncGenerator[None]:
    """Hold the lock; wait for it while another run has it. `waits` is called once in a wait that takes longer than a moment.

    The wait asks again and again, because a thread that waits for a lock cannot be cancelled.
    """
    import fcntl  # not on every system; those have no local model either

    file, begun, is_told = open_private(path), monotonic(), False
    try:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not is_told and monotonic() - begun >= TOLD_AFTER:
                    is_told = True
                    waits()
                await asyncio.sleep(LOCK_SECONDS)
        yield
    finally:
        os.close(file)
