"""A server's process and its pipes, as the SDK wants a transport: one JSON message a line.

https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
The SDK's own transport starts the program itself, takes lines of any length and writes its log to the terminal.
"""

import asyncio
from asyncio.subprocess import Process
from typing import Any

from anyio import BrokenResourceError, ClosedResourceError, create_memory_object_stream
from mcp.shared.message import SessionMessage

from ybs.tools.mcp.repair import messages_of
from ybs.tools.shell.peer import Peer


class ProcessTransport(Peer):
    """Starts a server when it is entered, and ends it and all that it started when it is left."""

    async def __aenter__(self) -> tuple[Any, Any]:
        process = await self.begin()
        self._into, read = create_memory_object_stream[SessionMessage | Exception](0)
        write, self._outof = create_memory_object_stream[SessionMessage](0)
        self._tasks += [
            asyncio.create_task(work(process)) for work in (self._pass_in, self._pass_out)
        ]
        return read, write

    async def __aexit__(self, *_: object) -> None:
        ending = asyncio.ensure_future(self._end())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise

    async def _end(self) -> None:
        if self._process is not None:
            self._outof.close()
            await self.end()
            self._into.close()

    async def _pass_in(self, process: Process) -> None:
        try:
            await self.read(process, self._pass_on)
        except (BrokenResourceError, ClosedResourceError):
            pass  # nobody listens any more
        finally:
            self._into.close()
            self.ended.set()

    async def _pass_on(self, line: bytes) -> bool:
        """Pass a message on, and note what is not one."""
        messages = messages_of(line)
        if not messages:
            self.note_noise(line)
        for message in messages:
            await self._into.send(SessionMessage(message))
        return True

    async def _pass_out(self, process: Process) -> None:
        try:
            async for each in self._outof:
                try:
                    text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                except ValueError:  # half a surrogate pair: the request ends with its time
                    continue
                if not self.write(process, text.encode()):
                    break
        except (ConnectionError, ClosedResourceError, RuntimeError):
            pass
        self._into.close()
