"""Programs that tests connect to through the SDK, which takes a second to load."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp_servers import entry_of
from ybs.security.sandbox.launch import Launch
from ybs.tools.mcp.link import McpLink, ProcessTransport, connected
from ybs.tools.shell.orphans import CommandMark
from ybs.tools.shell.watch import Watch


@asynccontextmanager
async def running(
    folder: Path, more: str = "", seconds: float = 20.0
) -> AsyncGenerator[tuple[McpLink, ProcessTransport]]:
    """Start a server and connect to it."""
    entry = entry_of(folder, more)

    def start() -> tuple[Launch, CommandMark]:
        mark = CommandMark.new()
        environ = mark.put_on({"PATH": os.environ["PATH"], "MARKER": str(folder)})
        return Launch((entry["command"], *entry["args"]), environ), mark

    watch = Watch("ybs-test")
    try:
        transport = ProcessTransport(start, watch)
        async with connected(transport, seconds=seconds, elicit=None, changed=_nothing) as link:
            yield link, transport
    finally:
        watch.close()


def _nothing(*_: Any) -> None:
    pass
