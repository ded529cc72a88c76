"""Servers that tests make: connections without the SDK, and programs that speak the protocol by hand."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ybs.core.errors import ToolError
from ybs.core.ports import ToolOutput
from ybs.tools.mcp.connection import Connection
from ybs.tools.mcp.listed import ListedTool, ServerOffer, listed
from ybs.tools.mcp.pins import Pins
from ybs.tools.mcp.settings import Server, server_of

#: A whole server in a few lines: what a request is answered with stands in `ANSWERS`, Python code that gets `method` and `params`.
PROGRAM = """
import json, os, sys, time
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n"); sys.stdout.flush()
def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "t", "version": "1"}}
    if method == "tools/list":
        return {"tools": tools()}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {})
def tools():
    return [{"name": "echo", "description": "Echo.", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]
def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}
def call(name, given):
    return text(given.get("text", ""))
# more
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and "method" in asked:
        result = answer(asked["method"], asked.get("params") or {})
        if result is None:
            send(id=asked["id"], error={"code": -32601, "message": "unknown"})
        else:
            send(id=asked["id"], result=result)
"""


def entry_of(folder: Path, more: str = "", **settings: Any) -> dict[str, Any]:
    """Write a server into a folder and return its entry; `more` is code that changes what it does."""
    program = folder / "server.py"
    program.write_text(PROGRAM.replace("# more", more))
    return {"command": sys.executable, "args": ["-I", str(program)], **settings}


def tool(name: str = "echo", description: str = "Echo.", **schema: Any) -> ListedTool:
    """Return a tool as a server lists it."""
    return listed(name, description, {"type": "object", **schema}, is_reading=False)


class FakeLink:
    """A connection that answers from memory."""

    version, is_modern = "2025-11-25", False

    def __init__(self, *tools: ListedTool) -> None:
        self.offered = ServerOffer(tools=tools)
        self.calls: list[tuple[str, Any]] = []
        self.dies = False
        self.lost, self.why = asyncio.Event(), ""

    @property
    def link(self) -> Any:
        return self

    async def offer(self) -> tuple[ServerOffer, Sequence[str]]:
        return self.offered, ()

    async def call(
        self, name: str, arguments: Any, print_live: Callable[[str], None]
    ) -> ToolOutput:
        print_live("working\n")
        self.calls.append((name, arguments))
        if self.dies:
            self.die("it ended with exit code 3")
            await asyncio.sleep(0)
            raise ToolError("The server failed: the connection was closed.")
        return ToolOutput(output=f"{name} {arguments}", summary="done")

    def die(self, why: str) -> None:
        self.why = why
        self.lost.set()


class Scene:
    """A connection whose other side a test plays: each start takes the next of `links`, or raises what stands there."""

    def __init__(self, *links: Any, pins: Pins, **settings: Any) -> None:
        self.links = list(links)
        self.said: list[str] = []
        self.ends = asyncio.Event()  # the other side ends only when this is set
        self.ends.set()
        self.changed: Callable[[], None] = lambda: None
        self.server: Server = server_of("demo", {"command": "demo", **settings})
        self.connection = Connection(self.server, self._open, pins, self.said.append)

    @asynccontextmanager
    async def _open(self, _server: Server, changed: Callable[[], None]) -> AsyncGenerator[FakeLink]:
        self.changed = changed
        link = self.links.pop(0)
        if isinstance(link, Exception):
            raise link
        try:
            yield link
        finally:
            await self.ends.wait()
