"""A value against a JSON Schema: what the standard says fits, and what is wrong in words."""

from typing import Any

import pytest

from rows import every_row
from ybs.core.errors import ConfigError
from ybs.guards.json_schema import JsonSchema

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}
TREE: dict[str, Any] = {"type": "object", "properties": {"left": {"$ref": "#"}}}


@pytest.mark.integration
@every_row(
    ("schema", "good", "bad"),
    [
        (True, [1, None], []),
        (False, [], [1, None]),
        ({}, [1, "x", {}], []),
        ({"type": "string"}, ["", "x"], [1, None, []]),
        ({"type": ["string", "null"]}, ["x", None], [1]),
        ({"type": "integer"}, [1, 1.0, -2], [1.5, True, "1"]),
        ({"type": "number"}, [1, 1.5], [True, "1"]),
        ({"type": "boolean"}, [True], [1, 0]),
        ({"type": "array"}, [[]], [{}]),
        ({"enum": [1, "a", [True]]}, [1, "a", [True]], [True, "b", [1]]),
        ({"const": {"a": [1, 2]}}, [{"a": [1, 2]}], [{"a": [1]}, {"b": [1, 2]}, 1]),
        ({"minimum": 1, "exclusiveMaximum": 3}, [1, 2, "x"], [0, 3]),
        ({"exclusiveMinimum": 1, "maximum": 3}, [2, 3], [1, 4]),
        ({"multipleOf": 0.5}, [1.5, 1], [0.25]),
        ({"minLength": 1, "maxLength": 2}, ["a", "ab", 5], ["", "abc"]),
        ({"pattern": "^a+$"}, ["aa", 1], ["ab"]),
        ({"items": {"type": "integer"}, "minItems": 1, "maxItems": 2}, [[1]], [[], [1, "x"]]),
        ({"prefixItems": [{"const": 1}], "items": False}, [[1], []], [[2], [1, 1]]),
        ({"uniqueItems": True}, [[1, True, 2]], [[1, 2, 1.0]]),
        ({"uniqueItems": False}, [[1, 1]], []),
        ({"contains": {"type": "null"}}, [[1, None]], [[1], []]),
        (PERSON, [{"name": "a"}, {"name": "a", "age": 3}], [{}, {"name": "a", "x": 1}, "a"]),
        ({"additionalProperties": {"type": "null"}}, [{"a": None}], [{"a": 1}]),
        ({"patternProperties": {"^x": {"type": "null"}}}, [{"xa": None, "b": 1}], [{"xa": 1}]),
        ({"propertyNames": {"maxLength": 1}}, [{"a": 1}], [{"ab": 1}]),
        ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 2}]),
        ({"dependentRequired": {"a": ["b"]}}, [{}, {"a": 1, "b": 2}], [{"a": 1}]),
        ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, [1], [0, 3]),
        ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, ["x", 5], [4]),
        ({"oneOf": [{"minimum": 1}, {"maximum": 2}]}, [0, 3], [1]),
        ({"not": {"type": "string"}}, [1], ["x"]),
        ({"if": {"minimum": 5}, "then": {"multipleOf": 5}, "else": {"const": 1}}, [10, 1], [6, 2]),
        (TREE, [{"left": {"left": {}}}], [{"left": {"left": 1}}]),
        (
            {"$defs": {"a/b": {"type": "null"}}, "items": {"$ref": "#/$defs/a~1b"}},
            [[None]],
            [[1]],
        ),
    ],
)
def test_what_fits_and_what_does_not(schema: Any, good: list[Any], bad: list[Any]):
    known = JsonSchema(schema)
    assert [each for each in good if known.problems(each)] == []
    assert [each for each in bad if not known.problems(each)] == []


def test_each_problem_is_told_with_its_place():
    schema = {"type": "array", "items": PERSON}
    value = [{"age": "x"}, {"name": "a", "age": -1, "job": 1}]
    assert JsonSchema(schema).problems(value) == [
        "$[0]: 'name' is a required property",
        "$[0].age: 'x' is not of type 'integer'",
        "$[1]: Additional properties are not allowed ('job' was unexpected)",
        "$[1].age: -1 is less than the minimum of 0",
    ]


def test_a_schema_without_end_is_given_up():
    assert "nested too deeply" in JsonSchema({"allOf": [{"$ref": "#"}]}).problems(1)[0]


@every_row(
    ("schema", "why"),
    [
        ([], "not a JSON Schema"),
        ({"type": "of no kind"}, "the schema.type"),
        ({"properties": {"a": 1}}, "the schema.properties.a"),
        ({"items": {"$ref": "https://other.example/x"}}, "nothing is fetched"),
        ({"$ref": "#/$defs/x"}, "not in it"),
        ({"$ref": 1}, "is not a JSON Schema: 1 is not of type"),
        ({"pattern": "("}, "pattern"),
        ({"pattern": 1}, "pattern"),
        ({"anyOf": [{"patternProperties": {"(": {}}}]}, "pattern"),
        ({"required": 5}, "the schema.required"),
        ({"properties": {"a": {"minimum": "1"}}}, "a.minimum"),
    ],
)
def test_a_schema_that_is_not_understood_is_refused(schema: Any, why: str):
    with pytest.raises(ConfigError, match=why):
        JsonSchema(schema)
