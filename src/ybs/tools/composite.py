"""A toolbox made of several: the built-in tools, those of servers and programs, those of a plugin."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

from ybs.core.errors import ToolError
from ybs.core.events import Emit, Noticed
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Toolbox, ToolSpec
from ybs.tools.calls.describing import effect_of
from ybs.tools.calls.supervise import awaited
from ybs.tools.calls.tool_names import unknown

#: How long one of them may take to open.
OPEN_SECONDS = 30.0
CLOSE_SECONDS = 10.0


@runtime_checkable
class HasNames(Protocol):
    """A toolbox that has tools which it does not offer, or knows a tool by other names too."""

    @property
    def names(self) -> Collection[str]:
        """The names of all its tools, offered or not."""
        ...

    def knows(self, name: str) -> bool:
        """Return whether a call of that name is a call of one of its tools."""
        ...


class CompositeToolbox(Toolbox):
    """Several toolboxes as one. Of two tools with one name the first one's is used, and the other one is reported.

    They open side by side; one that does not open in time is reported, and the others are used without it.
    """

    def __init__(self, toolboxes: Sequence[Toolbox]) -> None:
        self._toolboxes = tuple(toolboxes)
        self._emit: Emit | None = None
        self._is_open = False
        self._specs: list[ToolSpec] = []
        self._owners: dict[str, Toolbox] = {}
        #: The notices about names that occur twice, and whether they were emitted.
        self._collisions: dict[str, bool] = {}

    async def open(self, emit: Emit) -> None:
        """Open all of them, and report those that cannot be opened. A second time does nothing."""

        async def open_one(toolbox: Toolbox) -> None:
            try:
                await awaited(lambda: toolbox.open(emit), "opening a toolbox", OPEN_SECONDS)
            except ToolError as error:
                emit(Noticed(level="warning", text=f"Some tools cannot be used: {error}"))

        if self._is_open:
            return
        self._emit = emit
        async with asyncio.TaskGroup() as tasks:
            for toolbox in self._toolboxes:
                tasks.create_task(open_one(toolbox))
        self._is_open = True
        self.specs()

    async def aclose(self) -> None:
        """Close all of them, the last one first. One that fails does not keep the others from it."""
        self._emit, self._is_open = None, False
        for toolbox in reversed(self._toolboxes):
            try:
                await awaited(toolbox.aclose, "closing a toolbox", CLOSE_SECONDS)
            except ToolError:
                continue  # it is logged, and there is nobody left who could use it

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools of all, in their order; the same list as long as none of them changes its own."""
        specs: list[ToolSpec] = []
        owners: dict[str, Toolbox] = {}
        for toolbox in self._toolboxes:
            offered = toolbox.specs()
            for spec in offered:
                if spec.name in owners:
                    self._report(spec.name)
                else:
                    specs.append(spec)
                    owners[spec.name] = toolbox
            if isinstance(toolbox, HasNames):
                for name in toolbox.names:
                    owners.setdefault(name, toolbox)
        self._owners = owners
        if specs != self._specs:
            self._specs = specs
        self._tell()
        return self._specs

    def effect_of(self, name: str) -> str:
        """Return the effect of the tool that a call of this name means, offered or not; empty where there is none."""
        return effect_of(name, [] if (owner := self._owner(name)) is None else [owner])

    def is_read_only(self, call: ToolCall) -> bool:
        """Return the result of the tool's toolbox."""
        owner = self._owner(call.name)
        return owner is not None and owner.is_read_only(call)

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        """Let the toolbox of the tool run the call."""
        owner = self._owner(call.name)
        if owner is not None:
            return await owner.run(call, emit)
        text = unknown(call.name, self._owners)
        return ToolResult(call_id=call.id, name=call.name, output=text, is_error=True)

    def _owner(self, name: str) -> Toolbox | None:
        """Return the toolbox that has the tool, by this name or by another one that it knows the tool by."""
        if not self._owners:
            self.specs()
        if (owner := self._owners.get(name)) is not None:
            return owner
        knowing = (box for box in self._toolboxes if isinstance(box, HasNames) and box.knows(name))
        return next(knowing, None)

    def _report(self, name: str) -> None:
        text = (
            f"There are two tools called {name}: the first one is used, and the other one is not. "
            "Rename one of them to use both."
        )
        self._collisions.setdefault(text, False)

    def _tell(self) -> None:
        """Emit the notices that were not emitted yet, once there is somebody to emit them to."""
        if self._emit is None:
            return
        for text, is_told in self._collisions.items():
            if not is_told:
                self._emit(Noticed(level="warning", text=text))
                self._collisions[text] = True
