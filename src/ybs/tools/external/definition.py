"""The definition of an external tool: from `--schema`, from a file beside it, or from the settings.

The parameters are a JSON Schema, or the short flat form `{"query": {"type": "string", "required": true}}`.
"""

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from ybs.config.schema import ExternalToolSettings, ToolNeeds
from ybs.config.tree import is_object
from ybs.core.decoding import from_json
from ybs.tools.parameters import fitting

#: A schema of a tool is sent with every request.
MOST_BYTES = 16_000
_MOST_DESCRIPTION = 1_000
#: What stands at the top of a JSON Schema, and hardly is the name of an argument.
_SCHEMA = ("properties", "$ref", "$schema", "additionalProperties")

InputForm: TypeAlias = Literal["stdin", "argv"]


class BadDefinition(Exception):
    """What a program says of itself is of no use; the text says why."""


class Definition(Struct, frozen=True, kw_only=True):
    """What is known of a tool before it is called. `input` is how it takes its arguments; 0 seconds mean as shipped."""

    name: str
    description: str
    parameters: Raw
    needs: ToolNeeds = ToolNeeds()
    input: InputForm = "stdin"
    timeout_seconds: int = 0
    #: Where it starts (`security/own_programs.py`).
    cwd: str = ""
    #: It is a project's, and the question about trust did not show its name and what it needs.
    is_unshown: bool = False


class _Said(Struct, frozen=True, kw_only=True):
    """The JSON object; what else stands in it does not matter."""

    name: str = ""
    description: str = ""
    parameters: dict[str, Any] = {}
    needs: ToolNeeds = ToolNeeds()
    input: InputForm | None = None
    timeout_seconds: int = 0
    cwd: str = ""


def defined(text: bytes, *, name: str, usual: InputForm) -> Definition:
    """Read what a program or the file beside it says. `name` and `usual` stand in for what it does not say.

    Raises BadDefinition.
    """
    if len(text) > MOST_BYTES:
        raise BadDefinition(f"its description is longer than {MOST_BYTES:,} bytes")
    try:
        said = from_json(text, _Said)
    except msgspec.ValidationError as error:
        raise BadDefinition(f"its description does not fit: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDefinition("its description is not a JSON object") from error
    return Definition(
        name=said.name or name,
        description=_cleaned(said.description),
        parameters=schema_of_parameters(said.parameters),
        needs=said.needs,
        input=said.input or usual,
        timeout_seconds=max(said.timeout_seconds, 0),
        cwd=said.cwd,
    )


def from_settings(entry: ExternalToolSettings, described: Definition | None) -> Definition:
    """Return the definition in an entry of `tools.external`; missing parts come from the program's own description."""
    own = described or Definition(
        name=entry.name, description="", parameters=Raw(b""), input="argv"
    )
    has_own = bool(entry.parameters) or described is None
    return Definition(
        name=entry.name,
        description=_cleaned(entry.description) or own.description,
        parameters=schema_of_parameters(entry.parameters) if has_own else own.parameters,
        needs=entry.needs if entry.needs != ToolNeeds() else own.needs,
        input=entry.input or own.input,
        timeout_seconds=entry.timeout_seconds or own.timeout_seconds,
        cwd=entry.cwd or own.cwd,
    )


def schema_of_parameters(parameters: dict[str, Any]) -> Raw:
    """Return the JSON Schema of parameters in either form. Raises BadDefinition."""
    is_schema = isinstance(parameters.get("type"), str) or not parameters.keys().isdisjoint(_SCHEMA)
    if not is_schema:
        parameters = _from_flat(parameters)
    return Raw(msgspec.json.encode({**fitting(parameters), "type": "object"}))


def _from_flat(parameters: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, described in parameters.items():
        if not is_object(described):
            raise BadDefinition(f"the parameter {name!r} is not described by an object")
        properties[name] = {key: value for key, value in described.items() if key != "required"}
        required += [name] if described.get("required") is True else []
    return {"properties": properties, **({"required": required} if required else {})}


def _cleaned(description: str) -> str:
    """Return a description without control characters, and not longer than anybody needs."""
    text = description.strip()
    if not text.isprintable():
        text = "".join(each if each.isprintable() else " " for each in text)
    return text if len(text) <= _MOST_DESCRIPTION else text[: _MOST_DESCRIPTION - 1] + "…"
