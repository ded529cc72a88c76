"""The managed server: one llama.cpp process for all runs of ybs, found again by the next one, ended when nobody uses it.

It listens on a Unix socket in a folder that only its owner can enter, so that nobody else can answer in its place, or be asked.
Its key stands in a file there. Whoever uses it holds a lease, so that no run ends
the server of another one.
"""

import asyncio
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.config import private_file, private_socket
from ybs.config.host import Host
from ybs.config.paths import is_same
from ybs.core.decoding import from_json
from ybs.core.errors import ConfigError, ProviderDown
from ybs.core.remedies import Remedy
from ybs.providers.local import hardware, process
from ybs.providers.local.choice import RunPlan, Shape, needs, plan, smaller
from ybs.providers.local.process import held, open_private
from ybs.providers.local.program import find_program, this_machine
from ybs.security.launcher import environ_away, python

START_SECONDS = 300.0
LOOK_SECONDS = 0.2
#: llama.cpp listens on a Unix socket where its address ends in `.sock`.
SOCKET: Final = "llama.sock"
LOG_LINES = 4
#: A start that fails for want of memory is tried again so often, each time with less.
SMALLER_STARTS: Final = 3
#: An error in llama.cpp's log: a time, then the letter of its level.
_ERROR: Final = re.compile(r"[\d.]+ E ")
_NO_MEMORY: Final = re.compile(
    r"out of memory|failed to allocate|unable to allocate|cudaMalloc|OutOfDeviceMemory|bad_alloc|cannot allocate"
    r"|insufficient memory",
    re.IGNORECASE,
)
#: How the kernel ends what takes too much memory, and how llama.cpp ends itself.
_KILLED: Final = (-9, 137, -6, 134)
#: Takes how long the start has taken so far, in seconds, or words for the person.
Told: TypeAlias = Callable[[float | str], None]


class Wanted(Struct, frozen=True, kw_only=True):
    """The server that a run needs. None: whatever fits this machine. `program` is that of the settings."""

    model: str
    alias: str
    shape: Shape
    template: str = ""  # empty: the model's own
    window: int | None = None
    threads: int | None = None
    program: str | None = None
    idle_seconds: float = 900.0


class ServerArguments(Struct, frozen=True, kw_only=True):
    """What the process is to serve; it reads this from its standard input, since arguments are visible."""

    model: str
    template: str
    alias: str
    key: str
    window: int
    threads: int
    reading_threads: int
    state_file: str
    slots_folder: str = ""
    gpu_layers: int = 0
    program: str = ""
    idle_seconds: float = 900.0


class RunningServer(Struct, frozen=True, kw_only=True):
    """A server that was started: the content of the state file. `asked_window` is what its first user wanted."""

    pid: int
    started: str
    socket: str
    key: str
    model: str
    window: int
    template: str = ""
    asked_window: int | None = None
    plan: RunPlan | None = None

    def serves(self, model: Path) -> bool:
        """Return whether it runs this model file, by whatever name."""
        return is_same(Path(self.model), model)


class ServerLease:
    """Says that this run uses the server. The system takes it back when the process ends, however that happens."""

    def __init__(self, host: Host) -> None:
        self._path = host.state_folder / "llama.lease"
        self._file: int | None = None

    def hold(self) -> None:
        """Begin to use the server."""
        import fcntl  # not on every system; those have no local model either

        self.release()
        self._file = open_private(self._path)
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def release(self) -> None:
        """Use it no longer."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def is_held_by_others(self) -> bool:
        """Return whether other runs use the server. Ask before `hold`, or after `release`."""
        import fcntl

        file = open_private(self._path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False


def state_file(host: Host) -> Path:
    """Return the file that says what runs."""
    return host.state_folder / "llama.json"


def socket_file(host: Host) -> Path:
    """Return the Unix socket of the server; its name is that of `SOCKET`, in the folder of the state file."""
    return host.state_folder / SOCKET


def log_file(host: Host) -> Path:
    """Return the server's log; that of the server before lies beside it."""
    return host.state_folder / "llama.log"


def slots_folder(host: Host) -> Path:
    """Return the folder of what servers have read and keep."""
    return host.cache_folder / "slots"


