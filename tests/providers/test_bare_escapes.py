"""Backslashes of regular expressions that are not escaped in JSON."""

import json
from itertools import product
from typing import Any

from rows import every_row
from ybs.core.messages import AssistantMessage, Text
from ybs.providers.text_protocol import with_calls
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.loose_json import doubled


@every_row(
    ("text", "meant"),
    [
        (r'{"pattern": "\.py"}', r"\.py"),
        (r'{"pattern": "def \w+\(\s*\)"}', r"def \w+\(\s*\)"),
        (r'{"pattern": "\bcart\.total\b"}', r"\bcart\.total\b"),
        (r'{"pattern": "name=\"\d+\""}', r'name="\d+"'),
    ],
)
def test_a_backslash_of_a_regular_expression_is_read_as_itself(text: str, meant: str):
    assert json.loads(doubled(text))["pattern"] == meant


@every_row(
    "text",
    [
        r'{"pattern": "plain"}',
        r'{"pattern": "a\\.b"}',  # escaped as it has to be
        r'{"pattern": "\bword\b"}',  # valid JSON, whatever was meant
        r'{"pattern": "\\d+\.\\d+"}',  # one that is escaped: the others may be the file's
        r'{"content": "\d\n"}',  # a line end, or a backslash and an n
        r'{"content": "\d\t"}',
        r'{"content": "\d\u0041"}',
        r'{"content": "\d\/"}',
        r'{"content": "it\'s"}',  # a quote alone, or with its backslash
        r'{"command": "echo \$HOME"}',
        r'{"command": "printf \e[0m\."}',  # a control character, or the two signs
        r'{"content": "\x41"}',
        r'{"content": "\u12"}',
        '{"content": "\\d\\\n"}',
        r'{"content": "\d' + "\\",  # cut off
    ],
)
def test_what_can_be_read_in_two_ways_stays_as_it_is(text: str):
    assert doubled(text) == ""


def test_nothing_is_read_in_another_way_than_it_was_written():
    """What any parser takes stays as it is, and what is repaired is the text as it stood there, but for its quotes."""
    pieces = ("a", r"\.", r"\d", r"\b", r"\n", r"\\", r"\"", r"\'", '"', "\\")
    count = 0
    for text in map("".join, product(pieces, repeat=3)):
        escaped = doubled(f'{{"pattern": "{text}"}}')
        if escaped and (found := loaded(escaped)):
            assert found == {"pattern": text.replace(r"\"", '"')}
            assert loaded(f'{{"pattern": "{text}"}}') is None
            count += 1
    assert count > 100


def loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def test_a_call_in_the_text_of_a_model_is_valid_then():
    text = '```json\n{"name": "search_files", "arguments": {"pattern": "\\.py$"}}\n```'
    found = with_calls(AssistantMessage(content=(Text(text=text),)), {"search_files"})
    (call,) = found.calls
    assert (call.invalid, json.loads(bytes(call.arguments))) == ("", {"pattern": r"\.py$"})


def test_so_is_one_that_a_server_passes_on():
    draft = Assembly("m", "openai")
    draft.add_call(id="1", name="search_files", arguments=r'{"pattern": "\.py$"}')
    (call,) = draft.message().calls
    assert (call.invalid, json.loads(bytes(call.arguments))) == ("", {"pattern": r"\.py$"})


def test_one_that_can_be_read_in_two_ways_is_left_to_the_toolbox():
    draft = Assembly("m", "openai")
    given = r'{"content": "\.\n"}'
    draft.add_call(id="1", name="write_file", arguments=given)
    assert draft.message().calls[0].invalid == given
