"""JSON Schemas made from Structs: of a line that tells an event (a transcript's, of `stream-json`, of a feed), and of other records.

msgspec's own generator cannot write the defaults of fields that hold JSON as it came.
"""

from typing import Any

from msgspec import inspect

from ybs.core.envelope import MAIN
from ybs.core.events import Event
from ybs.transcripts.line import VERSION

BESIDE = {
    "timestamp": {"type": "string", "description": "When, in UTC (ISO 8601)."},
    "v": {"const": VERSION},
    "session": {"type": "string", "description": "The session, in a line for a listener."},
    "agent": {"type": "string", "description": f"Who told it; {MAIN} where it is left out."},
    "started_by": {"type": "string", "description": "The call that started that agent."},
    "event": {"type": "integer", "description": "The number of a line of a transcript."},
    "parent": {"type": "integer", "description": "The number of the line that it follows."},
}
PLAIN: dict[type[inspect.Type], dict[str, Any]] = {
    inspect.StrType: {"type": "string"},
    inspect.IntType: {"type": "integer"},
    inspect.FloatType: {"type": "number"},
    inspect.BoolType: {"type": "boolean"},
    inspect.NoneType: {"type": "null"},
    inspect.BytesType: {"type": "string", "contentEncoding": "base64"},
    inspect.RawType: {},
    inspect.AnyType: {},
}


def event_schema() -> dict[str, Any]:
    """Return the schema: one of the events, and what stands beside its fields. Readers pass by types that they do not know."""
    found: dict[str, Any] = {}
    whole = schema_of(Event, found)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line that tells an event of ybs",
        "type": "object",
        "required": ["timestamp", "v", "type"],
        "properties": BESIDE,
        **whole,
        "$defs": dict(sorted(found.items())),
    }


def schema_of(record: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type; the Structs in it are added to `found`, the `$defs` of the whole."""
    return _of(inspect.type_info(record), found)


def _of(kind: inspect.Type, found: dict[str, Any]) -> dict[str, Any]:
    match kind:
        case inspect.StructType():
            return _struct(kind, found)
        case inspect.UnionType():
            return {"anyOf": [_of(each, found) for each in kind.types]}
        case inspect.LiteralType():
            return {"enum": list(kind.values)}
        case inspect.VarTupleType() | inspect.ListType():
            return {"type": "array", "items": _of(kind.item_type, found)}
        case inspect.DictType():
            return {"type": "object", "additionalProperties": _of(kind.value_type, found)}
        case _:
            return PLAIN[type(kind)]  # a new kind of field fails here


def _struct(kind: inspect.StructType, found: dict[str, Any]) -> dict[str, Any]:
    name = kind.cls.__name__
    if name not in found:
        found[name] = {}  # it may hold itself
        fields = {each.encode_name: _of(each.type, found) for each in kind.fields}
        required = [each.encode_name for each in kind.fields if each.required]
        if kind.tag is not None:
            fields, required = {"type": {"const": kind.tag}, **fields}, ["type", *required]
        words = (kind.cls.__doc__ or "").split("\n")[0]
        found[name] = {"description": words, "type": "object", "properties": fields}
        found[name] |= {"required": required} if required else {}
    return {"$ref": f"#/$defs/{name}"}
