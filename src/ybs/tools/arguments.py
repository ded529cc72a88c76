"""A call's arguments, decoded into the tool's own Struct: strictly first, then as models really write them."""

import re
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


_LONGEST_NAME = 60  # of a wrong argument, as it is repeated to the model
_MOST_NOTES = 5
#: Outside of strings: a comma before a closing bracket, or one of Python's words.
_SLIP = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])|\b(?:True|False|None)\b', re.DOTALL)
_MEANT = {",": "", "True": "true", "False": "false", "None": "null"}
_PART_OF_JSON = re.compile(r"[\"'{}\[\]\\]")


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
            notes.append(f"{_short(name)!r} is no argument of {tool.name} and was ignored")
    if len(notes) > _MOST_NOTES:
        notes[_MOST_NOTES:] = [f"{len(notes) - _MOST_NOTES:,} more were ignored"]
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
    """Repair broken JSON. For a tool that does more than read only where nothing is guessed."""
    if tool.effect == "read":
        from json_repair import loads  # slow to load, and rarely needed

        return loads(text)
    try:
        return _without_loss(text)
    except ValueError as error:
        raise ToolError(
            f"The arguments of {tool.name} were cut off or are no JSON; nothing was done. Send the call "
            f"again, whole; if it is very long, do it in smaller steps. Expected: {_schema(tool)}"
        ) from error


def _without_loss(text: str) -> Any:
    """Read one JSON object with slips that leave no doubt about its meaning. Raises ValueError.

    They are raw line ends and tabs in strings, a comma too many, Python's words, and words or a code fence
    around the object.
    """
    from json import JSONDecoder  # rarely needed

    start = text.find("{")
    before, rest = text[: max(start, 0)], text[max(start, 0) :]
    mended = _SLIP.sub(lambda found: _MEANT.get(found[0], found[0]), rest)
    decoder = JSONDecoder(strict=False, object_pairs_hook=_without_repetition)
    given, end = decoder.raw_decode(mended)
    if _PART_OF_JSON.search(before) or _PART_OF_JSON.search(mended[end:]):
        raise ValueError("there is more JSON around the object, so a quote may be missing inside")
    msgspec.json.encode(given)  # half characters are no text: a ValueError
    return given


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    given = dict(pairs)
    if len(given) < len(pairs):
        raise ValueError("a name occurs twice")
    return given


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."


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
