"""`ybs mcp serve`: makes the tools of the folder, and serves them until the client goes."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, TextIO, TypeAlias

import anyio
import mcp_types as types
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.shared.message import SessionMessage
from msgspec import Struct
from pydantic import ValidationError

from ybs.agent.environment import ToolEnvironment
from ybs.agent.prompt_context import PromptContext
from ybs.agent.toolbox import empty_toolbox, own_tools, programs_of
from ybs.config.installed import installed
from ybs.core.decoding import from_json
from ybs.core.errors import ToolError
from ybs.core.events import Emit, Event, Noticed
from ybs.core.ports import Tool
from ybs.core.remedies import Remedy
from ybs.core.time_limits import time_limit
from ybs.core.wording import listed
from ybs.frontends.headless.advice import advised
from ybs.frontends.headless.output import UsageError, noticed, tell, warn
from ybs.frontends.headless.run import INTERRUPTED, SIGNALS
from ybs.frontends.json_rpc import MOST_BYTES, LineReader
from ybs.frontends.mcp_server.server import ToolServer, confirm
from ybs.frontends.tty import claim_stdio
from ybs.security.gate import put_json
from ybs.session.options import Options
from ybs.session.plugins import with_plugins
from ybs.session.questions import Questions
from ybs.session.settings import environment_of, ready_settings
from ybs.tools.calls.supervise import called
from ybs.tools.registry import builtin_tools, is_enabled
from ybs.tools.toolbox import LocalToolbox

WAITING = (
    "ybs: waiting for an MCP client on standard input. An agent that has `ybs mcp serve` in its settings starts it "
    "by itself; Ctrl-C ends it."
)


def serve(options: Options, tools: str) -> int:
    """Serve the tools of the folder, those named in `tools` alone where there are any; return the exit code.

    Raises ConfigError for settings that make no sense. 2: there is no tool of a name; 130 and the like: it was interrupted.
    """
    # Python would write what the SDK logs to the terminal, past the gate; what clients send stands in it.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    if sys.stdin.isatty():
        tell(WAITING)
    names = [name for each in tools.split(",") if (name := each.strip())]
    return asyncio.run(_Run(options, names).go())


class _Run:
    """One run of the server, with the signals that may end it."""

    def __init__(self, options: Options, names: Sequence[str]) -> None:
        self._options, self._names = options, names
        self._signal_code = 0
        self._is_ending = False
        self._told = set[str]()

    async def go(self) -> int:
        """Serve until the client goes or a signal comes; return the exit code."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        for number, code in SIGNALS.items():
            loop.add_signal_handler(number, self._stop, code, task)
        try:
            async with served(self._options, self._names, self._tell) as server:
                try:
                    async with streams(*claim_stdio()) as (incoming, outgoing):
                        await server.run(incoming, outgoing, server.create_initialization_options())
                        self._is_ending = True
                finally:
                    self._is_ending = True
        except UsageError as error:
            tell(f"ybs: {error}")
            return 2
        except asyncio.CancelledError:
            return self._signal_code or INTERRUPTED
        return self._signal_code

    def _stop(self, code: int, task: "asyncio.Task[int] | None") -> None:
        if not (self._signal_code or self._is_ending or task is None):
            task.cancel()
        self._signal_code = self._signal_code or code

    def _tell(self, event: Event) -> None:
        """Write what the person should know to standard error, once: some clients read little of that."""
        if isinstance(event, Noticed) and event.text not in self._told:
            self._told.add(event.text)
            tell(f"ybs: {noticed(event)}")


@asynccontextmanager
async def served(options: Options, names: Sequence[str], emit: Emit) -> AsyncGenerator[Server[Any]]:
    """Make the server of the tools of a folder; when this ends, so does all that they have started. Raises UsageError."""
    options = with_plugins(options, installed())
    ask = partial(Questions().ask, confirm=confirm)
    environment = environment_of(options, ready_settings(options), ask, emit)
    context = PromptContext(environment)
    try:
        foreign = (*options.tools, *await programs_of(environment))
        own = served_toolbox(environment, context, foreign, names)
        _warn(environment)
        await own.open(emit)
        toolbox = environment.secrets.guarded(own)
        yield ToolServer(environment, toolbox, emit).server
    finally:
        await context.aclose()
        await environment.aclose()


def _warn(environment: ToolEnvironment) -> None:
    warn(environment.loaded.warnings)
    review = environment.loaded.review
    if review is not None and review.needs_question:
        tell(f"ybs: {advised('', (Remedy('trust_project'),))}.")


#: By these a model talks to the person of ybs and keeps notes. Another agent has its own, and gets them only by name.
ONLY_BY_NAME: Final = frozenset(
    {"ask_user", "todo", "set_thought", "memorize", "update_identity", "skill"}
)


