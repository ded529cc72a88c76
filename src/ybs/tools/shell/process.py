"""A shell command as a process: no input, a group of its own, its output read to a bound, its end certain."""

import asyncio
import errno
import os
import select
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from errno import EAGAIN
from pathlib import Path
from subprocess import DEVNULL
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.time_limits import time_limit
from ybs.security.launcher import start
from ybs.security.sandbox.launch import Launch
from ybs.tools.shell.orphans import CommandMark, signal_group
from ybs.tools.shell.output import LOOK_SECONDS, CommandOutput, OutputWindow
from ybs.tools.shell.watch import Watch

if TYPE_CHECKING:
    from subprocess import Popen

    from ybs.security.sandbox.attempts import Attempts


_CHUNK = 1_000_000
_SMALL_PIPE = 65_536  # as the system makes them
_MOST_WAITS = 10  # for output that keeps coming from what was left running
_read_some = os.read  # a seam for tests


class Pump:
    """One pipe for each stream of the output. The thread owns the reading ends and closes them."""

    def __init__(self, output: CommandOutput, live: OutputWindow | None, *, streams: int) -> None:
        self._output, self._live = output, live
        self._loop = asyncio.get_running_loop()
        self._wake, self._waker = os.pipe()
        self._reading_ends: dict[int, int] = {}
        self.writing_ends: list[int] = []
        for stream in range(streams):
            reading_end, writing_end = os.pipe()
            os.set_blocking(reading_end, False)
            self._reading_ends[reading_end] = stream
            self.writing_ends.append(writing_end)
        self._is_listening = self._is_stopped = self._is_busy = False
        self._reads = 0
        self.ended = asyncio.Event()

    def listen(self) -> None:
        """Begin to read; from now on only the process holds the other ends. Raises OSError."""
        self._close_writing_ends()
        try:
            threading.Thread(target=self._run, name="ybs-output", daemon=True).start()
        except RuntimeError as error:  # there may be no more threads
            raise OSError(EAGAIN, os.strerror(EAGAIN)) from error
        self._is_listening = True

    def stop(self) -> None:
        """Read no more, even if somebody still holds a pipe open. Does not wait; a second time does nothing."""
        if not self._is_stopped:
            self._is_stopped = True
            os.close(self._waker)

    def abandon(self) -> None:
        """Let go of everything: nothing could be started."""
        self.stop()
        self._close_writing_ends()
        if not self._is_listening:
            self._close()

    async def ends(self, seconds: float) -> bool:
        """Wait for the end of the output, a moment longer as long as something comes; return whether it came."""
        for _ in range(_MOST_WAITS):
            before = self._reads
            with suppress(TimeoutError):
                async with time_limit(seconds):
                    await self.ended.wait()
            if self.ended.is_set() or (before == self._reads and not self._is_busy):
                break
        return self.ended.is_set()

    def _run(self) -> None:
        try:
            poll = select.poll()
            poll.register(self._wake, select.POLLIN)
            for descriptor in self._reading_ends:
                poll.register(descriptor, select.POLLIN)
            while self._reading_ends:
                ready = [descriptor for descriptor, _ in poll.poll(self._patience_ms)]
                if not ready and self._live is not None:
                    self._tell(self._live, self._live.look())
                for descriptor in ready:  # before the end too: what was written is not lost
                    if descriptor != self._wake and not self._read(descriptor):
                        poll.unregister(descriptor)
                        os.close(descriptor)
                        del self._reading_ends[descriptor]
                if self._wake in ready:
                    break
        finally:
            self._output.close()
            self._close()
            self._tell(self.ended.set)

    def _read(self, descriptor: int) -> bool:
        """Take what is there; return whether more may come."""
        try:
            data = _read_some(descriptor, _CHUNK)
        except BlockingIOError:
            return True
        self._reads += 1
        stream = self._reading_ends[descriptor]
        if len(data) == _SMALL_PIPE:
            _widen(descriptor)
        if data:
            self._is_busy = True  # the disk may take its time
            self._output.add(stream, data)
            self._is_busy = False
        if self._live is not None and (text := self._live.read(stream, data)):
            self._tell(self._live, text)
        return bool(data)

    @property
    def _patience_ms(self) -> float | None:
        """How long to wait for more before what came is shown."""
        return 1000 * LOOK_SECONDS if self._live is not None and self._live.waits else None

    def _tell(self, function: Callable[..., object], *arguments: str) -> None:
        with suppress(RuntimeError):  # the loop is closed; nobody waits there any more
            self._loop.call_soon_threadsafe(function, *arguments)

    def _close_writing_ends(self) -> None:
        while self.writing_ends:
            os.close(self.writing_ends.pop())

    def _close(self) -> None:
        for descriptor in (*self._reading_ends, self._wake):
            os.close(descriptor)
        self._reading_ends = {}


def _widen(descriptor: int) -> None:
    """Let a pipe that was full hold more, so that less often somebody waits."""
    import fcntl  # only long outputs need it

    # Only Linux has it, and others may use up what the person may have.
    with suppress(OSError, AttributeError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, 1 << 20)


GRACE_SECONDS = 2.0  # between the polite signal and the other one
PIPE_SECONDS = 0.2  # how long output is waited for when the shell has ended
_CAN_LOOK = hasattr(
    os, "waitid"
)  # to see that a process ended without burying it; not on every macOS


class ShellCommand(Struct, frozen=True, kw_only=True):
    """What is run, where, and where its output goes. `streams` is 1 where stderr goes the way of stdout.

    `given` is its input, a file that is closed once the command has started; without one it has none. `attempts` notes what it
    tries, for a command that runs read-only.

    While it is waited for it stands in `in_front`, so that it can be handed over to the background.
    """

    launch: Launch
    folder: Path
    mark: CommandMark
    output: CommandOutput
    watch: Watch
    live: OutputWindow | None = None
    streams: int = 2
    in_front: "set[Shell] | None" = None
    given: BinaryIO | None = None
    attempts: "Attempts | None" = None


