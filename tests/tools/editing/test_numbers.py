"""Line numbers that were copied along are taken off; numbers of the file's own stay."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.tools.editing.matcher import Match, find
from ybs.tools.editing.numbers import has_numbers

FILE = "import math\n\n\ndef area(radius):\n    square = radius * radius\n    return math.pi * square\n"
OLD = ["def area(radius):", "    square = radius * radius"]
NEW = ["def area(radius):", "    check(radius)", "    square = radius ** 2"]
WANTED = FILE.replace("\n".join(OLD), "\n".join(NEW))

LABELS: list[Callable[[int], str]] = [
    lambda n: f"{n}\t",
    lambda n: f"{n:>6}\t",
    lambda n: f"{n}-\t" if n % 2 else f"{n}:\t",
    lambda n: f"{n}:",
    lambda n: f"{n}-" if n % 2 else f"{n}:",
    lambda n: f"{n:>4}: ",
    lambda n: f"{n}|",
    lambda n: f"Line {n}: ",
    lambda n: f"src/area.py-{n}-" if n % 2 else f"src/area.py:{n}:",
    lambda n: f"{n} | ",
    lambda n: f"{n:>6}\u2192",
]


def told(lines: list[str], label: Callable[[int], str], first: int = 4) -> str:
    """Return the lines with numbers before them."""
    return "\n".join(label(first + step) + line for step, line in enumerate(lines))


def edited(text: str, old: str, new: str) -> str:
    """Return the text after the edit, or why there is none."""
    found = find(text, old, new)
    if not isinstance(found, Match):
        return found.reason
    (place,) = found.places
    return text[: place.start] + place.new + text[place.stop :]


@every_row("label", LABELS)
def test_numbers_in_every_spelling_are_taken_off(label: Callable[[int], str]):
    for new in ("\n".join(NEW), told(NEW, label)):
        assert edited(FILE, told(OLD, label), new) == WANTED
        assert edited(FILE, told(OLD, label) + "\n", new + "\n") == WANTED
    one = FILE.replace(OLD[1], "    square = 1")
    for new in ("    square = 1", told(["    square = 1"], label, 5)):
        assert edited(FILE, told(OLD[1:], label, 5), new) == one


@every_row("label", LABELS)
def test_new_lines_of_which_only_some_have_numbers_are_refused(label: Callable[[int], str]):
    new = f"{label(4)}{OLD[0]}\n    check(radius)\n{label(5)}{OLD[1]}"
    assert edited(FILE, told(OLD, label), new) == "numbers"


@every_row("label", LABELS)
def test_numbers_in_the_new_text_only_are_refused(label: Callable[[int], str]):
    for new in (NEW, ["def other(radius):"], ["", *OLD[1:]]):
        assert edited(FILE, "\n".join(OLD), told(new, label)) == "numbers"
    assert edited(FILE, "radius * radius", label(5) + "radius ** 2") == "numbers"


def test_numbers_that_start_elsewhere_or_fall_are_refused():
    for new in (told(NEW, LABELS[0], 3), "4\tdef area(radius):\n3\t    other()"):
        assert edited(FILE, told(OLD, LABELS[0]), new) == "numbers"


def test_lines_as_search_files_prints_them_are_understood():
    old = "src/area.py\n4:\tdef area(radius):\n5-\t    square = radius * radius"
    assert edited(FILE, old, "\n".join(NEW)) == WANTED
    assert edited(FILE, old, f"src/area.py\n{told(NEW, LABELS[2])}") == WANTED


@every_row(
    "old",
    [
        "4:def area(radius):\n4:    square = radius * radius",
        "5:def area(radius):\n4:    square = radius * radius",
        "4:def area(radius):\n    square = radius * radius",
        "4:def area(radius):\n5:    square = radius",
        "4:def area(diameter):\n5:    square = radius * radius",
        "4:def area(radius):\n5:  square = radius * radius",
        "1: \n2: ",
    ],
)
def test_what_is_no_exact_copy_of_lines_is_absent(old: str):
    assert edited(FILE, old, "x = 1") == "absent"


def test_a_numbered_line_that_occurs_twice_is_refused():
    text = f"{FILE}\n{FILE}"
    assert edited(text, "5:    square = radius * radius", "    square = 1") == "ambiguous"


def test_blank_lines_may_stand_as_bare_numbers():
    old = "1: import math\n2\n3:\n4: def area(radius):"
    new = "1: import cmath\n2\n3:\n4: def area(radius):"
    assert edited(FILE, old, new) == FILE.replace("math\n", "cmath\n", 1)


def test_a_new_text_that_differs_in_its_numbers_only_changes_nothing():
    assert edited(FILE, told(OLD, LABELS[0]), "\n".join(OLD)) == "unchanged"


MAP = "prices = {\n    1: 'one value',\n    2: 'two value',\n    4: 'four value',\n}\n"


@every_row(
    ("text", "old", "new", "wanted"),
    [
        (MAP, "    1: 'one value',", "    1: 'one',", MAP.replace("one value", "one")),
        (MAP, "2\t    1: 'one value',", "    1: 'one',", MAP.replace("one value", "one")),
        (MAP, "2:    1: 'one value',", "2:    1: 'one',", MAP.replace("one value", "one")),
        (MAP, "3:    2: 'two value',", "    3: 'three',", "numbers"),
        (MAP, "    3: 'four value',\n}", "    3: 'drei',\n}", "absent"),
        ("3. first thing\n4. second thing\n", "5. second thing", "5. other", "absent"),
        ("| 3 | first thing |\n", "| 4 | first thing |", "| 4 | x |", "absent"),
        ("a = rows[1:3]\n", "a = rows[2:3]", "a = rows[2:4]", "absent"),
        ("x:\n  - one\n", "  - one\n", "  3: one\n  4: two\n", "x:\n  3: one\n  4: two\n"),
        (
            "a\nfirst one\nother\n",
            "first one\n",
            "1: first\n2: two\n",
            "a\n1: first\n2: two\nother\n",
        ),
    ],
)
def test_numbers_of_the_files_own_stay(text: str, old: str, new: str, wanted: str):
    assert edited(text, old, new) == wanted


LINES = st.lists(
    st.sampled_from(["alpha = 1", "    beta(alpha)", "", "\tgamma();  ", " 3: delta", "}"]),
    min_size=1,
    max_size=7,
)


@pytest.mark.integration
@given(LINES, LINES, LINES, LINES, st.sampled_from(LABELS))
def test_a_numbered_edit_does_what_it_does_without_numbers_or_nothing(
    above: list[str], old: list[str], new: list[str], below: list[str], label: Callable[[int], str]
):
    text = "\n".join([*above, *old, *below])
    if text.count("\n".join(old)) != 1:
        return
    wanted = "\n".join([*above, *new, *below])
    # Whoever numbers the old lines and puts lines in their place that all begin like the next numbers means numbers.
    bodies = [[line.replace(" 3: delta", body) for line in new] for body in (" delta", "delta")]
    read_as_numbers = {"\n".join([*above, *lines, *below]) for lines in bodies}
    all_look_numbered = {line for line in new if line.strip()} == {" 3: delta"}
    plainly = {wanted, *read_as_numbers} if all_look_numbered else {wanted}
    for said, meant in (("\n".join(new), plainly), (told(new, label, len(above) + 1), {wanted})):
        made = edited(text, told(old, label, len(above) + 1), said)
        assert made in meant or "\n" not in made


async def test_a_refusal_shows_the_lines_that_are_meant(bench: Any, project: Path):
    (project / "a").write_text(FILE)
    message = await bench.fails(
        "edit_file", path="a", old_text=told(OLD, LABELS[3]), new_text=told(NEW, LABELS[3], 3)
    )
    assert "without line numbers" in message
    assert message.endswith(
        "The lines as they are:\n4\tdef area(radius):\n5\t    square = radius * radius"
    )
    message = await bench.fails(
        "edit_file", path="a", old_text=told(["def area(it):", OLD[1]], LABELS[3]), new_text="x"
    )
    assert message.endswith("The nearest lines:\n4\tdef area(radius):")
    assert (project / "a").read_text() == FILE


@every_row(
    "new, old, expected",
    [
        ("2: b = 4", "b = 2", True),
        ("1: a = 1\n2: b = 4", "b = 2", False),
        ("2: b = 2\n3: x", "b = 2", True),
        ("9: b = 2", "b = 2", True),
        ("1: b = 2\n5: x", "b = 2", False),  # a list begins so
        ("9: b = 4", "b = 2", False),
        ("2: b = 4", "2: b = 2", False),
        ("2: b = 4\nx", "b = 2", False),
        ("", "b = 2", False),
    ],
)
def test_a_new_text_has_line_numbers_where_they_are_those_of_its_lines(
    new: str, old: str, expected: bool
):
    assert has_numbers(new, old, "a = 1\nb = 2\n  c = 3\n") is expected
