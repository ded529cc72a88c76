"""Many tools without their schemas in every request: a model finds the ones that it needs, and then they are offered.

The names of all of them are told. What was found stands behind the rest, so that the beginning of a request changes as rarely as can be.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from ybs.core.events import Emit
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Toolbox, ToolSpec
from ybs.tools.composite import CompositeToolbox, HasNames
from ybs.tools.listing import fitting, names_within

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
            query = msgspec.json.decode(call.arguments, type=_Query).query
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
