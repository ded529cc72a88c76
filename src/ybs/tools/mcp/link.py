"""A connection to one server by the official SDK, with ybs's own types. Loading it takes a second: only a server that is used needs it.

https://modelcontextprotocol.io/specification
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any, Final

import mcp_types as types
import msgspec
from anyio import BrokenResourceError, ClosedResourceError, create_memory_object_stream
from mcp import Client, MCPError
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ybs.config.tree import is_object
from ybs.core.cutting import shortened
from ybs.core.errors import ToolError
from ybs.core.messages import Image
from ybs.core.ports import ToolOutput
from ybs.security.firewall.toolbox import is_open
from ybs.security.loop_process import LoopProcess
from ybs.tools.mcp.listed import (
    ListedTool,
    PromptArgument,
    Resource,
    ServerOffer,
    ServerPrompt,
    cleaned,
    listed,
)
from ybs.tools.mcp.repair import TolerantTransport, messages_of, without_halves
from ybs.tools.shell.peer import Peer

for _name in ("mcp", "mcp_types"):  # else Python writes what they log to the terminal
    logging.getLogger(_name).addHandler(logging.NullHandler())
#: A server may offer so many of a kind.
MOST_LISTED: Final = 500
#: What the parameters of all tools of a server may take, in bytes.
MOST_SCHEMAS: Final = 500_000
_MOST_PAGES = 50
#: Between two streams of news; it doubles each time.
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 300.0
_MOST_NAME = 100
_MOST_ADDRESS = 2_000
_MOST_PARAMETERS = 20
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_WORDS = {
    types.CONNECTION_CLOSED: "the connection was closed",
    types.REQUEST_TIMEOUT: "it did not answer in time",
}
#: How the SDK begins what it says of a stream of events, and what that means.
_OF_ENDS = (BrokenResourceError, ClosedResourceError)
_OF_STREAMS = {
    "SSE stream failed: Server-sent event exceeded": "it sent a message that is too long",
    "SSE stream": "it ended its answer too early",
    "Failed to parse SSE message: ": "it sent something that is not a message of the protocol",
    "Failed to parse JSON response: ": "it sent something that is not a message of the protocol",
    "Unexpected content type": "it sent something that is not a message of the protocol",
}

#: Asks the person for what a server wants to know: its words and a JSON Schema; None where they do not want to say.
Elicit = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]]


class McpLink:
    """A server that answers."""

    def __init__(self, client: Client, seconds: float, left_out: list[str]) -> None:
        self._client, self._seconds = client, seconds
        self._left_out = left_out

    @property
    def version(self) -> str:
        """The version of the protocol that was agreed on."""
        return self._client.protocol_version

    @property
    def is_modern(self) -> bool:
        """Whether the protocol is one without sessions, where changes come by a stream that is asked for."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    async def offer(self) -> tuple[ServerOffer, list[str]]:
        """Return the server's offer, and the problems of its unusable parts. Raises ToolError."""
        self._left_out.clear()
        can = self._client.server_capabilities
        tools, problems = await self._tools() if can.tools is not None else ([], [])
        resources = prompts = list[Any]()
        if can.resources is not None:
            resources = await self._others(self._client.list_resources, "resources", problems)
        if can.prompts is not None:
            prompts = await self._others(self._client.list_prompts, "prompts", problems)
        return (
            ServerOffer(
                tools=tuple(tools),
                resources=tuple(
                    _resource(each) for each in resources if len(str(each.uri)) <= _MOST_ADDRESS
                ),
                prompts=tuple(_prompt(each) for each in prompts if len(each.name) <= _MOST_NAME),
            ),
            [*self._left_out, *problems],
        )

    async def _others(self, ask: Any, what: str, problems: list[str]) -> list[Any]:
        """Return resources or prompts; a list that fails takes nothing from the tools."""
        try:
            return [each async for each in self._listed(ask, what)]
        except ToolError as error:
            problems.append(f"its {what}: {error}".rstrip("."))
            return []

    async def _tools(self) -> tuple[list[ListedTool], list[str]]:
        tools: dict[str, ListedTool] = {}
        problems: list[str] = []
        room = MOST_SCHEMAS
        async for each in self._listed(self._client.list_tools, "tools"):
            shown = cleaned(each.name, _MOST_NAME)
            notes = each.annotations
            is_reading = bool(notes is not None and notes.read_only_hint)
            try:
                tool = listed(
                    each.name, each.description or "", each.input_schema, is_reading=is_reading
                )
            except (ValueError, TypeError, RecursionError, msgspec.MsgspecError) as error:
                problems.append(f"{shown}: {error}")
                continue
            room -= len(bytes(tool.parameters))
            if room < 0:
                problems.append(
                    f"{shown}: all tools together take more than {MOST_SCHEMAS:,} bytes"
                )
            elif tools.setdefault(each.name, tool) is not tool:
                problems.append(f"{shown}: there are two of this name; the first one is used")
        return list(tools.values()), problems

    async def _listed(self, ask: Any, what: str) -> AsyncGenerator[Any]:
        """Yield a list that comes in pages, of which no more than one is held at a time."""
        count = 0
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            with answering():
                page = await ask(cursor=cursor, cache_mode="refresh")
            for each in getattr(page, what)[: MOST_LISTED - count]:
                count += 1
                yield each
            cursor = page.next_cursor
            if not cursor or count == MOST_LISTED:
                return

    async def call(
        self, name: str, arguments: dict[str, Any], print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Have the server run a tool. Raises ToolError where it does not answer."""

        async def report(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            said = cleaned(message, 500) if message else ""
            # What may be a part of a token stands before the next part, for the firewall to see.
            print_live(
                f"{said}\n" if is_open(said) else f"{said} ({share})\n" if said else f"{share}\n"
            )

        with answering():
            result = await self._client.call_tool(
                name,
                without_halves(arguments),
                read_timeout_seconds=self._seconds,
                progress_callback=report,
            )
        return output_of(result)

    async def read(self, uri: str) -> ToolOutput:
        """Return a resource. Raises ToolError."""
        with answering():
            result = await self._client.read_resource(uri)
        texts: list[str] = []
        images: list[Image] = []
        for each in result.contents:
            _take_resource(each, texts, images)
        return ToolOutput(
            output="\n".join(texts), summary=f"{uri}: {_size(texts)}", images=tuple(images)
        )

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """Return the words of a prompt. Raises ToolError."""
        with answering():
            result = await self._client.get_prompt(name, without_halves(arguments))
        texts: list[str] = []
        for each in result.messages:
            output = _output([each.content])
            texts.append(output.output)
        return "\n".join(texts)  # no empty line: a secret that goes on in the next is known

    async def changes(self) -> AsyncGenerator[None]:
        """Yield when what the server offers may have changed; for modern servers. It ends where they have no such stream.

        One that breaks off is opened again: proxies end those that are silent for long.
        """
        pause, was_open, is_open = FIRST_PAUSE_SECONDS, False, True
        while is_open:
            is_open = False
            with suppress(MCPError, RuntimeError, TimeoutError):
                async with self._client.listen(
                    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
                ) as stream:
                    if was_open:
                        yield None  # something may have changed meanwhile
                    was_open = is_open = True
                    async for _ in stream:
                        yield None
            if is_open:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


@asynccontextmanager
async def connected(
    server: Any, *, seconds: float, elicit: Elicit | None, changed: Callable[[], None]
) -> AsyncGenerator[McpLink]:
    """Connect to a server: a transport, or one of the SDK's own in this process. Raises what goes wrong."""

    async def heard(message: Any) -> None:
        if isinstance(
            message,
            types.ToolListChangedNotification
            | types.PromptListChangedNotification
            | types.ResourceListChangedNotification,
        ):
            changed()

    is_transport = hasattr(server, "__aenter__")  # not one of the SDK's own servers
    tolerant = TolerantTransport(server)
    client = Client(
        tolerant if is_transport else server,
        read_timeout_seconds=seconds,
        message_handler=heard,
        client_info=types.Implementation(name="ybs", version=version("ybs")),
        elicitation_callback=None if elicit is None else _eliciting(elicit),
        cache=None,
    )
    async with client:
        yield McpLink(client, seconds, tolerant.left_out)


def _eliciting(elicit: Elicit) -> Any:
    async def callback(_context: Any, params: Any) -> Any:
        if not isinstance(params, types.ElicitRequestFormParams):
            return types.ElicitResult(action="decline")  # an address to open: nobody does it here
        answer = await elicit(cleaned(params.message, 4_000), dict(params.requested_schema))
        if answer is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=answer)

    return callback


