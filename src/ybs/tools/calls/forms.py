"""The arguments of a tool and their validation: the fields of a Struct, or a JSON Schema.

Both forms have the `schema` as it is repeated to a model, the `fields` by name and their `kinds` as msgspec takes them; `is_open`: there may be
others. `takes_null` says whether null is a value and not another way to leave an argument out, and `read` returns the arguments as the tool takes them.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Raw, Struct

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
        return msgspec.convert(given, self._arguments)


class SchemaForm:
    """The arguments of a tool that brings its own schema. The tool gets them as a dictionary.

    As with a Struct, an argument that is not in the schema is a mistake, unless the schema says that there may be others
    (`additionalProperties`, `patternProperties`) or names none.
    """

    def __init__(self, schema: bytes) -> None:
        """Read the schema. Raises ValueError where it is not that of an object."""
        from ybs.tools.calls.schema_types import SchemaTypes, names_in, object_type
        from ybs.tools.parameters import target

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
