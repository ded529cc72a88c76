"""MCP servers at an address, on loopback: real ones of the SDK, and ones that answer what a test says."""

import asyncio
import json
import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from socket import SO_REUSEADDR, SOL_SOCKET, socket
from ssl import SSLContext
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from hosts import this_host
from ybs.config.host import Host
from ybs.config.sections import Network
from ybs.core.events import Noticed
from ybs.security.paths.roots import Roots
from ybs.security.policy.confirm import nobody
from ybs.tools.mcp.connection import Connection
from ybs.tools.mcp.servers import Servers, Surface
from ybs.tools.workspace import Workspace

App = Callable[[Any, Any, Any], Awaitable[None]]
HELD: list[str] = []


class Request:
    """What a server was asked, with the names of headers in lower case."""

    def __init__(self, scope: Any, body: bytes) -> None:
        self.method, self.path = scope["method"], scope["path"]
        self.headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.query = scope["query_string"].decode()
        self.body = body

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.body) if self.body else {}


class Answer:
    """What a server answers: a body, or pieces of one that never ends."""

    def __init__(
        self,
        status: int = 200,
        body: Any = b"",
        kind: str = "application/json",
        pieces: AsyncIterator[bytes] | None = None,
        **headers: str,
    ) -> None:
        self.status, self.pieces = status, pieces
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.headers = {"content-type": kind, **headers}


def scripted(answer: Callable[[Request], Awaitable[Answer] | Answer]) -> App:
    """Return an app that answers what a function says; what that returns may have to be waited for."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        said = answer(Request(scope, body))
        got = said if isinstance(said, Answer) else await said
        headers = [
            (name.replace("_", "-").encode(), each.encode()) for name, each in got.headers.items()
        ]
        await send({"type": "http.response.start", "status": got.status, "headers": headers})
        if got.pieces is not None:
            gone = asyncio.ensure_future(receive())  # it returns when the other side is gone
            async for piece in got.pieces:
                if gone.done():
                    break
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            gone.cancel()
        await send({"type": "http.response.body", "body": got.body})

    return app


def protocol(more: Callable[[Request], Any] = lambda _: None) -> App:
    """Return an app that speaks the older protocol; `more` answers what it wants to, else None."""

    def answer(request: Request) -> Any:
        if (own := more(request)) is not None:
            return own
        if request.method != "POST":
            return Answer(405)
        asked = request.json
        if "id" not in asked:
            return Answer(202)
        return message(asked, RESULTS.get(asked["method"]))

    return scripted(answer)


def message(asked: Any, result: Any, session: str = "") -> Answer:
    """Return the answer to a message."""
    error = {"error": {"code": -32601, "message": "unknown"}}
    said = error if result is None else {"result": result}
    body = {"jsonrpc": "2.0", "id": asked["id"], **said}
    return Answer(200, body, mcp_session_id=session) if session else Answer(200, body)


RESULTS: Mapping[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "t", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}


def _given(certificates: SSLContext) -> Callable[[Any, Any], SSLContext]:
    return lambda _config, _default: certificates


class _Quiet(uvicorn.Server):
    """Leaves the signals of the process alone."""

    def capture_signals(self) -> Any:
        return nullcontext()


@asynccontextmanager
async def served(
    app: App, port: int = 0, certificates: SSLContext | None = None
) -> AsyncGenerator[str]:
    """Run an app on loopback and give its address, with `/mcp` at its end."""
    listening = socket()
    listening.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    more: Any = {}
    if certificates is not None:
        more["ssl_context_factory"] = _given(certificates)
    config = uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=0, **more)
    server = _Quiet(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not task.done():  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.001)
    try:
        yield f"http{'s' * (certificates is not None)}://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await task
        listening.close()


class Held:
    """Servers of a session, of which a test uses one."""

    def __init__(self, servers: Servers, hidden: list[str]) -> None:
        self.servers, self.hidden = servers, hidden
        self.news: list[Noticed] = []
        servers.listen(self.news.append)

    @property
    def said(self) -> list[str]:
        """What the person was told."""
        return [each.text for each in self.news]

    @property
    def one(self) -> Connection:
        """The server."""
        return next(iter(self.servers.connections.values()))

    async def call(self, name: str, **arguments: Any) -> str:
        """Return what a tool answers."""
        await self.one.settled()
        tool = next(each for each in self.one.offer.tools if each.name == name)
        return (await self.one.call(tool, arguments, HELD.append)).output


@asynccontextmanager
async def connected(
    folder: Path,
    url: str,
    *,
    host: Host | None = None,
    network: Network | None = None,
    **settings: Any,
) -> AsyncGenerator[Held]:
    """Have a server at an address as a session has it, until the block ends."""

    def never(*_: Any) -> Any:
        raise AssertionError

    hidden = list[str]()
    surface = Surface(
        network=network or Network(),
        start=never,
        is_off=lambda: False,
        holds=lambda: False,
        confirm=lambda: nobody,
        hide=hidden.extend,
    )
    workspace = Workspace(Roots(host or this_host(), folder))
    servers = Servers({"demo": {"url": url, **settings}}, workspace, surface, None)
    try:
        yield Held(servers, hidden)
    finally:
        await servers.aclose()


def _note() -> str:
    return "the note"


def review(what: str) -> str:
    """Review."""
    return f"Review {what}."


@contextmanager
def quiet_root() -> Generator[None]:
    """Keep the SDK from giving the root logger of this process a handler that writes to the terminal: it has one."""
    logging.root.addHandler(quiet := logging.NullHandler())
    try:
        yield
    finally:
        logging.root.removeHandler(quiet)


def real_server() -> MCPServer[Any]:
    """Return a server of the SDK with one of each kind."""
    with quiet_root():
        server = MCPServer("real", instructions="Use it.")

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @server.tool()
    async def work(context: Context) -> str:
        """Report on the way."""
        await context.report_progress(1, 2, "half")
        await context.report_progress(2, 2, "all")
        return "worked"

    @server.tool()
    async def grow(context: Context) -> str:
        """Get another tool."""

        def grown() -> str:
            return "grown"

        server.add_tool(grown, name="grown", description="New.")
        await context.notify_tools_changed()
        if (context.protocol_version or "") < "2026":
            await context.session.send_tool_list_changed()
        return "there is more"

    @server.tool()
    async def headers(context: Context) -> dict[str, str]:
        """Show what came."""
        return dict(context.headers or {})

    server.resource("notes://one")(_note)
    server.prompt()(review)
    return server


def older(app: App, refused: Sequence[str] = ("server/discover",)) -> App:
    """Return an app that knows the older protocol only."""

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        got = await receive()
        if json.loads(got["body"] or b"{}").get("method") in refused:
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"Bad Request"})
            return
        handed: list[Any] = [got]

        async def again() -> Any:
            return handed.pop() if handed else await receive()

        await app(scope, again, send)

    return outer
