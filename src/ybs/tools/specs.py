"""What models are told of a tool: the whole of it, or the short form for small models."""

from typing import Protocol, runtime_checkable

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ybs.core.ports import Tool, ToolSpec


@runtime_checkable
class Short(Protocol):
    """A tool with a short form for small models."""

    @property
    def short_description(self) -> str:
        """What a small model is told."""
        ...

    @property
    def rare(self) -> frozenset[str]:
        """The arguments that a small model does not hear of."""
        ...


def spec(tool: Tool) -> ToolSpec:
    """Return all that a tool says of itself."""
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        effect=tool.effect,
    )


def short_spec(tool: Tool) -> ToolSpec:
    """Return the short form: the first line of the prompt, and arguments by name and type only."""
    if not isinstance(tool, Short):
        return spec(tool)
    schema = msgspec.json.decode(tool.parameters)
    properties = {
        name: {key: value for key, value in line.items() if key not in ("description", "default")}
        for name, line in schema["properties"].items()
        if name not in tool.rare
    }
    kept = {**schema, "properties": properties}
    parameters = Raw(msgspec.json.encode(kept))
    return replace(spec(tool), description=tool.short_description, parameters=parameters)