class answering:
    """Turns what the SDK raises into a ToolError with words for the model."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, ToolError) or not isinstance(error, Exception):
            return
        raise ToolError(f"The server failed: {words_of(error)}.") from error


def _telling(error: BaseException) -> BaseException:
    """Return the error that says something: of several one, and not what was only torn down with the connection."""
    if isinstance(error, BaseExceptionGroup):
        several: tuple[BaseException, ...] = error.exceptions  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType] - of any kind
        return _telling(next((x for x in several if not isinstance(x, _OF_ENDS)), several[0]))
    if isinstance(error, _OF_ENDS) and error.__context__ is not None:
        return _telling(error.__context__)
    return error


def words_of(error: BaseException) -> str:
    """Return in a few words what went wrong in the SDK."""
    error = _telling(error)
    if isinstance(error, _OF_ENDS):
        return _WORDS[types.CONNECTION_CLOSED]
    if isinstance(error, MCPError):
        for beginning, words in _OF_STREAMS.items():
            if error.message.startswith(beginning):
                return words
        return _WORDS.get(error.code) or _said_in(error)
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, ToolError):
        return str(error).rstrip(".")
    said = cleaned(str(error), 300).partition("\n")[0].rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _said_in(error: MCPError) -> str:
    """Return a server's own words: the message of its error, and what it adds as text."""
    said, data = error.message.strip().rstrip("."), error.data
    if is_object(data):
        data = next((data[key] for key in ("message", "details", "detail") if key in data), None)
    if isinstance(data, str) and data.strip() and data.strip() not in said:
        said = f"{said}: {data.strip().rstrip('.')}" if said else data.strip()
    return cleaned(said, 1_000) or f"error {error.code}"


