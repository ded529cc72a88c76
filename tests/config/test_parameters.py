"""Parameters of published tools for which providers refused whole requests, and what is left of them."""

from typing import Any

from rows import every_row
from ybs.config.parameters import fitting

deep: dict[str, Any] = {}
for _ in range(2_000):
    deep = {"not": deep}

ROWS: dict[str, tuple[Any, Any]] = {
    "a type of another language": ({"type": "int"}, {}),
    "one of several types": ({"type": ["string", "None"]}, {}),
    "a name that is a word of schemas": ({"properties": {"type": {"enum": ["int"]}}}, None),
    "what stands in a default": ({"default": {"type": "int"}}, None),
    "required among the properties": (
        {"properties": {"coin": {"type": "string"}, "required": ["coin"]}},
        {"properties": {"coin": {"type": "string"}}},
    ),
    "no properties": ({"type": "object", "properties": None}, {"type": "object"}),
    "required as in draft 3": ({"properties": {"n": {"required": True}}}, {"properties": {"n": {}}}),
    "required twice": ({"required": ["a", "a", 1]}, {"required": ["a"]}),
    "a limit as in draft 4": ({"minimum": 1, "exclusiveMinimum": True}, {"minimum": 1}),
    "a word for a schema": ({"properties": {"n": "string"}}, {"properties": {"n": {}}}),
    "an array of nothing": ({"type": "array"}, {"type": "array", "items": {}}),
    "items as in draft 7": ({"type": "array", "items": [{}]}, {"type": "array", "items": {}}),
    "no values": ({"enum": []}, {}),
    "a branch that is null": ({"anyOf": [{"type": "str"}, None]}, {"anyOf": [{}]}),
    "a reference to nothing": ({"properties": {"n": {"$ref": "#/definitions/N"}}}, {"properties": {"n": {}}}),
    "a reference elsewhere": ({"$ref": "https://example.com/n.json"}, {}),
    "references in a circle": ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"$ref": "#/$defs/a~1b"}}}, None),
    "depth": ({"properties": {"n": deep}}, ...),
}  # fmt: skip


@every_row("given, wanted", ROWS.values(), list(ROWS))
def test_what_is_no_schema_is_left_out_and_the_rest_is_kept(given: Any, wanted: Any):
    found = fitting(given)
    if wanted is not ...:
        assert found == (given if wanted is None else wanted)
    assert fitting(found) == found
