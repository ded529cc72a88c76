"""Lines left out as `...`: the parts that are told have one way to lie in the file, or the edit is refused."""

import pytest

from rows import every_row
from timing import takes_at_most
from ybs.tools.editing.matcher import EditMatch, find

GO = """func open() error {
\tif err := try(); err != nil {
\t\treturn err
\t}
\tlog("open")
\treturn nil
}

func close() error {
\tlog("close")
\treturn nil
}
"""
PY = """def first(items):
    total = 0
    for item in items:
        total += item
    return total


def second(items):
    total = 1
    for item in items:
        total *= item
    return total


class Third:
    def go(self):
        total = 2
        return total
"""


def edited(text: str, old: str, new: str) -> str:
    """Return the text after the edit, or why there is none."""
    found = find(text, old, new)
    if not isinstance(found, EditMatch):
        return found.reason
    for place in reversed(found.places):
        text = text[: place.start] + place.new + text[place.stop :]
    return text


def cut(text: str, start: str, one: str, other: str) -> str:
    """Return the text with the first place behind `start` changed."""
    at = text.index(one, text.index(start))
    return text[:at] + other + text[at + len(one) :]


@every_row(
    ("text", "old", "new", "wanted"),
    [
        (  # an end that every function has
            GO,
            'func open() error {\n\t...\n\tlog("open")\n\t...\n}',
            "func open() error {\n\t...\n\tlog(last)\n\t...\n}",
            GO.replace('"open"', "last"),
        ),
        (  # a beginning that every function has
            GO,
            "func close() error {\n...\n}",
            "func shut() error {\n...\n}",
            GO.replace("func close", "func shut"),
        ),
        (  # a beginning that is there three times
            PY,
            "    for item in items:\n    # ... existing code ...\n        total *= item",
            "    for item in items:\n    # ... existing code ...\n        total *= -item",
            PY.replace("*= item", "*= -item"),
        ),
        (  # what stands beside a block that is opened in between
            "def a():\n    if x:\n        y()\n    z()\n    last()\n",
            "    if x:\n...\n    last()",
            "    if x:\n...\n    last(1)",
            "def a():\n    if x:\n        y()\n    z()\n    last(1)\n",
        ),
        (  # at the start and at the end, and several
            PY,
            "...\ndef second(items):\n    total = 1\n...\n        total *= item\n    return total\n...",
            "...\ndef second(items):\n    total = 1.0\n...\n        total *= item\n    return -total\n...",
            cut(PY.replace("= 1\n", "= 1.0\n"), "second", "return total", "return -total"),
        ),
    ],
)
def test_what_changes_is_found_once(text: str, old: str, new: str, wanted: str):
    assert edited(text, old, new) == wanted


@every_row(
    ("text", "old", "new", "reason"),
    [
        (
            GO,
            "func open() error {\n...\n\treturn nil",
            "func open() error {\n...\n\treturn 1",
            "ambiguous",
        ),
        (
            PY,
            "    total = 1\n...\n    return total",
            "    total = 1\n...\n    return 1",
            "ambiguous",
        ),
        (
            PY,
            "    for item in items:\n...\n    return total",
            "    x()\n...\n    return total",
            "ambiguous",
        ),
        (
            PY,
            "def first(items):\n...\n        return total",
            "def f(items):\n...\n        return 1",
            "ambiguous",
        ),
        (
            GO,
            'func open() error {\n...\n\tlog("close")',
            "func open() error {\n...\n\tlog(1)",
            "absent",
        ),
        (
            GO,
            'func close() error {\n...\n\tlog("open")',
            "func close() error {\n...\n\tlog(1)",
            "absent",
        ),
        (
            GO,
            "func open() error {\n...\nfunc gone()",
            "func open() error {\n...\nfunc going()",
            "absent",
        ),
        (
            GO,
            "func open() error {\n...\n\treturn nil",
            "func open() error {\n\treturn nil",
            "absent",
        ),
        (GO, "\n...\n\treturn nil", "\tstart()\n...\n\treturn nil", "absent"),
        (GO, "func open() error {\n  ...\n}\n", "func open() error {\n...\n}\n", "unchanged"),
        (
            GO,
            'func open() error {\n...\n  log("open")\n return nil',
            "func open() error {\n...\n  log(2)\n return nil",
            "absent",
        ),
        ("a = 1\nb\nc = 2\nc = 2\n", "a = 1\n...\nc = 2", "a = 1\n...\nc = 3", "ambiguous"),
        (  # two parts in one line
            "first_call()\nsecond_call()\n",
            "first_call()\n...\nfirst_call()\nsecond_call()",
            "first_call()\n...\nfirst_call()\nthird_call()",
            "absent",
        ),
        (  # another block begins in between, and nothing else is there
            "def a():\n    one()\ndef b():\n    two()\n",
            "    one()\n...\n    two()",
            "    one()\n...\n    three()",
            "absent",
        ),
    ],
)
def test_parts_in_doubt_are_refused(text: str, old: str, new: str, reason: str):
    assert edited(text, old, new) == reason


def test_a_long_part_may_lie_in_another_block_than_the_few_lines_before():
    text = "on: push\njobs:\n  test:\n    runs: one\n    steps:\n      - use: old\n      - run: x\n"
    old = "on: push\n...\n    runs: one\n    steps:\n      - use: old"
    assert edited(text, old, old.replace("old", "new")) == text.replace("old", "new")


@pytest.mark.integration
def test_many_places_of_what_stays_are_searched_in_time():
    text = "x\n" * 50_000 + "last one\n"
    with takes_at_most(8):
        assert edited(text, "x\n...\nx\n...\nlast one\n", "x\n...\nx\n...\nlast\n") == text.replace(
            "last one", "last"
        )