def output_of(result: types.CallToolResult) -> ToolOutput:
    """Return a result as ybs has it: text, pictures, and the object where there is no text."""
    output = _output(result.content)
    text, structured = output.output, result.structured_content
    if not text and structured is not None:
        text = msgspec.json.encode(structured).decode()
    text = text or ("It failed without a word." if result.is_error else "")
    return ToolOutput(
        output=text,
        summary=cleaned(text, 500) if result.is_error else _size([text]),
        display=structured if is_object(structured) else None,
        images=output.images,
        is_error=result.is_error,
    )


def _output(content: list[Any]) -> ToolOutput:
    texts: list[str] = []
    images: list[Image] = []
    for each in content:
        match each:
            case types.TextContent():
                texts.append(each.text)
            case types.ImageContent():
                _take_picture(each.data, each.mime_type, texts, images)
            case types.AudioContent():
                texts.append(f"[sound, {each.mime_type}, which cannot be passed on]")
            case types.ResourceLink():
                texts.append(f"[resource {each.uri}: {each.name}]")
            case types.EmbeddedResource():
                _take_resource(each.resource, texts, images)
            case _:
                texts.append(f"[{type(each).__name__}, which cannot be passed on]")
    return ToolOutput(output="\n".join(texts), summary="", images=tuple(images))


def _take_resource(resource: Any, texts: list[str], images: list[Image]) -> None:
    if isinstance(resource, types.TextResourceContents):
        texts.append(resource.text)
    else:
        _take_picture(resource.blob, resource.mime_type or "", texts, images)


def _take_picture(data: str, media_type: str, texts: list[str], images: list[Image]) -> None:
    from base64 import b64decode
    from binascii import Error

    try:
        raw = b64decode(data, validate=True)
    except (Error, ValueError):
        texts.append(f"[{media_type or 'data'} that is not base64]")
        return
    if media_type in _PICTURES:
        images.append(Image(media_type=media_type, data=raw))
    else:
        texts.append(f"[{media_type or 'data'}, {len(raw):,} bytes, which cannot be passed on]")


def _resource(each: types.Resource) -> Resource:
    return Resource(
        uri=str(each.uri),
        name=cleaned(each.name, _MOST_NAME),
        description=cleaned(each.description or "", 300),
    )


def _prompt(each: types.Prompt) -> ServerPrompt:
    return ServerPrompt(
        name=each.name,
        description=cleaned(each.description or "", 300),
        arguments=tuple(
            PromptArgument(name=shortened(given.name, _MOST_NAME), is_required=bool(given.required))
            for given in (each.arguments or ())[:_MOST_PARAMETERS]
        ),
    )


def _size(texts: list[str]) -> str:
    lines = sum(text.count("\n") + 1 for text in texts if text)
    return f"{lines:,} line{'s' * (lines != 1)}"


class ProcessTransport(Peer):
    """Starts a server when it is entered, and ends it and all that it started when it is left."""

    async def __aenter__(self) -> tuple[Any, Any]:
        process = await self.begin()
        self._into, read = create_memory_object_stream[SessionMessage | Exception](0)
        write, self._outof = create_memory_object_stream[SessionMessage](0)
        self._given = read, write
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
            for each in self._given:  # who never came to use them has not closed them
                each.close()

    async def _pass_in(self, process: LoopProcess) -> None:
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

    async def _pass_out(self, process: LoopProcess) -> None:
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
