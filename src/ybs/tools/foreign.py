"""A toolbox of somebody else, behind the checks that the calls of built-in tools pass."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from ybs.core.errors import Refused, ToolError
from ybs.core.events import Emit, Event, Noticed, ToolPrinted
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Effect, Toolbox, ToolOutput, ToolSpec
from ybs.tools.calls.live import LiveOutput
from ybs.tools.calls.supervise import checked
from ybs.tools.toolbox import LocalToolbox


class BehindChecks(Toolbox):
    """A toolbox that offers its tools by `local`, which runs their calls; subclasses define the tools."""

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


class BoxedTool:
    """One tool of a toolbox of somebody else."""

    def __init__(self, spec: ToolSpec, toolbox: Toolbox, tell: Emit) -> None:
        self.name, self.description = spec.name, spec.description
        self.parameters = spec.parameters
        self.effect: Effect = spec.effect
        self._toolbox, self._tell = toolbox, tell

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        """Have the toolbox run the call. Raises Refused where it says that it refused."""

        def emit(event: Event) -> None:
            match event:
                case ToolPrinted():
                    print_live(event.text)
                case Noticed():
                    self._tell(event)
                case _:  # whatever else happens in a session is not for a tool to say
                    pass

        # The events of sub-agents name the call that started them.
        call_id = print_live.call_id if isinstance(print_live, LiveOutput) else "call"
        call = ToolCall(id=call_id, name=self.name, arguments=Raw(msgspec.json.encode(arguments)))
        result = await self._toolbox.run(call, emit)
        if result.is_refused:
            raise Refused(result.output)
        return ToolOutput(
            output=result.output,
            summary=result.summary,
            display=result.display,
            images=result.images,
            changes=result.changes,
            is_error=result.is_error,
        )


class ForeignToolbox(BehindChecks):
    """A toolbox of somebody else. Each of its calls is checked, confirmed, limited and cut as one of a built-in tool is.

    What the tools may do is taken from their specs. `local` is empty and runs the calls.
    """

    def __init__(self, toolbox: Toolbox, local: LocalToolbox) -> None:
        super().__init__(local)
        self._toolbox = toolbox
        self._emit: Emit | None = None
        self._offered: Sequence[ToolSpec] = ()
        self._is_open = self._has_begun = False

    async def open(self, emit: Emit) -> None:
        """Open the toolbox, unless it is open. Raises what that raises."""
        self._emit = emit
        await self._local.open(emit)
        if not self._is_open:
            self._has_begun = True
            await self._toolbox.open(emit)
            self._is_open = True
        self.specs()

    async def aclose(self) -> None:
        """Close the toolbox, also where opening it failed."""
        self._emit, self._is_open = None, False
        if self._has_begun:
            self._has_begun = False
            await self._toolbox.aclose()

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools that it offers at this moment, without those that cannot be used; none before it is open."""
        offered: Sequence[ToolSpec] = ()
        if self._is_open:
            try:
                offered = checked(lambda: tuple(self._toolbox.specs()), "listing the tools")
            except ToolError as error:
                self._tell(Noticed(level="warning", text=f"Some tools cannot be used: {error}"))
        if offered != self._offered:
            self._offered = offered
            tools = [BoxedTool(spec, self._toolbox, self._tell) for spec in offered]
            self._local.offer((), foreign=tools)
        return self._local.specs()

    def _tell(self, event: Event) -> None:
        if self._emit is not None:
            self._emit(event)
