"""The lines of the protocol on standard input and output, which belong to it alone: whatever else prints goes to standard error."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final, TextIO, TypeAlias

import anyio
import mcp_types as types
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from msgspec import Struct
from pydantic import ValidationError

from ybs.core.errors import ToolError
from ybs.frontends.lines import MOST_BYTES, Lines
from ybs.security.gate import put_json
from ybs.tools.calls.supervise import called

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
        number = msgspec.json.decode(line, type=_Numbered).id
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
            async with asyncio.timeout(_ANSWER_SECONDS):
                while self._ids:
                    self._changed.clear()
                    await self._changed.wait()


@asynccontextmanager
async def streams(read_from: int, write_to: TextIO) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """Read and write messages as long as this lasts. The stream of those that come in ends where the client goes."""
    came, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, goes = anyio.create_memory_object_stream[SessionMessage](0)
    unanswered = _Unanswered()
    writer = asyncio.create_task(_write(goes, write_to, came, unanswered))
    reader = asyncio.create_task(_read(read_from, came, outgoing.clone(), unanswered))
    try:
        yield incoming, outgoing
    finally:
        reader.cancel()
        await asyncio.wait((reader,))
        outgoing.close()
        await asyncio.wait((writer,), timeout=_FLUSH_SECONDS)
        writer.cancel()
        await asyncio.wait((writer,))
        incoming.close()


async def _read(
    read_from: int,
    came: MemoryObjectSendStream[SessionMessage | Exception],
    answers: Outgoing,
    unanswered: _Unanswered,
) -> None:
    lines = Lines()
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
