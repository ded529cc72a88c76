"""Scripted servers on loopback: they play a script in a wire format and record every request."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, Self, TypeAlias, cast

from scripted.anthropic import AnthropicWire
from scripted.faults import Entry, HttpError
from scripted.google import GoogleWire
from scripted.http import Connection, RecordedRequest, read_request, write_response
from scripted.ollama import OllamaWire
from scripted.openai import MistralWire, OpenAIWire
from scripted.response import Asked, Response, respond
from scripted.responses import ResponsesWire
from scripted.wire import Wire, encode
from ybs.testing.script import ScriptOver

#: An entry, or a function of the request that gives one.
Cue: TypeAlias = Entry | Callable[[RecordedRequest], Entry]


class ScriptedServer:
    """Plays one entry of the script for each chat request. Use it with `async with`.

    `requests` holds the chat requests and `other_requests` the rest (lists of models, wrong paths).
    When the script is over a request gets an error, and leaving the block raises ScriptOver.
    """

    wire: ClassVar[Wire]

    def __init__(
        self,
        script: Iterable[Cue] = (),
        *,
        models: Sequence[str] = ("scripted",),
        port: int = 0,
        is_repeated: bool = False,
        on_request: Callable[[RecordedRequest], None] | None = None,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self.other_requests: list[RecordedRequest] = []
        self._script, self._models, self._port = list(script), models, port
        self._is_repeated, self._on_request = is_repeated, on_request
        self._is_over = False
        self._go_on = asyncio.Event()
        self._changed = asyncio.Condition()
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """The endpoint to configure, such as `http://127.0.0.1:4711/v1`."""
        return f"http://127.0.0.1:{self._port}{self.wire.base_path}"

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._accept), "127.0.0.1", self._port
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
        if self._is_over and error is None:
            raise ScriptOver(self._over_message)

    async def close(self) -> None:
        """Stop, whatever is still going on."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    def resume(self) -> None:
        """Let stalled answers go on, now and from now on."""
        self._go_on.set()

    async def received(self, count: int = 1) -> None:
        """Wait until so many chat requests have come."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)

    async def dropped(self, count: int = 1) -> None:
        """Wait until so many clients have closed the connection before their answer was out."""

        def is_dropped() -> bool:
            return sum(request.was_dropped for request in self.requests) >= count

        async with self._changed:
            await self._changed.wait_for(is_dropped)

    @property
    def _over_message(self) -> str:
        count = len(self._script)
        return f"the script has {count} answers; {len(self.requests)} requests came"

    def _accept(self, connection: Connection, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(connection, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        # One that is cancelled before its first step closes nothing by itself.
        task.add_done_callback(lambda _task: writer.close())

    async def _serve(self, connection: Connection, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await read_request(connection.reader):
                response = await self._take(request)
                try:
                    await write_response(writer, response, self._go_on, connection.left)
                except ConnectionError:
                    request.was_dropped = True
                if request.was_dropped or response.is_broken:
                    break
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            async with self._changed:
                self._changed.notify_all()

    async def _take(self, request: RecordedRequest) -> Response:
        if self._on_request is not None:
            self._on_request(request)
        if not request.path.endswith(self.wire.chat_path):
            self.other_requests.append(request)
            return self._facts(request)
        async with self._changed:
            self.requests.append(request)
            number = len(self.requests)
            self._changed.notify_all()
        is_object = isinstance(request.body, dict)
        body = cast("dict[str, Any]", request.body) if is_object else {}
        asked = Asked({**body, **self.wire.said_by_path(request.path)}, number)
        return respond(self.wire, self._entry(request, number), asked)

    def _entry(self, request: RecordedRequest, number: int) -> Entry:
        place = (number - 1) % max(1, len(self._script)) if self._is_repeated else number - 1
        if place >= len(self._script):
            self._is_over = True
            return HttpError(status=400, message=self._over_message, kind="script_over")
        cue = self._script[place]
        return cue(request) if callable(cue) else cue

    def _facts(self, request: RecordedRequest) -> Response:
        facts = self.wire.facts(request.path, self._models)
        missing = self.wire.error(404, "not_found_error", f"no such path: {request.path}")
        return Response(
            status=200 if facts else 404,
            headers={"content-type": "application/json"},
            chunks=(encode(facts or missing),),
        )


class OpenAIServer(ScriptedServer):
    """A scripted server that speaks OpenAI chat completions (SSE)."""

    wire = OpenAIWire()


class OllamaServer(ScriptedServer):
    """A scripted server that speaks Ollama's own chat format (NDJSON)."""

    wire = OllamaWire()


class AnthropicServer(ScriptedServer):
    """A scripted server that speaks Anthropic Messages (SSE)."""

    wire = AnthropicWire()


class ResponsesServer(ScriptedServer):
    """A scripted server that speaks OpenAI Responses (SSE)."""

    wire = ResponsesWire()


class GoogleServer(ScriptedServer):
    """A scripted server that speaks Google's Gemini format (SSE)."""

    wire = GoogleWire()


class MistralServer(ScriptedServer):
    """A scripted server that speaks Mistral's chat completions (SSE)."""

    wire = MistralWire()
