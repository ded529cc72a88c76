"""A JSON Schema as a Python type, so that a foreign tool's arguments are checked and converted as a Struct's are.

msgspec then does the work for both, with the same rules and messages, and nothing more is imported: the validators that
there are cost 0.4 (fastjsonschema) to 1.6 (jsonschema) times the import of asyncio, json and argparse, and none of
them converts (ADR 0024).

Understood are `type`, `properties`, `required`, `items`, `additionalProperties`, `enum`, `const`, `anyOf`, `oneOf`, `$ref`
within the schema, and bounds of numbers and lengths. What is not understood is not checked here: `pattern` (an
expression of a stranger's can take forever), `format`, `not`, `if` and the like are for the tool itself to check.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Required, TypedDict, TypeVar, Union, cast

import msgspec
from msgspec import Meta

from ybs.tools.parameters import target

#: A value of the schema may lie so deep; below that anything goes.
_MOST_DEPTH = 12
_SCALARS: Mapping[str, Any] = {"integer": int, "number": float, "boolean": bool, "null": None}
_NUMBER_BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
}
_LENGTHS = {
    "string": {"minLength": "min_length", "maxLength": "max_length"},
    "array": {"minItems": "min_length", "maxItems": "max_length"},
}
_Kind = TypeVar("_Kind")


class SchemaTypes:
    """Makes types of a schema and of what it refers to within itself."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._referred: dict[str, Any] = {}

    def kind(self, schema: Any, depth: int = 0) -> Any:
        """Return the type of the values that fit the schema: `Any` where it says nothing that is understood."""
        if not isinstance(schema, dict) or depth > _MOST_DEPTH:
            return Any
        schema = cast("dict[str, Any]", schema)
        if isinstance(reference := schema.get("$ref"), str):
            return self._kind_of_reference(reference, depth)
        values: Any = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list):
            return _choice(cast("list[Any]", values), schema)
        return self._kind_of_branches(schema, depth)

    def _kind_of_branches(self, schema: dict[str, Any], depth: int) -> Any:
        """Return the type of a schema that is a choice of schemas or of types, or a single type."""
        branches: Any = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(branches, list):
            return self._union(cast("list[Any]", branches), depth)
        types: Any = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(types, list):
            names = cast("list[Any]", types)
            return self._union([{**schema, "type": name} for name in names], depth)
        return self._kind_of_type(types, schema, depth)

    def _kind_of_reference(self, reference: str, depth: int) -> Any:
        if reference not in self._referred:
            self._referred[reference] = Any  # for a schema that refers to itself
            self._referred[reference] = self.kind(target(reference, self._root), depth + 1)
        return self._referred[reference]

    def _union(self, branches: list[Any], depth: int) -> Any:
        kinds = [self.kind(branch, depth + 1) for branch in branches]
        if not kinds or Any in kinds:
            return Any
        return _usable(Union[tuple(kinds)], Any)  # noqa: UP007 - as many types as the schema has

    def _kind_of_type(self, name: Any, schema: dict[str, Any], depth: int) -> Any:
        match name:
            case "object":
                return self._object(schema, depth)
            case "array":
                items = self.kind(schema.get("items"), depth + 1)
                return _bounded(list[items], schema, _LENGTHS[name])
            case "string":
                return _bounded(str, schema, _LENGTHS[name])
            case "integer" | "number":
                return _bounded(_SCALARS[name], schema, _NUMBER_BOUNDS)
            case "boolean" | "null":
                return _SCALARS[name]
            case _:
                return Any

    def _object(self, schema: dict[str, Any], depth: int) -> Any:
        kinds, required = self.properties(schema, depth), names_in(schema, "required")
        if not kinds and not required:
            return dict[str, self.kind(schema.get("additionalProperties"), depth + 1)]
        return object_type(kinds, required)

    def properties(self, schema: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
        """Return the types of an object's properties by name."""
        properties: Any = schema.get("properties")
        if not isinstance(properties, dict):
            return {}
        named = cast("dict[str, Any]", properties)
        return {name: self.kind(each, depth + 1) for name, each in named.items()}


def object_type(kinds: Mapping[str, Any], required: frozenset[str]) -> Any:
    """Return the type of an object with these properties; a required one that is not described may be anything."""
    fields = {name: Required[kind] if name in required else kind for name, kind in kinds.items()}
    fields |= {name: Required[Any] for name in required if name not in kinds}
    return TypedDict("Object", fields, total=False)  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues] - known at run time only


def names_in(schema: Mapping[str, Any], word: str) -> frozenset[str]:
    """Return the texts of a list such as `required`."""
    found: Any = schema.get(word)
    texts: list[Any] = cast("list[Any]", found) if isinstance(found, list) else []
    return frozenset(each for each in texts if isinstance(each, str))


def _choice(values: list[Any], schema: dict[str, Any]) -> Any:
    """Return the type of a choice of texts, whole numbers and null; of others their `type` alone is checked."""
    if values and all(type(value) in (str, int, type(None)) for value in values):
        return _usable(Literal[tuple(values)], Any)
    name = schema.get("type")
    return str if name == "string" else _SCALARS.get(name, Any) if isinstance(name, str) else Any


def _bounded(kind: Any, schema: dict[str, Any], bounds: Mapping[str, str]) -> Any:
    stated = {
        bounds[word]: schema[word] for word in bounds if type(schema.get(word)) in (int, float)
    }
    if not stated:
        return kind
    try:
        meta = Meta(**stated)
    except (TypeError, ValueError):
        return kind
    return _usable(Annotated[kind, meta], kind)


def _usable(kind: Any, otherwise: Any) -> Any:
    """Return the type where msgspec can check it, such as a union of a text and a list, and not of two objects."""
    try:
        msgspec.json.Decoder(kind)
    except (TypeError, ValueError):
        return otherwise
    return kind
