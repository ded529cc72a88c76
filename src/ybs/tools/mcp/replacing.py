"""Built-in tools whose work a server does: the model, the questions, the path rules and the checkpoints stay those of the built-in tool.

A server's tool stands in only where it takes what the built-in one takes: that is checked as soon as it is known what it takes.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from ybs.core.cutting import shortened
from ybs.core.decoding import from_json
from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.firewall.restore import EDITING
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.mcp.connection import Connection
from ybs.tools.mcp.listed import ListedTool
from ybs.tools.mcp.settings import Server
from ybs.tools.toolbox import Previewed

#: What a name stands for that means several tools.
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "fs": ("read_file", "write_file", "edit_file", "delete_file", "list_files", "search_files"),
}
REPLACEABLE: Final = frozenset(name for names in GROUPS.values() for name in names)


class _Schema(Struct, frozen=True):
    properties: dict[str, Any] = {}
    required: list[str] = []


def wanted(server: Server) -> tuple[dict[str, str], list[str]]:
    """Return the built-in tools that a server is to replace, with the names of its own, and what cannot be replaced."""
    said = server.replace_default
    names = [said] if isinstance(said, str) else [*said]
    pairs = dict(said) if isinstance(said, dict) else {}
    found = {one: pairs.get(name, one) for name in names for one in GROUPS.get(name, (name,))}
    problems = [
        f"The MCP server {server.name} cannot replace {shortened(name, 60)!r}: only {', '.join(sorted(REPLACEABLE))} can be, or fs for all of them."
        for name in found
        if name not in REPLACEABLE
    ]
    is_closed = server.transport == "stdio" and server.is_held and not server.network
    if opened := [] if is_closed else [name for name in found if name in EDITING]:
        problems.append(
            f"The MCP server {server.name} does not replace {', '.join(opened)}, because it has the network: "
            "a secret of a file that is edited would go to it. Take the network from it."
        )
    left = REPLACEABLE.difference(opened)
    return {own: theirs for own, theirs in found.items() if own in left}, problems


def unfit(own: Raw, theirs: Raw) -> str:
    """Return why a tool with these parameters cannot stand in for one with those; nothing where it can."""
    ours, other = (from_json(schema, _Schema) for schema in (own, theirs))
    if lacking := [name for name in ours.required if name not in other.properties]:
        return f"it does not take {', '.join(lacking)}"
    if more := [name for name in other.required if name not in ours.properties]:
        return f"it needs {', '.join(more)} as well"
    for name, said in ours.properties.items():
        kinds = (each.get("type") for each in (said, other.properties.get(name, said)))
        kind, wants = kinds
        if isinstance(kind, str) and isinstance(wants, str) and kind != wants:
            return f"its {name} is {wants}, not {kind}"
    return ""


class ReplacedTool:
    """A built-in tool whose work a server does, if the server's tool fits; where it does not, the built-in one does it."""

    def __init__(self, own: BuiltInTool, connection: Connection, name: str) -> None:
        self._own, self._connection, self._name = own, connection, name
        self.name, self.arguments = own.name, own.arguments
        self.effect: Effect = own.effect
        self.rare = own.rare
        self.description, self.short_description = own.description, own.short_description
        self.parameters: Raw = own.parameters
        self.subject = own.subject
        self.longest_seconds = connection.server.start_seconds + connection.server.timeout_seconds
        if isinstance(own, Previewed):
            self.preview = self._preview

    @property
    def problem(self) -> str:
        """Why the server's tool is not used, as a sentence; nothing where it is, or where nobody knows it yet."""
        server = self._connection.server.name
        if self._connection.state in ("new", "starting", "off", "failed"):
            return ""
        listed = self._listed
        why = "it has no such tool" if listed is None else unfit(self.parameters, listed.parameters)
        if not why:
            return ""
        return f"The MCP server {server} does not replace {self.name} by its {self._name}: {why}."

    @property
    def _listed(self) -> ListedTool | None:
        tools = self._connection.offer.tools
        return next((tool for tool in tools if tool.name == self._name), None)

    def _preview(self, arguments: Any) -> Preview:
        assert isinstance(self._own, Previewed)  # noqa: S101 - it was looked at
        shown = self._own.preview(arguments)
        server = self._connection.server.name
        return msgspec.structs.replace(shown, title=f"{shown.title} (by the MCP server {server})")

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        """Have the server do it. Raises ToolError, also where the server does not run: then nobody else does it either."""
        await self._connection.link()
        listed = self._listed
        changed = any(new.name == self._name for _, new in self._connection.reviewed.changed)
        if changed:
            raise ToolError(
                f"{self.name} is replaced by {self._name} of the MCP server {self._connection.server.name}, whose description "
                "has changed since it was approved."
            )
        if listed is None or unfit(self.parameters, listed.parameters):
            return await self._own_run(arguments, print_live)
        given, left = self._given(arguments, listed)
        output = await self._connection.call(listed, given, print_live)
        if left:
            note = f"\n[note: {self._connection.server.name} does not know {', '.join(left)}]"
            output = msgspec.structs.replace(output, output=output.output + note)
        return output

    async def _own_run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        run: Any = getattr(self._own, "run", None)
        if run is None:
            raise ToolError(f"{self.name} cannot be run")
        return await run(arguments, print_live)

    def _given(self, arguments: Any, listed: ListedTool) -> tuple[dict[str, Any], list[str]]:
        """Return the arguments that differ from what is usual, with whole paths, and those that the server does not know."""
        known = from_json(listed.parameters, _Schema).properties
        given: dict[str, Any] = {}
        left: list[str] = []
        for field in msgspec.structs.fields(arguments):
            value = getattr(arguments, field.name)
            if field.name == "path":
                value = str(self._own.target(arguments)[0])
            elif value == field.default:
                continue
            if field.name in known:
                given[field.name] = value
            else:
                left.append(field.name)
        return given, left
