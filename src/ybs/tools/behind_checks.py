"""Toolboxes whose calls are run by an empty `LocalToolbox`, so that they pass the checks of every call."""

from collections.abc import Collection

from ybs.core.events import Emit
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Toolbox
from ybs.tools.toolbox import LocalToolbox


class BehindChecks(Toolbox):
    """A toolbox that offers its tools by `local`, which runs their calls; who derives from it says what is offered."""

    def __init__(self, local: LocalToolbox) -> None:
        self._local = local

    @property
    def names(self) -> Collection[str]:
        """The names of its tools."""
        return self._local.names

    def knows(self, name: str) -> bool:
        """Return whether a call of that name is a call of one of its tools."""
        return self._local.knows(name)

    def is_read_only(self, call: ToolCall) -> bool:
        """Return whether the call changes nothing."""
        return self._local.is_read_only(call)

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        """Run one call."""
        return await self._local.run(call, emit)