def running(host: Host) -> RunningServer | None:
    """Return the server that the state file names, if that process is alive."""
    try:
        found = from_json(state_file(host).read_bytes(), RunningServer)
    except (OSError, msgspec.DecodeError):
        return None
    is_alive = found.started and found.started == process.start_time(found.pid)
    return found if is_alive else None


async def find_running(host: Host) -> RunningServer | None:
    """Return the same as `running`, without holding up what else goes on."""
    return await process.unblocked(running, host)


async def ensure(
    host: Host,
    wanted: Wanted,
    lease: ServerLease,
    *,
    told: Told,
    crashed: RunningServer | None = None,
) -> RunningServer:
    """Return a healthy server for this model, started if none runs, and hold the lease of it.

    `crashed` is the server that ended in the middle of an answer: the next one takes less memory.
    Raises ConfigError when the parts for it are missing, and ProviderDown when it does not come up, there is too little
    memory, or another run uses the server for another model.
    """
    lease.release()
    async with held(host.state_folder / "llama.lock"):
        found = await find_running(host)
        if found is not None:
            if await _can_be_used(found, wanted, lease):
                lease.hold()
                return found
            await process.end(found.pid, found.started)
        before = crashed.plan if crashed is not None else None
        started = await _start_fitting(host, wanted, before, told)
        lease.hold()
        return started


async def stop(host: Host) -> bool:
    """End the server; return whether one ran."""
    async with held(host.state_folder / "llama.lock"):
        found = await find_running(host)
        if found is not None:
            await process.end(found.pid, found.started)
        state_file(host).unlink(missing_ok=True)
        return found is not None


def mark_used(host: Host) -> None:
    """Note that the server is wanted, which puts off its end."""
    with suppress(OSError):
        os.utime(state_file(host))


class SocketConnection(HTTPConnection):
    """A connection to the server at its Unix socket, which no other user can reach or take."""

    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = Path(path)

    def connect(self) -> None:
        """Connect. Raises OSError, also where other users could have put the socket there."""
        self.sock = private_socket.connect(self._path, float(self.timeout or 0))


def is_healthy(server: RunningServer) -> bool:
    """Ask the server whether it is ready."""
    connection = SocketConnection(server.socket, timeout=5)
    try:
        connection.request("GET", "/health", headers={"Authorization": f"Bearer {server.key}"})
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def command() -> list[str]:
    """Return the command of the server's process."""
    return python("-m", "ybs.providers.local.serve")


async def _can_be_used(found: RunningServer, wanted: Wanted, lease: ServerLease) -> bool:
    """Return whether the server that runs will do. Raises ProviderDown where it may not be ended either."""
    if not await asyncio.to_thread(is_healthy, found):
        return False
    is_busy = lease.is_held_by_others()
    if found.model == wanted.model:
        is_fit = (found.template, found.asked_window) == (wanted.template, wanted.window)
        return is_fit or is_busy
    if is_busy:
        raise ProviderDown(
            f"Another ybs uses the local server with the model {Path(found.model).stem}, and there is one server on a machine.",
            remedies=(
                Remedy("do", "use that model here too, or leave the other ybs"),
                Remedy("change_provider"),
            ),
        )
    return False


async def _start_fitting(
    host: Host, wanted: Wanted, crashed: RunPlan | None, told: Told
) -> RunningServer:
    """Start the server with what fits this machine; with less where that fails for want of memory."""
    machine = await asyncio.to_thread(this_machine, host, wanted.program)
    shape = wanted.shape
    made = plan(machine, shape, asked_window=wanted.window, threads=wanted.threads)
    if made is None:
        raise _too_large(machine, shape)
    program = await asyncio.to_thread(find_program, host, wanted.program, machine)
    if crashed is not None:
        made = _less(crashed, shape, "ended in the middle of an answer", told) or made
    for number in range(SMALLER_STARTS):
        try:
            return await _start(host, wanted, made, program, told)
        except _OutOfMemory:
            is_last = number == SMALLER_STARTS - 1
            last = _on_cpu(machine, wanted) if is_last and made.gpu_layers else None
            less = _less(made, shape, "did not get the memory that it needs", told, last)
            if less is None:
                raise
            made = less
    return await _start(host, wanted, made, program, told)


