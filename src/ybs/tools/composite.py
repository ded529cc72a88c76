"""A toolbox made of several: the built-in tools, those of servers and programs, those of a plugin."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final, Protocol, runtime_checkable

import msgspec
from msgspec import Raw, Struct

from ybs.core.decoding import from_json
from ybs.core.errors import ToolError
from ybs.core.events import Emit, Noticed
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Toolbox, ToolSpec
from ybs.tools.calls.describing import effect_of
from ybs.tools.calls.supervise import awaited
from ybs.tools.calls.tool_names import unknown
from ybs.tools.listing import fitting, names_within

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


NAME: Final = "find_tool"
#: Up to this size all are offered as they are: about 1,200 tokens.
MOST_CHARS: Final = 4_800
_MOST_NAMED: Final = 3_000  # characters
_PARAMETERS = Raw(
    b'{"type":"object","properties":{"query":{"type":"string","description":"its name, or what it is to do"}},"required":["query"]}'
)


class _Query(Struct, frozen=True):
    query: str


class DeferredToolbox(Toolbox):
    """Toolboxes of others. Where their tools are more than `most_chars`, only `find_tool` and what it found are offered."""

    def __init__(self, toolboxes: Sequence[Toolbox], *, most_chars: int = MOST_CHARS) -> None:
        self._toolboxes, self._most_chars = toolboxes, most_chars
        self._inner = CompositeToolbox(toolboxes)
        self._found: dict[str, None] = {}
        self._all: Sequence[ToolSpec] = ()
        self._specs: Sequence[ToolSpec] = ()

    async def open(self, emit: Emit) -> None:
        """Open all of them."""
        await self._inner.open(emit)

    async def aclose(self) -> None:
        """Close all of them."""
        await self._inner.aclose()

    def specs(self) -> Sequence[ToolSpec]:
        """Return all tools where they are few, or the way to find them and those that were found."""
        tools = self._inner.specs()
        if tools is not self._all:
            self._all, self._specs = tools, self._offered(tools)
        return self._specs

    def _offered(self, tools: Sequence[ToolSpec]) -> Sequence[ToolSpec]:
        if sum(map(_size, tools)) <= self._most_chars:
            return tools
        by_name = {tool.name: tool for tool in tools}
        return [_finder(by_name), *(by_name[name] for name in self._found if name in by_name)]

    @property
    def names(self) -> Collection[str]:
        """The names of all tools, offered or not."""
        return [spec.name for spec in self._inner.specs()] + [NAME] * self._is_deferring

    @property
    def _is_deferring(self) -> bool:
        return self.specs() is not self._all

    def knows(self, name: str) -> bool:
        """Return whether a call of that name is a call of one of the tools."""
        if name in self.names:
            return True
        return any(isinstance(box, HasNames) and box.knows(name) for box in self._toolboxes)

    def effect_of(self, name: str) -> str:
        """Return the effect of the tool that a call of this name means, offered or not; empty where there is none."""
        return "read" if name == NAME else self._inner.effect_of(name)

    def is_read_only(self, call: ToolCall) -> bool:
        """Return whether the call changes nothing."""
        return call.name == NAME or self._inner.is_read_only(call)

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        """Find tools, or run a call of one."""
        if call.name == NAME and self._is_deferring:
            return self._find(call)
        self._offer([call.name])
        return await self._inner.run(call, emit)

    def _offer(self, names: Sequence[str]) -> None:
        if not self._found.keys() >= set(names):
            self._found.update(dict.fromkeys(names))
            self._all = ()

    def _find(self, call: ToolCall) -> ToolResult:
        try:
            query = from_json(call.arguments, _Query).query
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            text = f"find_tool takes a query: {error}"
            return ToolResult(call_id=call.id, name=NAME, output=text, is_error=True)
        found = fitting(query, self._inner.specs())
        self._offer([spec.name for spec in found])
        lines = [
            f"{spec.name}: {spec.description}\n{bytes(spec.parameters).decode()}" for spec in found
        ]
        text = (
            "\n\n".join(lines) or "No tool fits. Their names stand in the description of find_tool."
        )
        summary = ", ".join(spec.name for spec in found) or "none"
        return ToolResult(call_id=call.id, name=NAME, output=text, summary=summary)


def _size(tool: ToolSpec) -> int:
    return len(tool.name) + len(tool.description) + len(bytes(tool.parameters))


def _finder(tools: Collection[str]) -> ToolSpec:
    return ToolSpec(
        name=NAME,
        description=f"Find more tools, by name or by what they do; then they can be called. There are: {names_within(tools, _MOST_NAMED)}",
        parameters=_PARAMETERS,
        effect="read",
    )
