"""Arguments of a tool that brings its own schema: checked and repaired as those of a built-in tool."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw, Struct

from rows import every_row
from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect
from ybs.tools.calls.arguments import Decoded, decode
from ybs.tools.calls.forms import schema_problem

ISSUE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
        "state": {"enum": ["open", "closed"]},
        "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "due": {"type": ["string", "null"]},
        "file-path": {"type": "string"},
        "author": {"$ref": "#/$defs/Person"},
    },
    "required": ["title"],
    "$defs": {
        "Person": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer"},
                "boss": {"$ref": "#/$defs/Person"},
            },
            "required": ["name"],
        }
    },
}


class Foreign:
    """A tool as a server describes it."""

    name = "make_issue"
    description = "Makes an issue."

    def __init__(self, schema: Any, effect: Effect = "write") -> None:
        self.parameters, self.effect = Raw(msgspec.json.encode(schema)), effect


def decoded(given: Any, schema: Any = ISSUE, effect: Effect = "write") -> Decoded:
    call = ToolCall(id="1", name="make_issue", arguments=Raw(msgspec.json.encode(given)))
    tool: Any = Foreign(schema, effect)
    return decode(tool, call)


def one(kind: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": kind}}


def is_taken(value: Any, kind: Any) -> bool:
    """Return whether the value fits the schema as it stands."""
    try:
        return decoded({"x": value}, one(kind)) == Decoded({"x": value})
    except ToolError:
        return False


@every_row(
    "given",
    [
        {"title": "a"},
        {"title": "a", "count": 9, "state": "open", "labels": ["x", "y"], "file-path": "b"},
        {"title": "a", "due": None},
        {"title": "a", "author": {"name": "b", "age": 5, "more": [1], "boss": {"name": "c"}}},
    ],
)
def test_what_fits_is_handed_on_as_it_is(given: dict[str, Any]):
    assert decoded(given) == Decoded(given)


@every_row(
    ("given", "expected"),
    [
        ({"count": "7"}, {"count": 7}),
        ({"count": 7.0}, {"count": 7}),
        ({"state": "OPEN"}, {"state": "open"}),
        ({"labels": "x"}, {"labels": ["x"]}),
        ({"labels": '["x"]'}, {"labels": ["x"]}),
        ({"author": '{"name": "b"}'}, {"author": {"name": "b"}}),
        ({"author": {"name": "b", "age": "5"}}, {"author": {"name": "b", "age": 5}}),
        ({"filePath": "b"}, {"file-path": "b"}),
        ({"Title": "a"}, {}),
        ({"count": None}, {}),
    ],
)
def test_what_does_not_fit_is_repaired_by_the_rules_of_built_in_tools(given, expected):
    title = {} if "Title" in given else {"title": "a"}
    result = decoded(title | given)
    assert result.value == {"title": "a"} | expected
    assert bool(result.notes) == (given != {"count": None})


@every_row(
    ("given", "said"),
    [
        ({}, "missing required field `title`"),
        ({"title": 5}, "Expected `str`"),
        ({"title": "a", "count": 10}, 'count: {"type":"integer"'),
        ({"title": "a", "count": True}, "$.count"),
        ({"title": "a", "state": "lost"}, "Invalid enum value"),
        ({"title": "a", "labels": ["x", "y", "z"]}, "length <= 2"),
        ({"title": "a", "author": {"age": 5}}, "$.author"),
        ({"title": "a", "color": "red"}, "'color' is not an argument of make_issue"),
        ([1, 2], "one JSON object"),
    ],
)
def test_what_cannot_be_repaired_is_refused_with_its_part_of_the_schema(given: Any, said: str):
    with pytest.raises(ToolError) as caught:
        decoded(given)
    assert said in str(caught.value)


def test_an_argument_is_not_converted_where_something_in_it_would_be_lost():
    author = {"name": "b", "age": "5", "note": "unknown to the schema"}
    with pytest.raises(ToolError, match=r"\$\.author\.age"):
        decoded({"title": "a", "author": author})


def test_broken_json_is_repaired_and_guessed_at_for_reading_alone():
    tool: Any = Foreign(ISSUE, "read")
    call = ToolCall(id="1", name="make_issue", invalid="{title: 'a', count: '2'")
    assert decode(tool, call).value == {"title": "a", "count": 2}
    tool.effect = "execute"
    with pytest.raises(ToolError, match="nothing was done"):
        decode(tool, call)


@every_row(
    "schema",
    [
        {"type": "object"},
        {},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {}}, "patternProperties": {"^x-": {}}},
    ],
)
def test_a_schema_that_is_open_to_other_names_gets_them(schema: dict[str, Any]):
    given = {"arguments": {"a": None}, "x-y": None, "cmd": 1}
    assert decoded(given, schema) == Decoded(given)


def test_a_schema_that_forbids_other_names_refuses_them():
    closed = {"type": "object", "additionalProperties": False}
    with pytest.raises(ToolError, match="not an argument"):
        decoded({"a": 1}, closed)
    assert decoded({}, closed) == Decoded({})


@every_row(
    ("kind", "fitting", "unfit"),
    [
        ({"type": "number"}, [1, 1.5], ["x", [1], None]),
        ({"type": "boolean"}, [True], ["x", 2]),
        ({"const": "a"}, ["a"], ["b", 1]),
        ({"enum": [1, "a", None]}, [1, "a", None], [2, "b"]),
        ({"enum": [1.5, True], "type": "number"}, [1.5], ["x"]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, [1, None], ["x"]),
        ({"oneOf": [{"type": "string"}, {"type": "array"}]}, ["a", [1]], [5]),
        ({"type": ["integer", "string"]}, [1, "a"], [[1, 2]]),
        ({"type": "string", "minLength": 2}, ["ab"], ["a"]),
        ({"type": "number", "exclusiveMinimum": 0}, [0.1], [0]),
        ({"type": "array", "items": {"type": "integer"}}, [[1, 2]], [["x"], {"a": 1}]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, [{"a": 1}], [{"a": []}]),
        ({"properties": {"a": {"type": "integer"}}}, [{"a": 1, "b": 2}, {}], [{"a": []}]),
        ({"type": "object", "required": ["a"]}, [{"a": None}], [{"b": 1}]),
    ],
)
def test_the_words_of_a_schema_are_understood(kind: Any, fitting: list[Any], unfit: list[Any]):
    assert [value for value in fitting if not is_taken(value, kind)] == []
    assert [value for value in unfit if is_taken(value, kind)] == []


@every_row(
    "kind",
    [
        True,
        {"type": "string", "pattern": "(a+)+$"},
        {"type": "string", "format": "date"},
        {"not": {"type": "string"}},
        {"type": "anything"},
        {"enum": []},
        {"anyOf": []},
        {"anyOf": [{"type": "object"}, {"properties": {"a": {"type": "integer"}}}]},
        {"$ref": "#/nowhere"},
        {"$ref": "https://example.com/schema"},
        {"type": "string", "minLength": -1},
        {"type": "string", "maxLength": "9"},
        {"$ref": "#/properties/x"},
    ],
)
def test_what_is_not_understood_is_left_to_the_tool(kind: Any):
    assert is_taken("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", kind)


def test_a_schema_that_repeats_itself_costs_no_time():
    definitions = {
        f"d{level}": {
            "type": "object",
            "properties": {name: {"$ref": f"#/$defs/d{level + 1}"} for name in "abcdefgh"},
        }
        for level in range(30)
    }
    schema = one({"$ref": "#/$defs/d0"}) | {"$defs": definitions}
    assert decoded({"x": {"a": {"b": {}}}}, schema).notes == ()
    deep: Any = {"type": "string"}
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    assert is_taken([[1]], deep) is False
    assert is_taken([], deep)
    free: Any = {"type": "string"}
    for _ in range(100):
        free = {"type": "object", "additionalProperties": free}
    given: Any = 1
    for _ in range(100):
        given = {"a": given}
    assert is_taken(given, free)  # what lies so deep is not looked at


@every_row("schema", [5, [], None, {"type": "array"}, {"$ref": "#/nowhere"}])
def test_a_schema_that_is_not_an_objects_is_named_as_a_problem(schema: Any):
    assert schema_problem(Raw(msgspec.json.encode(schema)))


def test_a_schema_of_an_object_is_no_problem():
    assert schema_problem(Raw(msgspec.json.encode(ISSUE))) == ""
    assert schema_problem(Raw(b"{no json"))
    root = {"$ref": "#/$defs/A", "$defs": {"A": one({"type": "string"})}}
    assert schema_problem(Raw(msgspec.json.encode(root))) == ""


class Pair(Struct):
    left: int
    right: str = ""


def test_a_struct_and_its_schema_refuse_the_same():
    class Typed(Foreign):
        arguments = Pair

    with pytest.raises(ToolError) as by_schema:
        decoded({"left": "x"}, msgspec.json.schema(Pair)["$defs"]["Pair"])
    call = ToolCall(id="1", name="make_issue", arguments=Raw(b'{"left": "x"}'))
    tool: Any = Typed({})
    with pytest.raises(ToolError) as by_struct:
        decode(tool, call)
    assert "do not fit: Expected `int`, got `str` - at `$.left`" in str(by_schema.value)
    assert "do not fit: Expected `int`, got `str` - at `$.left`" in str(by_struct.value)
