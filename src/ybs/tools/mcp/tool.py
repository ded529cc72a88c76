"""One tool of an MCP server, as models and the policy have it."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.policy.policy import Subject
from ybs.tools.mcp.connection import Connection
from ybs.tools.mcp.listed import Listed, full_name
from ybs.tools.mcp.settings import given


class McpTool:
    """A tool of a server. Where the sandbox holds the server to it, it only reads; what the server claims counts for nothing."""

    def __init__(
        self, listed: Listed, connection: Connection, *, needs: str, is_reading: bool
    ) -> None:
        self.listed, self._connection = listed, connection
        self._needs, self._is_reading = needs, is_reading
        server = connection.server
        self.name = full_name(server.name, listed.name)
        self.description = listed.description
        self.parameters: Raw = listed.parameters
        self.longest_seconds = server.start_seconds + server.call_seconds + 15.0

    @property
    def source(self) -> str:
        """Where it comes from, for a list."""
        return f"MCP server {self._connection.server.name}"

    @property
    def effect(self) -> Effect:
        """What it may do, by what its server is given."""
        return "read" if self._is_reading else "execute"

    def preview(self, arguments: Any) -> Preview:
        """Show the server, the tool and its arguments."""
        shown = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
        title = f"Call {self.listed.name} of the MCP server {self._connection.server.name}"
        return Preview(title=title, body="" if shown == "{}" else shown)

    def subject(self, arguments: Any) -> Subject:
        """Give what the server is given: "always" stands for every call as long as it is this."""
        del arguments
        needs = self._needs
        asks = f"its server {given(needs)}" if needs else ""
        return Subject(is_alike=True, asks=asks, detail=f"with {needs}" if needs else "")

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        """Have the server run it. Raises ToolError."""
        return await self._connection.call(self.listed, arguments, print_live)
