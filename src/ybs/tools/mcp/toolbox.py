"""The tools of the MCP servers as an agent has them: behind the checks that every call passes."""

from collections.abc import Sequence

from ybs.core.events import Emit
from ybs.core.ports import ToolSpec
from ybs.tools.behind_checks import BehindChecks
from ybs.tools.mcp.listed import Offer
from ybs.tools.mcp.servers import Servers
from ybs.tools.toolbox import LocalToolbox


class McpToolbox(BehindChecks):
    """What the servers offer at this moment. `local` is empty and runs the calls; `is_short` offers them as to a small model."""

    def __init__(self, servers: Servers, local: LocalToolbox, *, is_short: bool = False) -> None:
        super().__init__(local)
        self._servers, self._is_short = servers, is_short
        self._offers: list[Offer] = []

    async def open(self, emit: Emit) -> None:
        """Wait a moment for servers that nobody knows yet; the others are started when they are needed."""
        await self._local.open(emit)
        self._servers.listen(emit)
        await self._servers.known()
        self.specs()

    async def aclose(self) -> None:
        """Tell nobody any more. The servers run as long as the session."""
        self._servers.listen(None)

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools that may be used at this moment."""
        connections = self._servers.connections.values()
        offers = [each.offer for each in connections]
        if len(offers) != len(self._offers) or any(
            new is not old for new, old in zip(offers, self._offers, strict=True)
        ):
            self._offers = offers
            self._servers.check_replaced()
            self._local.offer((), foreign=self._servers.tools(), is_short=self._is_short)
        return self._local.specs()