class Ended(Struct, frozen=True, kw_only=True):
    """How a command ended. `exit_code` is negative for the signal that ended the shell."""

    exit_code: int
    timed_out: bool = False
    left_running: bool = False
    was_cancelled: bool = False

    @property
    def how(self) -> str:
        """Return how: by its exit code, or by the signal that ended the shell."""
        if self.exit_code >= 0:
            return f"exit code {self.exit_code}"
        with suppress(ValueError):  # not every number has a name
            return f"signal {signal.Signals(-self.exit_code).name} (exit code {self.exit_code})"
        return f"exit code {self.exit_code}"


async def run_command(command: ShellCommand, timeout_seconds: float) -> "Ended | Shell":
    """Run a command to its end, or to the end of its time; nothing that it started is left.

    Returns the running shell instead where it was handed over. Raises OSError where it cannot be started.
    Cancelling it ends the command first.
    """
    shell = await Shell.start(command)
    in_front = command.in_front if command.in_front is not None else set[Shell]()
    in_front.add(shell)
    timed_out = is_handed_over = False
    try:
        async with time_limit(timeout_seconds):
            await shell.left.wait()
        is_handed_over = not shell.ended.is_set()
    except TimeoutError:
        timed_out = True
    finally:
        in_front.discard(shell)
        if not is_handed_over:
            await shell.end()
    if is_handed_over:
        return shell
    ended = shell.outcome
    return replace(ended, timed_out=True, left_running=False) if timed_out else ended


class Shell:
    """A running shell with a thread that waits for it, whatever becomes of the loop or of the caller.

    The thread leaves the ended shell unburied until nothing will be signalled any more: as long as it lies
    there, the number of its group can mean no other one.
    """

    def __init__(self, process: "Popen[bytes]", pump: Pump, command: ShellCommand) -> None:
        self._process, self._pump = process, pump
        self._mark, self._watch = command.mark, command.watch
        self._clean_up = command.launch.clean_up
        self._loop = asyncio.get_running_loop()
        self._may_be_buried = threading.Event()
        self._left_running = False
        self.started = monotonic()
        self.ended, self._is_buried = asyncio.Event(), asyncio.Event()
        #: Set when nobody need wait in front of it any more: it has ended, or was handed over.
        self.left = asyncio.Event()
        try:
            threading.Thread(target=self._wait, name="ybs-shell", daemon=True).start()
        except RuntimeError as error:  # there may be no more threads
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error

    @classmethod
    async def start(cls, command: ShellCommand) -> "Shell":
        """Start the command. Raises OSError."""
        await command.mark.begin(command.launch)
        pump = Pump(command.output, command.live, streams=command.streams)
        process = None
        try:
            process = _spawn(command, pump.writing_ends)
            command.mark.started(process.pid)
            command.watch.begin(process.pid)
            pump.listen()
            return cls(process, pump, command)
        except BaseException:
            pump.abandon()
            command.mark.abandon()
            if process is not None:
                signal_group(process.pid, signal.SIGKILL)
                process.wait()
                command.watch.end(process.pid)
            raise

    @property
    def outcome(self) -> Ended:
        """How it ended, once `end` has returned."""
        code = self._process.returncode
        return Ended(
            exit_code=-signal.SIGKILL if code is None else code, left_running=self._left_running
        )

    def _wait(self) -> None:
        try:
            self._bury()
        finally:  # whatever fails in here: who waits for the command goes on
            self._tell(self.ended, self.left, self._is_buried)

    def _bury(self) -> None:
        if _CAN_LOOK:
            with suppress(ChildProcessError):  # somebody else waited for it
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            self._tell(self.ended, self.left)
            self._may_be_buried.wait()
        else:
            self._process.wait()
            self._tell(self.ended, self.left)
        self._watch.end(self._process.pid)
        self._process.wait()
        if self._mark.end_all(self._process.pid, monotonic() - self.started):
            self._left_running = True
        if self._clean_up is not None:
            self._clean_up()

    def _tell(self, *events: asyncio.Event) -> None:
        with suppress(RuntimeError):  # the loop is closed; nobody waits there any more
            for event in events:
                self._loop.call_soon_threadsafe(event.set)

    async def end(self) -> None:
        """End the whole group, politely where the shell still runs; nothing of it is left afterwards.

        A cancellation in here only takes the politeness away.
        """
        try:
            if self.ended.is_set():
                self._left_running = not await self._pump.ends(PIPE_SECONDS)
            else:
                self._signal(signal.SIGTERM)
                with suppress(TimeoutError):
                    async with time_limit(GRACE_SECONDS):
                        await self.ended.wait()
        finally:
            self._signal(signal.SIGKILL)
            self._may_be_buried.set()
        try:
            await self._is_buried.wait()
            await self._pump.ends(PIPE_SECONDS)
        finally:
            self._pump.stop()
        await self._pump.ended.wait()

    def _signal(self, number: signal.Signals) -> None:
        if not self._may_be_buried.is_set():
            signal_group(self._process.pid, number)


def _spawn(command: ShellCommand, outputs: list[int]) -> "Popen[bytes]":
    launch, attempts = command.launch, command.attempts
    if attempts is not None:
        launch = replace(launch, before_exec=attempts.watch(launch.before_exec))
    try:
        return start(
            launch,
            folder=command.folder,
            stdin=DEVNULL if command.given is None else command.given,
            stdout=outputs[0],
            stderr=outputs[-1],
        )
    finally:
        if attempts is not None:
            attempts.begin()
        if command.given is not None:
            command.given.close()
