"""`ybs acp`: serves an editor on standard input and output, until it goes: in the server where one runs, else in a process of its own."""

import asyncio
import logging
import os
import socket
import sys
import traceback
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TextIO

from ybs.core.errors import ToolError, YbsError
from ybs.core.threads import in_thread
from ybs.core.time_limits import time_limit
from ybs.frontends.acp.handshake import Handshake
from ybs.frontends.headless.output import tell
from ybs.frontends.headless.run import INTERRUPTED, SIGNALS
from ybs.frontends.json_rpc import (
    INVALID_REQUEST,
    LineReader,
    RpcMessage,
    Senseless,
    encoded,
    message_of,
)
from ybs.frontends.log_file import LogFile
from ybs.frontends.serve.place import ServerPlace
from ybs.frontends.tty import claim_stdio
from ybs.security.gate import put_json
from ybs.session.options import BadOption, Options
from ybs.tools.calls.supervise import called

if TYPE_CHECKING:
    from ybs.frontends.serve.sessions import HostedSessions

#: So many requests may wait for their answers; more are refused.
MOST_OPEN: Final = 1_000
#: Who sends more than this waits until some of it was read.
_MOST_UNREAD_BYTES: Final = 1_000_000
_PIECE_BYTES: Final = 65_536
#: So long what is on its way out has at the end: nobody may be there to read it.
_FLUSH_SECONDS: Final = 1.0


class EditorPipe:
    """Reads and writes messages. `greet` answers `initialize`, from its parameters."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        greet: Callable[[RpcMessage], RpcMessage],
    ) -> None:
        self._reader, self._writer, self._greet = reader, writer, greet
        self._lines, self._came = LineReader(), deque[RpcMessage]()
        self._open, self._greeted = set[int | str](), False
        self._out = bytearray()
        writer.transport.set_write_buffer_limits(_MOST_UNREAD_BYTES)

    async def opened(self) -> bool:
        """Wait for the first message, and answer it where it is `initialize`; return whether any came."""
        while not (self._greeted or self._came):
            if not await self._read():
                return False
        return True

    async def receive(self) -> RpcMessage | None:
        """Return the next message for the SDK; None where the editor has gone."""
        await asyncio.sleep(0)  # what came before begins first, also in a flood
        while not self._came:
            if not await self._read():
                return None
        return self._came.popleft()

    async def _read(self) -> bool:
        """Read what has come, or wait for it; return whether more can come."""
        try:
            data = await self._reader.read(_PIECE_BYTES)
            for line in self._lines.feed(data):
                if line is None or line.strip():
                    await self._take(line)
        except OSError:
            return False
        return bool(data)

    async def _take(self, line: bytes | None) -> None:
        try:
            message = message_of(line)
            if message.get("method") == "initialize" and "id" in message:
                self._greeted = True
                params = message.get("params", {})
                answer = {"jsonrpc": "2.0", "id": message["id"], **self._greet(params)}
            elif self.take(message, self._open):
                self._came.append(message)
                return
            else:
                return
        except Senseless as error:
            answer = error.answer
        await self._put(answer)  # who floods is read no faster than they read

    @staticmethod
    def take(message: RpcMessage, waiting: set[int | str]) -> bool:
        """Return whether the SDK should have a message; requests are added to those that wait. Raises Senseless."""
        method, number = message.get("method"), message.get("id")
        if method is None:
            return True
        if "id" not in message:  # others are none of the protocol's, and nobody waits for an answer
            return method == "session/cancel" or method.startswith("_")
        if number is None or number in waiting or len(waiting) >= MOST_OPEN:
            text = "The request has no id, or that of another one, or too many wait."
            raise Senseless(INVALID_REQUEST, text, number)
        waiting.add(number)
        return True

    async def send(self, message: RpcMessage) -> None:
        """Send a message. Raises ConnectionError where the editor has gone."""
        if "method" not in message:
            self._open.discard(message["id"])
        await self._put(message)

    async def _put(self, message: RpcMessage) -> None:
        if not self._out:  # what is sent at once goes out together
            asyncio.get_running_loop().call_soon(self._flush)
        self._out += encoded(message) + b"\n"
        if len(self._out) > _PIECE_BYTES:
            self._flush()
        transport = self._writer.transport
        if transport.is_closing() or transport.get_write_buffer_size() > _MOST_UNREAD_BYTES:
            await self._writer.drain()

    def _flush(self) -> None:
        if self._out:
            self._writer.write(bytes(self._out))
            self._out.clear()

    async def close(self) -> None:
        """Let what was sent go out, for a moment, and send nothing more."""
        self._flush()
        self._writer.close()
        with suppress(OSError, TimeoutError):
            async with time_limit(_FLUSH_SECONDS):
                await self._writer.wait_closed()
        self._writer.transport.abort()


WAITING: Final = (
    "ybs: waiting for an editor on standard input. An editor that has `ybs acp` in its settings starts it by itself "
    "(`ybs setup editor` prints these settings); Ctrl-C ends it."
)
WITHOUT_SDK: Final = "ybs: `ybs acp` needs the package agent-client-protocol; install it with: pip install 'ybs[acp]'"
#: A log of more bytes begins anew.
_MOST_LOG_BYTES: Final = 1_000_000
_CHUNK_BYTES: Final = 1 << 20
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def serve(options: Options, *, starts_server: bool = False) -> int:
    """Serve an editor, in a server where one runs or is asked for; return the exit code.

    1: the SDK is missing, or the server has gone; 130 and the like: it was interrupted. Raises YbsError where no server can be started.
    """
    if find_spec("acp") is None:
        tell(WITHOUT_SDK)
        return 1
    if sys.stdin.isatty():
        tell(WAITING)
    return asyncio.run(_Run(options).go(starts_server=starts_server))


class _Run:
    """One run, with the signals that may end it."""

    def __init__(self, options: Options) -> None:
        self._options, self._signal_code = options, 0

    async def go(self, *, starts_server: bool) -> int:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        for number, code in SIGNALS.items():
            loop.add_signal_handler(number, self._stop, code, task)
        try:
            ends = claim_stdio()
            server = await _server(self._options, starts=starts_server)
            if server is None:
                await _alone(self._options, *ends)
            elif not await copied(*ends, *server):
                tell("ybs: The server has stopped.")
                return 1
        except asyncio.CancelledError:
            return self._signal_code or INTERRUPTED
        return self._signal_code

    def _stop(self, code: int, task: "asyncio.Task[Any] | None") -> None:
        if not self._signal_code and task is not None:
            task.cancel()
        self._signal_code = self._signal_code or code


async def _server(options: Options, *, starts: bool) -> Streams | None:
    """Return the streams to the agent in the server; None where this process serves it. Raises YbsError where a server cannot be started."""
    if not (starts or ServerPlace.of(options.host).path.exists()):
        return None
    from ybs.frontends.serve.client import agent_streams  # few editors have a server

    try:
        return await agent_streams(options, starts=starts)
    except BadOption:  # this process goes by what no server is told
        return None
    except (YbsError, OSError) as error:
        if starts:
            raise
        if isinstance(error, YbsError):  # else it was killed
            tell(f"ybs: {error} The editor has a process of its own.")
        return None


async def _alone(options: Options, read_from: int, write_to: TextIO) -> None:
    """Serve the editor from this process."""
    handler = _log_handler(options)
    handler.addFilter(plainly)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    here, there = socket.socketpair()
    async with asyncio.TaskGroup() as group:
        agent_end = await asyncio.open_unix_connection(sock=here)
        group.create_task(served(options, *agent_end))
        editor_end = await asyncio.open_unix_connection(sock=there, limit=_CHUNK_BYTES)
        await copied(read_from, write_to, *editor_end)


async def copied(
    read_from: int,
    write_to: TextIO,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> bool:
    """Copy what the editor says to the agent, and back, until either has gone; return whether it was the editor."""

    async def read() -> bytes:
        return await called(lambda: os.read(read_from, _CHUNK_BYTES), "stdin", None)

    async def come() -> None:
        with suppress(ToolError, OSError):
            while data := await read():
                writer.write(data)
                await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    coming = asyncio.create_task(come())
    try:
        async for lines in _whole_lines(reader):
            await called(lambda lines=lines: put_json(lines, write_to), "stdout", None)
        return coming.done()
    except ToolError:  # nobody reads any more
        return True
    except OSError:
        return coming.done()
    finally:
        coming.cancel()
        await asyncio.wait((coming,))
        writer.close()


async def _whole_lines(reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
    """Yield what has come, up to the end of its last line: half a character cannot be written."""
    begun = list[bytes]()
    while data := await reader.read(_CHUNK_BYTES):
        whole, end, rest = data.rpartition(b"\n")
        if end:
            yield b"".join((*begun, whole, end))
            begun.clear()
        begun.append(rest)


async def served(
    options: Options, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve an editor with sessions of this process, which end when it goes."""
    handshake = Handshake(options)
    pipe = EditorPipe(reader, writer, handshake)
    try:
        if await pipe.opened():
            hosted = await in_thread(lambda: import_module("ybs.frontends.serve.sessions"))
            async with hosted.HostedSessions(options.host) as sessions:
                await _answer(pipe, sessions, options, handshake)
    finally:
        await pipe.close()


