"""Arguments as models really write them."""

from typing import Annotated, Any, ClassVar

import msgspec
import pytest
from msgspec import Meta, Raw, Struct

from rows import every_row
from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect
from ybs.tools.calls.arguments import Decoded, decode


class Arguments(Struct, frozen=True):
    path: str
    limit: Annotated[int, Meta(description="how many")] = 5
    working_dir: str = ""
    is_deep: bool = False


class Reader:
    name: str = "reader"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = Arguments


class Writer(Reader):
    effect: Effect = "write"


def decoded(value: Any, tool: Any = None) -> Decoded:
    call = ToolCall(id="1", name="reader", arguments=Raw(msgspec.json.encode(value)))
    return decode(tool or Reader(), call)


def repaired(text: str, tool: Any = None) -> Decoded:
    return decode(tool or Reader(), ToolCall(id="1", name="reader", invalid=text))


def error(value: Any) -> str:
    with pytest.raises(ToolError) as caught:
        decoded(value)
    return str(caught.value)


def test_what_fits_is_taken_as_it_is():
    assert decoded({"path": "a", "limit": 3}) == Decoded(Arguments("a", 3))


@every_row(
    ("given", "expected"),
    [
        ({"path": "a", "limit": "7"}, Arguments("a", 7)),
        ({"path": "a", "limit": 7.0}, Arguments("a", 7)),
        ({"path": "a", "is_deep": "true"}, Arguments("a", is_deep=True)),
    ],
)
def test_other_types_are_converted_and_said(given: dict[str, Any], expected: Arguments):
    result = decoded(given)
    assert result.value == expected
    assert "converted" in result.notes[0]


def test_null_stands_for_the_default():
    assert decoded({"path": "a", "limit": None}) == Decoded(Arguments("a"))


def test_other_names_are_known():
    assert decoded({"file_path": "a", "working_directory": "b"}).value == Arguments(
        "a", working_dir="b"
    )


def test_unknown_names_are_ignored_and_said():
    result = decoded({"path": "a", "filename": "b", "x": 1})
    assert result.value == Arguments("a")
    assert result.notes == (
        "'filename' is not an argument of reader and was ignored",
        "'x' is not an argument of reader and was ignored",
    )


def test_json_within_a_string_is_read():
    assert decoded('{"path": "a"}').value == Arguments("a")


@every_row("given", ["no json", "[1]", [1], 5, None])
def test_what_is_no_object_is_refused_with_the_schema(given: Any):
    assert '"required":["path"]' in error(given)


def test_a_missing_or_wrong_argument_is_named_with_its_line_of_the_schema():
    assert 'path: {"type":"string"}' in error({})
    message = error({"path": "a", "limit": "many"})
    assert "$.limit" in message
    assert 'limit: {"description":"how many","type":"integer","default":5}' in message
    assert "path:" not in message


@every_row(
    "text",
    [
        '{"path": "a",}',
        "{'path': 'a'}",
        '```json\n{"path": "a"}\n```',
        '{path: "a"}',
        '{"path": "a',
    ],
)
def test_broken_json_is_repaired_for_a_tool_that_reads(text: str):
    result = repaired(text)
    assert result.value == Arguments("a")
    assert "repaired" in result.notes[0]


@every_row(
    ("text", "expected"),
    [
        ('{"path": "a",}', Arguments("a")),
        ('{"path": "a\\"" }x', Arguments('a"')),
        ('{"path": "a\n\tb"}', Arguments("a\n\tb")),
        ('```json\n{"path": "a"}\n```', Arguments("a")),
        ('Here it is: {"path": "a"}\nThank you.', Arguments("a")),
        ('{"path": "None, True,}", "is_deep": True, "working_dir": None,\n}', None),
    ],
)
def test_slips_without_doubt_are_mended_for_a_tool_that_writes(text, expected):
    result = repaired(text, Writer())
    assert result.value == (expected or Arguments("None, True,}", is_deep=True))
    assert "repaired" in result.notes[0]


@every_row(
    "text",
    [
        '{"path": "a',
        '{"path": "a"',
        '{"path": "a }',
        "no json",
        '{"path": "a"]}',
        '{"path": "a = {"k": "v", "w": 2}\\nb = 3\\n"}',
        '{"path": "x = "}"}',
        "{'path': 'print('')'}",
        '{path: "a"}',
        '{"path": "a"} {"path": "b"}',
        '{"limit": 1}, {"path": "b"}',
        '{"path": "a", "path": "b",}',
        '{"path": "\\ud800",}',
        r'{"path": "\d"}',
    ],
)
def test_what_has_to_be_guessed_is_refused_for_a_tool_that_writes(text: str):
    with pytest.raises(ToolError, match="nothing was done"):
        repaired(text, Writer())


def test_names_without_sense_are_repeated_in_short():
    result = decoded({"path": "a", "x" * 100_000: 1, **{f"n{number}": 1 for number in range(99)}})
    assert len(result.notes) == 6
    assert result.notes[-1] == "95 more were ignored"
    assert len("".join(result.notes)) < 500


def test_what_cannot_be_repaired_is_refused():
    with pytest.raises(ToolError, match="one JSON object"):
        repaired("hello")


class Twisted(Struct, frozen=True):
    items: list[int]


class TwistedTool(Reader):
    arguments: ClassVar[type[Struct]] = Twisted


def test_a_problem_deep_inside_shows_the_whole_schema():
    with pytest.raises(ToolError, match='"required":\\["items"\\]'):
        decoded({"items": ["x"]}, TwistedTool())
