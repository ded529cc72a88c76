"""The tools of ybs as an MCP server: which there are, and what happens at a call."""

import asyncio
from base64 import b64encode
from collections.abc import Coroutine, Sequence
from contextvars import ContextVar
from functools import cached_property
from itertools import count
from typing import Any, Final, TypeAlias

import anyio
import mcp_types as types
import msgspec
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from msgspec import Raw

from ybs.agent.environment import ToolEnvironment
from ybs.agent.hooks import TurnHook, before_turn
from ybs.core.events import Emit
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Confirm, Question, Request, Toolbox, ToolSpec
from ybs.core.version import VERSION
from ybs.frontends.headless.advice import advised
from ybs.frontends.mcp_server.progress import Progress
from ybs.frontends.mcp_server.questions import (
    AskingLater,
    LaterAnswers,
    asking_now,
    can_ask,
    refuse,
)
from ybs.security.firewall.structs import masked
from ybs.security.legible import legible
from ybs.tools.registry import NAMES

Context: TypeAlias = ServerRequestContext[Any, Any]
#: What asks the person about the call that runs in this context.
_asking: ContextVar[Confirm] = ContextVar("asking", default=refuse)

_INSTRUCTIONS: Final = {
    "": "The tools of ybs, a coding agent, for the folder {folder}. Relative paths begin there; paths outside of it are refused.",
    "edit_file": "edit_file finds the text to replace also where white space or quotes differ a little; prefer it to rewriting a file.",
    "repo_map": "repo_map lists the files and definitions that a query is about: a good first call in a project that you do not know.",
    "run_shell": "run_shell runs in a sandbox: it may write in the folder, and has no network unless the person allows it.",
    "ask": "The person's rules decide what runs. Where they are to be asked, that is done through this client, or the call is refused with what "
    "would allow it: do not try other ways, tell the person.",
    "secrets": "Secrets in results are replaced by [ybs:secret:…]; leave such words as they are, also in edits.",
}
_WITHOUT_TOOL: Final = ("", "ask", "secrets")


class ToolServer:
    """Serves the tools of one environment to one client.

    `toolbox` has the tools, behind the firewall; `hooks` are told that a turn begins before each call. The environment asks by `confirm`
    of this module. `emit` takes notices for the person.
    """

    def __init__(
        self,
        environment: ToolEnvironment,
        toolbox: Toolbox,
        emit: Emit,
        hooks: Sequence[TurnHook] = (),
    ) -> None:
        self._environment, self._toolbox = environment, toolbox
        self._emit, self._hooks = emit, hooks
        self._numbers = count(1)
        self._later = LaterAnswers(environment.mask)
        #: Held by a call that may change something: those come one after the other.
        self._changing = asyncio.Lock()

    @cached_property
    def server(self) -> Server[Any]:
        """The server as the SDK runs it."""
        return Server(
            "ybs",
            version=VERSION,
            title="ybs",
            instructions=self._instructions(),
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    @cached_property
    def _specs(self) -> Sequence[ToolSpec]:
        firewall = self._environment.secrets.firewall
        specs = legible(Request("", (), self._toolbox.specs())).tools
        return [masked(firewall, each, f"the description of {each.name}") for each in specs]

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(each.name for each in self._toolbox.specs())

    def _instructions(self) -> str:
        known = {*_WITHOUT_TOOL, *self._names}
        folder = str(self._environment.folder)
        lines = (text.format(folder=folder) for key, text in _INSTRUCTIONS.items() if key in known)
        return self._environment.mask(" ".join(lines), "the instructions")

    async def _list(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(tools=[tool_of(each) for each in self._specs])

    async def _call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        call = self._call_of(params)
        asking = self._asks(context, call, params)
        _asking.set(asking)
        async with Progress(context.session, self._emit) as emit:
            result = await to_its_end(self._run(call, emit))
        if isinstance(asking, AskingLater) and asking.question is not None:
            return self._later.required(asking, asking.question)
        return result_of(result)

    def _call_of(self, params: types.CallToolRequestParams) -> ToolCall:
        if params.name not in self._names:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        arguments = msgspec.json.encode(params.arguments or {})
        return ToolCall(id=f"mcp-{next(self._numbers)}", name=params.name, arguments=Raw(arguments))

    def _asks(
        self, context: Context, call: ToolCall, params: types.CallToolRequestParams
    ) -> Confirm:
        session = context.session
        if not can_ask(session):
            return refuse
        if session.can_send_request:
            return asking_now(session, context.request_id, self._environment.mask)
        return self._later.asking(call, params)

    async def _run(self, call: ToolCall, emit: Emit) -> ToolResult:
        if self._toolbox.is_read_only(call):
            return await self._run_alone(call, emit)
        async with self._changing:
            return await self._run_alone(call, emit)

    async def _run_alone(self, call: ToolCall, emit: Emit) -> ToolResult:
        await before_turn(self._hooks, emit)
        return await self._toolbox.run(call, emit)


async def confirm(question: Question) -> Answer:
    """Ask the client whose call runs here."""
    return await _asking.get()(question)


async def to_its_end(work: Coroutine[Any, Any, ToolResult]) -> ToolResult:
    """Await the work. Cancelled, it is told once and waited for: a program that it runs has its time to end."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):  # the SDK's scope would cancel again, and again
            await asyncio.wait((task,))
        raise
    return task.result()


def tool_of(spec: ToolSpec) -> types.Tool:
    """Return a tool as clients are told of it."""
    is_read = spec.effect == "read"
    is_closed = spec.name in NAMES and spec.effect != "execute"
    return types.Tool(
        name=spec.name,
        title=spec.name.replace("_", " ").capitalize(),
        description=spec.description,
        input_schema=msgspec.json.decode(spec.parameters),
        annotations=types.ToolAnnotations(
            read_only_hint=is_read, destructive_hint=not is_read, open_world_hint=not is_closed
        ),
    )


def result_of(result: ToolResult) -> types.CallToolResult:
    """Return the result of a call as clients read it; of a refused one with what would allow it."""
    text = advised(result.output, result.remedies, separator=" ")
    images = (
        types.ImageContent(
            type="image", data=b64encode(each.data).decode(), mime_type=each.media_type
        )
        for each in result.images
    )
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text), *images]
    return types.CallToolResult(content=content, is_error=result.is_error)
