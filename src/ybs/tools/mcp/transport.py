"""A server's process and its pipes, as the SDK wants a transport: one JSON message a line.

https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
The SDK's own transport starts the program itself, takes lines of any length and writes its log to the terminal.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from codecs import BOM_UTF8
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final

from anyio import BrokenResourceError, ClosedResourceError, create_memory_object_stream
from mcp.shared.message import SessionMessage

from ybs.core.errors import ToolError
from ybs.security.launcher import start_in_loop
from ybs.security.sandbox.launch import Launch
from ybs.tools.mcp.repair import messages_of
from ybs.tools.shell.orphans import Mark
from ybs.tools.shell.watch import Watch

#: A message may have so many bytes; a server that sends more is ended.
MOST_BYTES: Final = 16_000_000
#: Its objects and arrays take a hundred times the memory of their two bytes, and ybs waits while they are read.
MOST_OBJECTS: Final = 500_000
#: A line that is no message may come so often; people leave prints in their servers.
MOST_NOISE: Final = 200
_GRACE_SECONDS = 2.0
_KEPT_ERRORS = 16_000  # bytes: the reason may stand before a long trace


class ProcessTransport:
    """Starts a server when it is entered, and ends it and all that it started when it is left.

    `start` says how it is started; it may block. `ended` is set when the server has closed its output, whyever.
    """

    def __init__(self, start: Callable[[], tuple[Launch, Mark]], watch: Watch) -> None:
        self._start, self._watch = start, watch
        self.ended = asyncio.Event()
        #: Why the connection was given up; empty where the server ended by itself.
        self.problem = ""
        self._errors, self._noise = bytearray(), 0
        self._process: Process | None = None
        self._mark: Mark | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._started = 0.0

    async def __aenter__(self) -> tuple[Any, Any]:
        launch, self._mark = await asyncio.to_thread(self._start)
        self._started = monotonic()
        try:
            self._process = await start_in_loop(
                launch, folder=Path.cwd(), stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=MOST_BYTES
            )
        except OSError as error:
            raise ToolError(f"it cannot be started: {error.strerror or error}") from error
        self._watch.begin(self._process.pid)
        self._into, read = create_memory_object_stream[SessionMessage | Exception](0)
        write, self._outof = create_memory_object_stream[SessionMessage](0)
        self._tasks = [
            asyncio.create_task(work(self._process))
            for work in (self._read, self._write, self._listen)
        ]
        return read, write

    async def __aexit__(self, *_: object) -> None:
        ending = asyncio.ensure_future(self._end())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise

    @property
    def said(self) -> str:
        """The end of what the server wrote to its standard error."""
        return self._errors.decode(errors="replace").strip()

    @property
    def how(self) -> str:
        """Say how it ended."""
        code = None if self._process is None else self._process.returncode
        if self.problem:
            return self.problem
        if code is None:
            return "it closed its output"
        return f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}"

    async def _read(self, process: Process) -> None:
        assert process.stdout is not None  # noqa: S101 - a pipe
        try:
            async for line in process.stdout:
                if line.strip() and not await self._pass_on(line.removeprefix(BOM_UTF8)):
                    break
        except ValueError:  # of the stream reader: the line is longer than its limit
            self.problem = f"it sent a message of more than {MOST_BYTES // 1_000_000} MB"
        except (BrokenResourceError, ClosedResourceError, ConnectionError):
            pass  # nobody listens any more
        finally:
            if self.problem:
                _signal(process.pid, signal.SIGKILL)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.2):  # for its exit code, and its last words
                    await process.wait()
            self._into.close()
            self.ended.set()

    async def _pass_on(self, line: bytes) -> bool:
        """Pass a message on, and note what is not one. Return whether more is read; `problem` says why not."""
        if line.count(b"{") + line.count(b"[") > MOST_OBJECTS:
            self.problem = f"it sent a message of more than {MOST_OBJECTS:,} objects"
            return False
        messages = messages_of(line)
        if not messages:
            self._noise += 1
            self._keep(line)
            if self._noise > MOST_NOISE:
                self.problem = "it wrote too much that is not a message of the protocol"
            return not self.problem
        for message in messages:
            await self._into.send(SessionMessage(message))
        return True

    async def _write(self, process: Process) -> None:
        assert process.stdin is not None  # noqa: S101 - a pipe
        try:
            async for each in self._outof:
                try:
                    text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                except ValueError:  # half a surrogate pair: the request ends with its time
                    continue
                if process.stdin.is_closing():
                    break
                # Not drained: a server that does not read would hold up requests beyond their time.
                process.stdin.write(text.encode() + b"\n")
                if process.stdin.transport.get_write_buffer_size() > MOST_BYTES:
                    self.problem = "it does not read what it is sent"
                    _signal(process.pid, signal.SIGKILL)
                    break
        except (ConnectionError, ClosedResourceError, RuntimeError):
            pass
        self._into.close()

    async def _listen(self, process: Process) -> None:
        assert process.stderr is not None  # noqa: S101 - a pipe
        while data := await process.stderr.read(65_536):
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        self._errors += data[-_KEPT_ERRORS:]
        del self._errors[:-_KEPT_ERRORS]

    async def _end(self) -> None:
        """End the server as the specification says: close its input, wait, ask it to end, end it."""
        process, mark = self._process, self._mark
        if process is None or mark is None:
            return
        self._outof.close()
        if process.stdin is not None:
            process.stdin.close()
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            if number:
                _signal(process.pid, number)
            with suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_SECONDS):
                    await process.wait()
                    break
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._into.close()
        _signal(process.pid, signal.SIGKILL)  # what is left of its group
        self._watch.end(process.pid)
        await asyncio.to_thread(mark.end_all, process.pid, monotonic() - self._started)
        self.ended.set()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
