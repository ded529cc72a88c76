"""What external tools say of themselves, in every form and in none."""

import json
from typing import Any

import msgspec
import pytest

from rows import every_row
from ybs.config.schema import ExternalToolSettings, ToolNeeds
from ybs.config.tool_definition import BadDefinition, Definition, defined, from_settings

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "most": {"type": "integer", "default": 5}},
    "required": ["query"],
}
FLAT: dict[str, Any] = {
    "query": {"type": "string", "required": True},
    "most": {"type": "integer", "required": False, "default": 5},
}


def read(said: object) -> Definition:
    return defined(json.dumps(said).encode(), name="its_file", usual="stdin")


def schema_in(definition: Definition) -> dict[str, Any]:
    return msgspec.json.decode(definition.parameters)


@every_row("parameters", [SCHEMA, FLAT, {"properties": SCHEMA["properties"], "required": ["query"]}])  # fmt: skip
def test_parameters_are_read_in_both_forms(parameters: dict[str, Any]):
    assert schema_in(read({"name": "search", "parameters": parameters})) == SCHEMA


def test_a_flat_parameter_may_be_called_type():
    schema = schema_in(read({"parameters": {"type": {"type": "string", "required": True}}}))
    assert schema["properties"] == {"type": {"type": "string"}}
    assert schema["required"] == ["type"]


def test_what_is_not_said_has_a_default():
    definition = read({"description": "Say\n hello.\x1b[31m", "more": [1]})
    assert definition.name == "its_file"
    assert definition.description == "Say  hello. [31m"
    assert schema_in(definition) == {"type": "object", "properties": {}}
    assert (definition.input, definition.timeout_seconds) == ("stdin", 0)
    assert definition.needs.words == ""


def test_needs_are_said_in_words():
    needs = {"network": True, "project": "write", "environment": ["KEY"], "read": ["~/data"]}
    assert read({"needs": needs}).needs.words == (
        "the network, to change files, your KEY, to read ~/data"
    )


@every_row(
    ("said", "why"),
    [
        (b"usage: build [options]", "not a JSON object"),
        (b"\xff\xfe", "not a JSON object"),
        (b"[" * 9_000, "its description"),
        (b'{"name": 5}', "does not fit"),
        (b'{"needs": {"network": "yes"}}', "does not fit"),
        (b'{"parameters": {"query": "string"}}', "'query' is not described by an object"),
        (b'{"description": "' + b"x" * 20_000 + b'"}', "longer than 16,000 bytes"),
    ],
)
def test_what_is_no_definition_is_refused(said: bytes, why: str):
    with pytest.raises(BadDefinition, match=why):
        defined(said, name="x", usual="stdin")


def test_the_settings_come_before_what_the_program_says():
    said = read({"description": "Its own.", "parameters": FLAT, "needs": {"network": True}})
    entry = ExternalToolSettings(
        name="mine", path="x", timeout_seconds=7, needs=ToolNeeds(project="write")
    )
    definition = from_settings(entry, said)
    assert (definition.name, definition.description) == ("mine", "Its own.")
    assert schema_in(definition) == SCHEMA
    assert (definition.timeout_seconds, definition.input) == (7, "stdin")
    assert definition.needs.words == "to change files"


def test_an_entry_alone_is_enough_and_takes_an_argument_as_specified():
    definition = from_settings(ExternalToolSettings(name="m", path="x", parameters=FLAT), None)
    assert schema_in(definition) == SCHEMA
    assert definition.input == "argv"