class _OutOfMemory(ProviderDown):
    """The server's process ended for want of memory."""


def _on_cpu(machine: hardware.Machine, wanted: Wanted) -> RunPlan | None:
    """Return the plan without graphics processors: halving layers takes long to get there, and a card that is taken has room for none."""
    made = plan(
        replace(machine, gpus=()),
        wanted.shape,
        asked_window=wanted.window,
        threads=wanted.threads,
    )
    if made is None:
        return None
    return replace(made, reason=f"a window of {made.window:,} tokens on the CPU alone")


def _less(
    used: RunPlan, shape: Shape, why: str, told: Told, last: RunPlan | None = None
) -> RunPlan | None:
    less = last or smaller(used, shape)
    if less is not None:
        told(f"The local model's server {why}, so it is started again with {less.reason}.")
    return less


def _too_large(machine: hardware.Machine, shape: Shape) -> ProviderDown:
    memory, _ = needs(shape, min(4096, shape.longest), 0)
    free = hardware.gigabytes(machine.free_bytes or 0)
    return ProviderDown(
        f"The local model needs about {hardware.gigabytes(memory)} of memory, and only {free} is free.",
        remedies=(Remedy("do", "close other programs and try again"), Remedy("change_provider")),
    )


async def _start(
    host: Host, wanted: Wanted, made: RunPlan, program: str, told: Told
) -> RunningServer:
    job = ServerArguments(
        model=wanted.model,
        template=wanted.template,
        alias=wanted.alias,
        key=secrets.token_urlsafe(24),
        window=made.window,
        threads=made.threads,
        reading_threads=made.reading_threads,
        gpu_layers=made.gpu_layers,
        program=program,
        state_file=str(state_file(host)),
        slots_folder=str(slots_folder(host)),
        idle_seconds=wanted.idle_seconds,
    )
    private_file.make_folder(slots_folder(host))  # the server asks for it
    socket_file(host).unlink(missing_ok=True)  # left by a server that was killed
    environ = environ_away(host.environ, for_ybs=True)
    pid = process.spawn(command(), msgspec.json.encode(job), log_file(host), environ)
    try:
        server = RunningServer(
            pid=pid,
            started=await process.unblocked(process.start_time, pid),
            socket=str(socket_file(host)),
            key=job.key,
            model=job.model,
            window=job.window,
            template=job.template,
            asked_window=wanted.window,
            plan=made,
        )
        private_file.replace(state_file(host), msgspec.json.encode(server))
        await _until_healthy(host, server, told)
    except BaseException:  # a cancelled start leaves no half-started server behind
        process.kill(pid)
        state_file(host).unlink(missing_ok=True)
        raise
    return server


async def _until_healthy(host: Host, server: RunningServer, told: Told) -> None:
    begun = monotonic()
    while monotonic() - begun < START_SECONDS:
        if (code := process.exit_code(server.pid)) is not None:
            what = f"The local model's server ended right after its start ({code})."
            raise _failure(host, what, code)
        if await asyncio.to_thread(is_healthy, server):
            return
        told(monotonic() - begun)
        await asyncio.sleep(LOOK_SECONDS)
    raise _failure(host, f"The local model's server was not ready after {START_SECONDS:.0f} s.")


def _failure(host: Host, what: str, code: int = 0) -> ConfigError | ProviderDown:
    try:
        text = log_file(host).read_text(errors="replace").strip()
    except OSError:
        text = ""
    # The first error is the cause; the last lines are often of what happens after it, as a traceback is.
    lines = text.splitlines()
    lines = [line for line in lines if _ERROR.match(line)][:LOG_LINES] or lines[-LOG_LINES:]
    if "No module named 'xllamacpp'" in text:
        return ConfigError(
            "The local model needs the extra `local`, which is not installed.\n"
            "Install it with: pip install 'ybs[local]'"
        )
    kind = _OutOfMemory if code in _KILLED or _NO_MEMORY.search(text) else ProviderDown
    tail = "".join(f"\n  {line[:200]}" for line in lines)
    return kind(f"{what} Its log is {log_file(host)}:{tail}")
