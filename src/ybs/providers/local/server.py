"""The managed server: one llama.cpp process, found again by the next run, ended when nobody uses it.

Its key and port stand in a file that only its owner can read. `pid` alone proves nothing, since numbers are
used again; so the process's start time is compared too.
"""

import asyncio
import os
import re
import secrets
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from time import monotonic
from typing import TypeAlias

import msgspec
from msgspec import Struct

from ybs.config import private_file
from ybs.config.paths import state_folder
from ybs.core.errors import ConfigError, ProviderDown
from ybs.providers.local import hardware

START_SECONDS = 300.0
STOP_SECONDS = 8.0
LOOK_SECONDS = 0.2
LOG_LINES = 4
#: An error in llama.cpp's log: a time, then the letter of its level.
_ERROR = re.compile(r"[\d.]+ E ")
#: Says how long the start has taken so far.
Waiting: TypeAlias = Callable[[float], None]


class ServerArguments(Struct, frozen=True, kw_only=True):
    """What the process is to serve; it reads this from its standard input, since arguments are visible."""

    model: str
    template: str  # empty: the model's own
    alias: str
    port: int
    key: str
    window: int
    threads: int
    state_file: str
    idle_seconds: float = 900.0


class Running(Struct, frozen=True, kw_only=True):
    """A server that was started: the content of the state file."""

    pid: int
    started: str
    port: int
    key: str
    model: str
    window: int
    template: str = ""

    @property
    def endpoint(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}/v1"


def state_file() -> Path:
    """Return the file that says what runs."""
    return state_folder() / "llama.json"


def log_file() -> Path:
    """Return the server's log."""
    return state_folder() / "llama.log"


def running() -> Running | None:
    """Return the server that the state file names, if that process is alive."""
    try:
        found = msgspec.json.decode(state_file().read_bytes(), type=Running)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.started == start_time(found.pid) else None


def start_time(pid: int) -> str:
    """Return when a process started, as the kernel counts; empty when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]  # a zombie has ended


async def ensure(
    model: Path, *, alias: str, window: int, threads: int, waiting: Waiting
) -> Running:
    """Return a healthy server for this model and window, started if none runs.

    Raises ConfigError when the parts for it are missing and ProviderDown when it does not come up or
    there is too little memory.
    """
    template = template_of(model)
    async with _alone():
        found = running()
        if found is not None:
            is_fit = (found.model, found.window, found.template) == (str(model), window, template)
            if is_fit and await asyncio.to_thread(is_healthy, found):
                return found
            await _end(found)
        hardware.check_memory(model)
        job = ServerArguments(
            model=str(model),
            template=template,
            alias=alias,
            port=free_port(),
            key=secrets.token_urlsafe(24),
            window=window,
            threads=threads,
            state_file=str(state_file()),
        )
        return await _start(job, waiting)


async def stop() -> bool:
    """End the server; return whether one ran."""
    async with _alone():
        found = running()
        if found is not None:
            await _end(found)
        state_file().unlink(missing_ok=True)
        return found is not None


def mark_used() -> None:
    """Note that the server is wanted, which puts off its end."""
    with suppress(OSError):
        os.utime(state_file())


def is_healthy(server: Running) -> bool:
    """Ask the server whether it is ready."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        connection.request("GET", "/health", headers={"Authorization": f"Bearer {server.key}"})
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command() -> list[str]:
    """Return the command of the server's process.

    -P keeps Python from importing modules out of the folder that it stands in, which is the person's project.
    """
    return [sys.executable, "-P", "-m", "ybs.providers.local.serve"]


def template_of(model: Path) -> str:
    """Return the chat template that a model is served with; empty: its own.

    It is the text and not the file's name, so that a server of an older ybs is not taken for a fitting one.
    """
    if not model.name.lower().startswith("qwen2.5-coder"):
        return ""
    return Path(__file__).with_name("template.jinja").read_text("utf-8")


async def _start(job: ServerArguments, waiting: Waiting) -> Running:
    pid = _spawn(msgspec.json.encode(job))
    server = Running(
        pid=pid,
        started=start_time(pid),
        port=job.port,
        key=job.key,
        model=job.model,
        window=job.window,
        template=job.template,
    )
    try:
        private_file.replace(state_file(), msgspec.json.encode(server))
        await _until_healthy(server, waiting)
    except BaseException:  # a cancelled start leaves no half-started server behind
        _kill(pid)
        state_file().unlink(missing_ok=True)
        raise
    return server


def _spawn(words: bytes) -> int:
    """Start the process in a session of its own, with `words` as its input, and return its number.

    It outlives this run, so no object of Python's holds it.
    """
    argv = command()
    reading, writing = os.pipe()
    log = os.open(log_file(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    ends = ((reading, 0), (log, 1), (log, 2))
    actions = [(os.POSIX_SPAWN_DUP2, mine, its) for mine, its in ends]
    try:
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions, setsid=True)
    finally:
        os.close(reading)
        os.close(log)
    with suppress(BrokenPipeError), os.fdopen(writing, "wb") as pipe:  # it may have ended already
        pipe.write(words)
    return pid


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _exit_code(pid: int) -> int | None:
    """Return a child's exit code if it has ended."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


async def _until_healthy(server: Running, waiting: Waiting) -> None:
    begun = monotonic()
    while monotonic() - begun < START_SECONDS:
        if (code := _exit_code(server.pid)) is not None:
            raise _failure(f"The local model's server ended right after its start ({code}).")
        if await asyncio.to_thread(is_healthy, server):
            return
        waiting(monotonic() - begun)
        await asyncio.sleep(LOOK_SECONDS)
    raise _failure(f"The local model's server was not ready after {START_SECONDS:.0f} s.")


def _failure(what: str) -> ConfigError | ProviderDown:
    try:
        lines = log_file().read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    # The first error is the cause; the last lines are often of what happens after it, as a traceback is.
    lines = [line for line in lines if _ERROR.match(line)][:LOG_LINES] or lines[-LOG_LINES:]
    if any("No module named 'xllamacpp'" in line for line in lines):
        return ConfigError(
            "The local model needs the extra `local`, which is not installed.\n"
            "Install it with: pip install 'ybs[local]'"
        )
    tail = "".join(f"\n  {line[:200]}" for line in lines)
    return ProviderDown(f"{what} Its log is {log_file()}:{tail}")


async def _end(server: Running) -> None:
    for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
        with suppress(ProcessLookupError):
            os.kill(server.pid, number)
        begun = monotonic()
        while monotonic() - begun < seconds:
            if start_time(server.pid) != server.started:
                return
            await asyncio.sleep(LOOK_SECONDS / 4)


@asynccontextmanager
async def _alone() -> AsyncGenerator[None]:
    """Hold the lock that keeps two runs from starting two servers."""
    import fcntl  # not on every system; those have no local model either

    folder = state_folder()
    private_file.make_folder(folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(folder / "llama.lock", flags, 0o600), "w") as file:
        await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)
        yield
