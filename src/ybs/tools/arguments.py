"""A call's arguments, decoded into the tool's own Struct: strictly first, then as models really write them."""

from typing import Any

import msgspec
from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.core.ports import Tool, schema_of

#: Other names for an argument, used where the tool has the one and not the other.
OTHER_NAMES = {
    "working_directory": "working_dir",
    "cwd": "working_dir",
    "timeout_seconds": "timeout",
    "file_path": "path",
    "filename": "path",
    "directory": "path",
    "old_string": "old_text",
    "new_string": "new_text",
    "cmd": "command",
    "glob": "file_pattern",
    "query": "pattern",
}


class Decoded(Struct, frozen=True):
    """The arguments, and remarks for the model about how they were read."""

    value: Any
    notes: tuple[str, ...] = ()


def decode(tool: Tool, call: ToolCall) -> Decoded:
    """Decode the call's arguments for the tool. Raises ToolError that says what was expected."""
    notes: list[str] = []
    given = _object_of(tool, call, notes)
    fields = set(tool.arguments.__struct_encode_fields__)
    for name in [name for name in given if name not in fields]:
        value = given.pop(name)
        meant = OTHER_NAMES.get(name, "")
        if meant in fields and meant not in given:
            given[meant] = value
        else:
            notes.append(f"{name!r} is no argument of {tool.name} and was ignored")
    return Decoded(_converted(tool, given, notes), tuple(notes))


def _object_of(tool: Tool, call: ToolCall, notes: list[str]) -> dict[str, Any]:
    given: Any = (
        _repaired(tool, call.invalid) if call.invalid else msgspec.json.decode(call.arguments)
    )
    if call.invalid:
        notes.append("the arguments were not valid JSON and were repaired")
    if isinstance(given, str):  # JSON within a string
        try:
            given = msgspec.json.decode(given)
        except msgspec.DecodeError:
            given = None
    if not isinstance(given, dict):
        raise ToolError(f"The arguments of {tool.name} must be one JSON object: {_schema(tool)}")
    return {str(name): value for name, value in given.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any JSON


def _repaired(tool: Tool, text: str) -> Any:
    """Repair broken JSON. What could be cut off is only completed for tools that read."""
    if tool.effect != "read" and not _is_complete(text):
        raise ToolError(
            f"The arguments of {tool.name} were cut off or are no JSON; nothing was done. Send the call "
            f"again, whole; if it is very long, do it in smaller steps. Expected: {_schema(tool)}"
        )
    from json_repair import loads  # slow to load, and rarely needed

    return loads(text)


def _is_complete(text: str) -> bool:
    """Tell whether the text ends outside of any string, object or list."""
    depth, in_string, is_escaped = 0, False, False
    for character in text:
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = in_string
        elif character == '"':
            in_string = not in_string
        elif not in_string:
            depth += (character in "{[") - (character in "}]")
    return depth <= 0 and not in_string and "}" in text


def _converted(tool: Tool, given: dict[str, Any], notes: list[str]) -> Any:
    stated = {name: value for name, value in given.items() if value is not None}
    try:
        return msgspec.convert(stated, tool.arguments)
    except msgspec.ValidationError:
        pass  # models write numbers and booleans as text
    try:
        value = msgspec.convert(stated, tool.arguments, strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(
            f"The arguments of {tool.name} do not fit: {error}. Expected: {_expected(tool, str(error))}"
        ) from error
    notes.append("some arguments had another type than the schema's and were converted")
    return value


def _expected(tool: Tool, problem: str) -> str:
    """Return the part of the schema that the problem is about: one argument's line, or all of it."""
    properties: dict[str, Any] = msgspec.json.decode(schema_of(tool.arguments))["properties"]
    for name, line in properties.items():
        if f"$.{name}`" in problem or f"field `{name}`" in problem:
            return f"{name}: {msgspec.json.encode(line).decode()}"
    return _schema(tool)


def _schema(tool: Tool) -> str:
    return bytes(schema_of(tool.arguments)).decode()
