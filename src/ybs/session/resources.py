"""Resources of MCP servers in the person's words: `@SERVER:ADDRESS`."""

from collections.abc import Sequence

from ybs.core.ports import ToolOutput
from ybs.session.mentions import MOST_MENTIONS, Mention, Reading
from ybs.tools.mcp.servers import Servers


class ServerResources:
    """Finds the resources that words name, and reads them."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    @property
    def servers(self) -> Sequence[str]:
        """The names of the servers that are switched on."""
        connections = self._servers.connections.items()
        return [name for name, each in connections if each.state != "off"]

    def named_in(self, mentions: Sequence[Mention]) -> list[tuple[str, str]]:
        """Return server and address of each, once."""
        found = (self._named(each.readings) for each in mentions if not each.is_confined)
        return list(dict.fromkeys(each for each in found if each))[:MOST_MENTIONS]

    def _named(self, readings: Sequence[Reading]) -> tuple[str, str] | None:
        """Return what a mention means: a resource that is known, or else the shortest way to read it."""
        meant = None
        for reading in readings:
            name, _, uri = reading.path.partition(":")
            connection = self._servers.connections.get(name)
            if connection is None or not uri or connection.state == "off":
                continue
            meant = name, uri
            if any(resource.uri == uri for resource in connection.offer.resources):
                break
        return meant

    async def read(self, server: str, uri: str) -> ToolOutput:
        """Read one. Raises ToolError."""
        link = await self._servers.connections[server].link()
        return await link.read(uri)