def served_toolbox(
    environment: ToolEnvironment,
    context: PromptContext,
    foreign: Sequence[Tool],
    names: Sequence[str],
) -> LocalToolbox:
    """Return the tools of these names, or without names those that are of use to another agent. Raises UsageError."""
    config = environment.config
    known = [*builtin_tools(config, environment.workspace), *own_tools(environment, context)]
    own = [tool for tool in known if is_enabled(config, tool)]
    there = {tool.name for tool in (*own, *foreign)}
    if missing := [name for name in names if name not in there]:
        raise UsageError(
            f"--tools: there is no tool {missing[0]!r} that is on; there are {listed(sorted(there))}"
        )
    chosen = set(names) or there - ONLY_BY_NAME
    toolbox = empty_toolbox(environment, ())
    toolbox.offer(
        [tool for tool in own if tool.name in chosen],
        foreign=[tool for tool in foreign if tool.name in chosen],
    )
    return toolbox


Incoming: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing: TypeAlias = MemoryObjectSendStream[SessionMessage]

_CHUNK_BYTES: Final = 65_536
#: So long what was asked before the end of input has for its answers, and these for their way out: nobody may be there to read them.
_ANSWER_SECONDS: Final = 1.0
_FLUSH_SECONDS: Final = 1.0


class _Numbered(Struct):
    """What may be read of a message that makes no sense otherwise."""

    id: int | str | None = None


def message_of(line: bytes | None) -> SessionMessage | types.JSONRPCError:
    """Return the message in a line, or the answer to a line that is not a message."""
    if line is None:
        return _fault(types.INVALID_REQUEST, f"The message has more than {MOST_BYTES:,} bytes.")
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as error:
        kind = error.errors(include_input=False, include_url=False)[0]["type"]
    if kind == "json_invalid":
        return _fault(types.PARSE_ERROR, "The line is not JSON.")
    number = None
    with suppress(msgspec.MsgspecError, RecursionError):
        number = from_json(line, _Numbered).id
    return _fault(types.INVALID_REQUEST, "The line is not a JSON-RPC message.", number)


def _fault(code: int, text: str, number: int | str | None = None) -> types.JSONRPCError:
    return types.JSONRPCError(
        jsonrpc="2.0", id=number, error=types.ErrorData(code=code, message=text)
    )


class _Unanswered:
    """The requests that have come and have no answer yet."""

    def __init__(self) -> None:
        self._ids = set[types.RequestId]()
        self._changed = asyncio.Event()

    def came(self, message: types.JSONRPCMessage) -> None:
        """Note a message of the client's."""
        if isinstance(message, types.JSONRPCRequest):
            self._ids.add(message.id)

    def went(self, message: types.JSONRPCMessage) -> None:
        """Note a message to the client."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._ids.discard(message.id)
            self._changed.set()

    async def end(self) -> None:
        """Wait until there are none, at most a short while: a cancelled one never has an answer."""
        with suppress(TimeoutError):
            async with time_limit(_ANSWER_SECONDS):
                while self._ids:
                    self._changed.clear()
                    await self._changed.wait()


@asynccontextmanager
async def streams(read_from: int, write_to: TextIO) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """Read and write messages as long as this lasts. The stream of those that come in ends where the client goes."""
    came, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, goes = anyio.create_memory_object_stream[SessionMessage](0)
    answers, unanswered = outgoing.clone(), _Unanswered()
    writer = asyncio.create_task(_write(goes, write_to, came, unanswered))
    reader = asyncio.create_task(_read(read_from, came, answers, unanswered))
    try:
        yield incoming, outgoing
    finally:
        reader.cancel()
        await asyncio.wait((reader,))
        outgoing.close()
        await asyncio.wait((writer,), timeout=_FLUSH_SECONDS)
        writer.cancel()
        await asyncio.wait((writer,))
        for each in (incoming, came, answers, goes):  # a task that never began has closed none
            each.close()


async def _read(
    read_from: int,
    came: MemoryObjectSendStream[SessionMessage | Exception],
    answers: Outgoing,
    unanswered: _Unanswered,
) -> None:
    lines = LineReader()
    async with came, answers:
        with suppress(ToolError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            # A thread that waits for a client holds nobody up, not even the end of the process.
            while data := await called(lambda: os.read(read_from, _CHUNK_BYTES), "stdin", None):
                for line in lines.feed(data):
                    if line is not None and not line.strip():
                        continue
                    message = message_of(line)
                    if isinstance(message, SessionMessage):
                        unanswered.came(message.message)
                        await came.send(message)
                    else:
                        await answers.send(SessionMessage(message))
            await unanswered.end()


async def _write(
    goes: MemoryObjectReceiveStream[SessionMessage],
    write_to: TextIO,
    came: MemoryObjectSendStream[SessionMessage | Exception],
    unanswered: _Unanswered,
) -> None:
    async with goes:
        async for each in goes:
            data = each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            try:
                await called(lambda data=data: put_json(data, write_to), "stdout", None)
            except ToolError:  # nobody reads any more: the client is as good as gone
                came.close()
                return
            unanswered.went(each.message)
