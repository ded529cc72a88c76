"""Front matter, as people publish it."""

import subprocess
import sys

import pytest

from rows import every_row
from ybs.config.front_matter import BadFrontMatter, fields, is_yes, split, text_of


@every_row(
    "text, value",
    [
        ("key: plain words", "plain words"),
        ("key: words # a remark", "words"),
        ("key: fix#12", "fix#12"),
        ("key: 'it''s \"quoted\"'  # so", 'it\'s "quoted"'),
        ('key: "a \\"b\\" \\u00e9\\x41\\nx"', 'a "b" \u00e9A\nx'),
        ("key: goes\n  on\n\n  here", "goes on\nhere"),
        ("key:\n  below\n  it", "below it"),
        ("key: |\n  as\n    it is\n\n  kept", "as\n  it is\n\nkept"),
        ("key: >-\n  is\n  folded\n\n  twice", "is folded\ntwice"),
        ("key: [a, 'b', \"c\"]", ["a", "b", "c"]),
        ("key: [a,\n  b]", ["a", "b"]),
        ("key:\n  - a b\n  - 'c'\n", ["a b", "c"]),
        ("key: # see below\n- a\n-\n", ["a", ""]),
        ("key:\n  author: me\n  version: '1.10'", ["author: me", "version: 1.10"]),
        ("key: [[a], b]", ["\u2026", "b"]),
        ("key: no", "no"),
        ("key: 1.10", "1.10"),
        ("key: 2026-11-27", "2026-11-27"),
        ("key: !!python/object:os.system", ""),
        ("# remark\n\nkey:", ""),
        ("key: 1\nkey: 2", "2"),
        ("'key' : 3", "3"),
        ("first: 1\n'key': 3", "3"),
    ],
)
def test_yaml_is_read(text: str, value: object):
    assert fields(text)["key"] == value


@every_row(
    "text, value",
    [
        ("key: Use it when: a file is new", "Use it when: a file is new"),
        ("key: **bold** words", "**bold** words"),
        ("key: *", "*"),
        ("key: @team and `code`", "@team and `code`"),
        ("key: [--fast] [PATH]", "[--fast] [PATH]"),
        ('key: "one" or "two"', '"one" or "two"'),
        ("key: 'open", "'open"),
        ('key: "\\ud800"', '"\\ud800"'),
        ("key: a: b\n\tc", "a: b\n\tc"),
        ("key: |\nnot indented", "not indented"),
        ("key: \x07 a: b", "\x07 a: b"),
    ],
)
def test_a_field_that_yaml_refuses_is_taken_as_it_stands_and_the_others_are_read(text: str, value: object):  # fmt: skip
    assert fields(f"before: [x]\n{text}\nafter: |\n  y") == {
        "before": ["x"],
        "key": value,
        "after": "y",
    }


EXAMPLES = """\
name: planner
description: Use this agent when the user asks to "plan it", or describes: steps. Examples:

<example>
Context: The user wants a plan
user: "Plan the release"
assistant: "I'll use the planner."
<commentary>
model: this is still the example
</commentary>
</example>

<example>
user: "And the next one: too"
</example>

model: inherit
color: magenta
tools: ["Read", "Grep"]
"""


def test_examples_in_a_description_stay_in_it():
    found = fields(EXAMPLES)
    assert list(found) == ["name", "description", "model", "color", "tools"]
    assert (found["model"], found["tools"]) == ("inherit", ["Read", "Grep"])
    description = text_of(found, "description")
    assert description.startswith(
        'Use this agent when the user asks to "plan it", or describes: steps.'
    )
    assert "model: this is still the example" in description
    assert description.endswith("</example>")


def test_examples_that_begin_in_the_first_line_stay_in_it():
    head = 'name: a\ndescription: Simplifies. <example>\nContext: done\nuser: "Add it"\n</example>\nmodel: opus\n'
    found = fields(head)
    assert list(found) == ["name", "description", "model"]
    assert 'user: "Add it"' in text_of(found, "description")


def test_a_tag_that_is_never_closed_hides_no_field():
    found = fields("description: Use <example> so: well\nmodel: opus\n")
    assert found == {"description": "Use <example> so: well", "model": "opus"}


@every_row(
    "value, yes", [("true", True), ("True", True), ("yes", True), ("false", False), ("", False)]
)
def test_a_flag_is_read(value: str, yes: bool):
    assert is_yes(fields(f"flag: {value}"), "flag") is yes


def test_several_keys_are_read():
    text = "\ufeff---\r\na: 1\r\nb-c: >\r\n  x\r\nd.e:\r\n  - y\r\n---  \r\n\r\n# Body\r\n---\r\n"
    head, body = split(text)
    assert fields(head) == {"a": "1", "b-c": "x", "d.e": ["y"]}
    assert body == "\n# Body\n---\n"


@every_row(
    "text, why",
    [
        ("# Only words", "does not begin with front matter"),
        ("", "does not begin with front matter"),
        ("---\na: 1\n", "the second line of --- is missing"),
        ("---\nonly words\n---\n", "without any line `name: value`"),
        ("---\n- a\n- b\n---\n", "without any line `name: value`"),
    ],
)
def test_what_is_not_front_matter_is_said(text: str, why: str):
    with pytest.raises(BadFrontMatter, match=why):
        fields(split(text)[0])


@every_row(
    "head",
    [
        "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 40)),
        f"a: &a {'x' * 5000}\nb: [{', '.join(['*a'] * 5000)}]",
        "a: &a [*a]",
        "d: " + "[" * 30_000,
        "d:\n" + "- " * 30_000,
    ],
)
def test_what_would_grow_without_end_is_taken_as_text(head: str):
    assert len(str(fields(head))) <= 2 * len(head) + 100


@pytest.mark.integration
def test_plain_front_matter_does_not_load_the_yaml_reader():
    code = "import sys; from ybs.config.front_matter import fields; fields(sys.argv[1]); print('yaml' in sys.modules)"
    heads = (
        "name: a\n\ndescription: Writes notes, (all) of them. Use it often\n# so\nmodel: opus",
        "a: [b]",
    )
    told = [
        subprocess.check_output([sys.executable, "-c", code, head], text=True) for head in heads
    ]
    assert told == ["False\n", "True\n"]