async def serve_in(
    sessions: "HostedSessions",
    options: Options,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Serve an editor with the sessions of a server, which go on when it has gone."""
    logging.getLogger().addFilter(plainly)  # the SDK's own words go there
    handshake = Handshake(options)
    pipe = EditorPipe(reader, writer, handshake)
    if await pipe.opened():
        await _answer(pipe, sessions, options, handshake)


async def _answer(
    pipe: EditorPipe, sessions: "HostedSessions", options: Options, handshake: Handshake
) -> None:
    acp = await in_thread(lambda: import_module("acp"))
    agents = await in_thread(lambda: import_module("ybs.frontends.acp.agent"))
    agent = agents.EditorAgent(sessions, options, handshake, pipe.send)
    try:  # the SDK has resume, fork and close behind this switch
        await acp.run_agent(agent, pipe, use_unstable_protocol=True)
    finally:
        await agent.aclose()


def _log_handler(options: Options) -> logging.Handler:
    """Return what writes `acp.log` in the state folder; nothing is written in an incognito run."""
    file = options.host.state_folder / "acp.log"
    if options.overrides.get("incognito.enabled"):
        return logging.NullHandler()
    return LogFile(file, maxBytes=_MOST_LOG_BYTES, backupCount=1, encoding="utf-8", delay=True)


def plainly(record: logging.LogRecord) -> bool:
    """Have a record say of an error where it happened and of which kind it is: its words may hold what the editor sent."""
    if record.exc_info:
        kind, _, trace = record.exc_info
        record.exc_text = "".join(traceback.format_tb(trace)) + (kind.__qualname__ if kind else "")
    return True
