"""A program that ybs exchanges messages with over its pipes, one a line: started, read within bounds, and ended for certain with all that it started."""

import asyncio
import signal
from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from time import monotonic
from typing import Final

from ybs.core.errors import ToolError
from ybs.core.time_limits import time_limit
from ybs.security.launcher import start_in_loop
from ybs.security.loop_process import LoopProcess
from ybs.security.sandbox.launch import Launch
from ybs.tools.shell.orphans import CommandMark, signal_group
from ybs.tools.shell.watch import Watch

#: A message may have so many bytes; a program that sends more is ended.
MOST_BYTES: Final = 16_000_000
#: Its objects and arrays take a hundred times the memory of their two bytes, and ybs waits while they are read.
MOST_OBJECTS: Final = 500_000
#: A line that is no message may come so often; people leave prints in their programs.
MOST_NOISE: Final = 200
GRACE_SECONDS = 2.0
#: What it started may hold its standard error open, so what it has written there is not waited for longer.
_LAST_WORDS_SECONDS = 0.2
_KEPT_ERRORS = 16_000  # bytes: the reason may stand before a long trace


class Peer:
    """The process. `start` says how it is started, and may block; `ended` is set when it has closed its output, for whatever reason."""

    def __init__(self, start: Callable[[], tuple[Launch, CommandMark]], watch: Watch) -> None:
        self._start, self._watch = start, watch
        self.ended = asyncio.Event()
        #: Why the connection was given up; empty where the program ended by itself.
        self.problem = ""
        self._errors, self._noise = bytearray(), 0
        self._process: LoopProcess | None = None
        self._mark: CommandMark | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._started = 0.0

    async def begin(self) -> LoopProcess:
        """Start the program. Raises ToolError and what `start` raises."""
        launch, self._mark = await asyncio.to_thread(self._start)
        await self._mark.begin(launch)
        self._started = monotonic()
        try:
            process = await start_in_loop(
                launch, folder=Path.cwd(), stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=MOST_BYTES
            )
        except OSError as error:
            self._mark.abandon()
            raise ToolError(f"it cannot be started: {error.strerror or error}") from error
        self._process = process
        self._mark.started(process.pid)
        self._watch.begin(process.pid)
        self._tasks = [asyncio.create_task(self._listen(process))]
        return process

    @property
    def said(self) -> str:
        """The end of what the program wrote to its standard error."""
        return self._errors.decode(errors="replace").strip()

    @property
    def how(self) -> str:
        """Return how it ended."""
        code = None if self._process is None else self._process.returncode
        if self.problem:
            return self.problem
        if code is None:
            return "it closed its output"
        return f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}"

    async def read(self, process: LoopProcess, take: Callable[[bytes], Awaitable[bool]]) -> None:
        """Hand each line to `take` until that returns False, `problem` says why not to go on, or the program closes its output."""
        assert process.stdout is not None  # noqa: S101 - a pipe
        try:
            async for line in process.stdout:
                if line.strip() and not await self._taken(line.removeprefix(BOM_UTF8), take):
                    break
        except ValueError:  # of the stream reader: the line is longer than its limit
            self.problem = f"it sent a message of more than {MOST_BYTES // 1_000_000} MB"
        except ConnectionError:
            pass  # nobody is there any more
        finally:
            if self.problem:
                signal_group(process.pid, signal.SIGKILL)
            with suppress(TimeoutError):  # a program that only closes its output goes on
                async with time_limit(GRACE_SECONDS):
                    await process.wait()
            await asyncio.wait(self._tasks[:1], timeout=_LAST_WORDS_SECONDS)

    async def _taken(self, line: bytes, take: Callable[[bytes], Awaitable[bool]]) -> bool:
        if line.count(b"{") + line.count(b"[") > MOST_OBJECTS:
            self.problem = f"it sent a message of more than {MOST_OBJECTS:,} objects"
            return False
        return await take(line) and not self.problem

    def note_noise(self, line: bytes) -> None:
        """Keep a line that is not a message for the report; too many of them are a problem."""
        self._noise += 1
        self._keep(line)
        if self._noise > MOST_NOISE:
            self.problem = "it wrote too much that is not a message of the protocol"

    def write(self, process: LoopProcess, line: bytes) -> bool:
        """Send a line; return whether the program still takes any."""
        assert process.stdin is not None  # noqa: S101 - a pipe
        if process.stdin.is_closing():
            return False
        # Not drained: a program that does not read would hold up requests beyond their time.
        process.stdin.write(line + b"\n")
        if process.stdin.transport.get_write_buffer_size() > MOST_BYTES:
            self.problem = "it does not read what it is sent"
            signal_group(process.pid, signal.SIGKILL)
            return False
        return True

    async def _listen(self, process: LoopProcess) -> None:
        assert process.stderr is not None  # noqa: S101 - a pipe
        while data := await process.stderr.read(65_536):
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        self._errors += data[-_KEPT_ERRORS:]
        del self._errors[:-_KEPT_ERRORS]

    async def end(self, grace_seconds: float | None = None) -> None:
        """End the program: close its input, wait, ask it to end, end it, each after `grace_seconds`."""
        process, mark = self._process, self._mark
        if process is None or mark is None:
            return
        grace = GRACE_SECONDS if grace_seconds is None else grace_seconds
        if process.stdin is not None:
            process.stdin.close()
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            if number:
                signal_group(process.pid, number)
            with suppress(TimeoutError):
                async with time_limit(grace if number != signal.SIGKILL else GRACE_SECONDS):
                    await process.wait()
                    break
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        signal_group(process.pid, signal.SIGKILL)  # what is left of its group
        self._watch.end(process.pid)
        await asyncio.to_thread(mark.end_all, process.pid, monotonic() - self._started)
        process.close()
        self.ended.set()
