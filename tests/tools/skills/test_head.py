"""The head of a SKILL.md, as people write it."""

import pytest

from rows import every_row
from ybs.tools.skills.head import BadHead, fields, split


@every_row(
    "text, value",
    [
        ("key: plain words", "plain words"),
        ("key: Use it when: a file is new", "Use it when: a file is new"),
        ("key: words # a remark", "words"),
        ("key: issue #12", "issue #12"),
        ("key: 'it''s \"quoted\"'  # so", 'it\'s "quoted"'),
        ('key: "a \\"b\\" \\u00e9\\x41\\n\\ud800"', 'a "b" \u00e9A\n\ufffd'),
        ("key: goes\n  on\n\n  here", "goes on\nhere"),
        ("key:\n  below\n  it", "below it"),
        ("key: |\n  as\n    it is\n\n  kept", "as\n  it is\n\nkept"),
        ("key: >-\n  is\n  folded\n\n  twice", "is folded\ntwice"),
        ("key: |2+ # so\n   x", "x"),
        ("key: [a, 'b', \"c\"]", ["a", "b", "c"]),
        ("key: [a,\n  b]", ["a", "b"]),
        ("key:\n  - a b\n  - 'c'\n", ["a b", "c"]),
        ("key: # see below\n- a\n-\n", ["a", ""]),
        ("key:\n  author: me\n  version: '1'", "author: me version: '1'"),
        ("key: &a [x, x]", "&a [x, x]"),
        ("key: !!python/object:os.system", "!!python/object:os.system"),
        ("key: **bold** words", "**bold** words"),
        ("# remark\n\nkey:", ""),
        ("key: 1\nkey: 2", "2"),
    ],
)
def test_a_value_is_read(text: str, value: object):
    assert fields(text.split("\n"))["key"] == value


def test_several_keys_are_read():
    text = "\ufeff---\r\na: 1\r\nb-c: >\r\n  x\r\nd.e:\r\n  - y\r\n---  \r\n\r\n# Body\r\n---\r\n"
    head, body = split(text)
    assert fields(head) == {"a": "1", "b-c": "x", "d.e": ["y"]}
    assert body == "\n# Body\n---\n"


@every_row(
    "text, why",
    [
        ("# Only words", "does not begin with a head"),
        ("", "does not begin with a head"),
        ("---\na: 1\n", "the second line of --- is missing"),
        ("---\na: 1\nnonsense\n---\n", "line 3 is not `key: value`"),
        ("---\n{a: {b: {c: d}}}\n---\n", "line 2 is not `key: value`"),
    ],
)
def test_what_is_no_head_is_said(text: str, why: str):
    with pytest.raises(BadHead, match=why):
        fields(split(text)[0])


def test_a_bomb_is_only_text():
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 40)]
    deep = "d: " + "[" * 10_000
    found = fields([*levels, deep, *["x: y"] * 3])
    assert len(str(found)) < 100_000
