"""The arguments of a tool and their validation: the fields of a Struct, or a JSON Schema.

Both forms have the `schema` as it is repeated to a model, the `fields` by name and their `kinds` as msgspec takes them; `is_open`: there may be
others. `takes_null` says whether null is a value and not another way to leave an argument out, and `read` returns the arguments as the tool takes them.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, Required, TypeAlias, TypedDict, TypeVar, Union, cast

import msgspec
from msgspec import Meta, Raw, Struct

from ybs.config.parameters import target
from ybs.core.decoding import build, decodable
from ybs.core.ports import Tool
from ybs.core.schema import schema_of


class StructForm:
    """The arguments of a tool with a Struct."""

    is_open = False

    def __init__(self, arguments: type[Struct]) -> None:
        self._arguments = arguments
        self.fields = arguments.__struct_encode_fields__

    @property
    def schema(self) -> bytes:
        """The Struct's schema."""
        return bytes(schema_of(self._arguments))

    @property
    def kinds(self) -> Mapping[str, Any]:
        """The types of the Struct's fields."""
        return {each.encode_name: each.type for each in msgspec.structs.fields(self._arguments)}

    def takes_null(self, name: str) -> bool:
        """Return False: null stands for the default."""
        del name
        return False

    def read(self, given: dict[str, Any]) -> Any:
        """Return the Struct. Raises msgspec.ValidationError."""
        return msgspec.convert(given, decodable(self._arguments))


class SchemaForm:
    """The arguments of a tool that brings its own schema. The tool gets them as a dictionary.

    As with a Struct, an argument that is not in the schema is a mistake, unless the schema says that there may be others
    (`additionalProperties`, `patternProperties`) or names none.
    """

    def __init__(self, schema: bytes) -> None:
        """Read the schema. Raises ValueError where it is not that of an object."""
        decoded: Any = msgspec.json.decode(schema)
        types = SchemaTypes(_described(decoded))
        described = _described(target(decoded.get("$ref", "#"), decoded))
        if described.get("type", "object") != "object":
            raise ValueError(f"its type is {described['type']!r}, not 'object'")
        self.schema = schema
        self.kinds: Mapping[str, Any] = types.properties(described)
        self.fields: Collection[str] = tuple(self.kinds)
        others = described.get("additionalProperties", not self.kinds)
        self.is_open = others is not False or "patternProperties" in described
        self._whole = object_type(self.kinds, names_in(described, "required"))
        build(self._whole)

    def takes_null(self, name: str) -> bool:
        """Return whether null fits the argument's schema."""
        try:
            msgspec.convert(None, self.kinds.get(name, Any))
        except msgspec.ValidationError:
            return False
        return True

    def read(self, given: dict[str, Any]) -> Any:
        """Return the dictionary. Raises msgspec.ValidationError."""
        msgspec.convert(given, self._whole)
        return given


Form: TypeAlias = StructForm | SchemaForm


def _described(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - as for JSON that is broken
    return cast("dict[str, Any]", schema)


def form_of(tool: Tool) -> Form:
    """Return the form of the tool's arguments: its Struct `arguments` if it has one, else its `parameters`.

    Raises ValueError for a schema that cannot be used.
    """
    arguments = getattr(tool, "arguments", None)
    if isinstance(arguments, type) and issubclass(arguments, Struct):
        return StructForm(arguments)
    return _form_of(bytes(tool.parameters))


@lru_cache(maxsize=256)
def _form_of(schema: bytes) -> SchemaForm:
    return SchemaForm(schema)


def schema_problem(parameters: Raw) -> str:
    """Return the problem of a schema; empty for a usable one."""
    try:
        _form_of(bytes(parameters))
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


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
        build(kind)
    except (TypeError, ValueError):
        return otherwise
    return kind
