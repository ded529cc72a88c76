"""Line numbers that were copied along are taken off; numbers of the file's own stay."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rows import every_row
from ybs.tools.editing.lines import Lines
from ybs.tools.editing.matcher import EditMatch, find
from ybs.tools.editing.numbers import Copy, UnnumberedEdit, has_numbers, without_numbers

FILE = "import math\n\n\ndef area(radius):\n    square = radius * radius\n    return math.pi * square\n"
OLD = ["def area(radius):", "    square = radius * radius"]
NEW = ["def area(radius):", "    check(radius)", "    square = radius ** 2"]
WANTED = FILE.replace("\n".join(OLD), "\n".join(NEW))

LABELS: list[Callable[[int], str]] = [
    lambda n: f"{n}:",
    lambda n: f"{n}: ",
    lambda n: f"{n:>4}: ",
    lambda n: f"{n}|",
    lambda n: f"{n}| ",
    lambda n: f"{n} |",
    lambda n: f"{n} | ",
    lambda n: f"{n:<3} | ",
    lambda n: f"{n:04}| ",
    lambda n: f"{n} \u2502 ",
    lambda n: f"{n:>6}\u2192",
    lambda n: f"{n}\t",
    lambda n: f"{n:>6}\t",
    lambda n: f"{n}:\t",
    lambda n: f"{n}-\t" if n % 2 else f"{n}:\t",
    lambda n: f"{n}-" if n % 2 else f"{n}:",
    lambda n: f"L{n}:",
    lambda n: f"L{n}: ",
    lambda n: f"Line {n}: ",
    lambda n: f"src/area.py:{n}:",
    lambda n: f"src/area.py-{n}-" if n % 2 else f"src/area.py:{n}:",
    lambda n: f"Makefile:{n}:",
]


def told(lines: list[str], label: Callable[[int], str], first: int = 4) -> str:
    """Return the lines with numbers before them."""
    return "\n".join(label(first + step) + line for step, line in enumerate(lines))


def edited(text: str, old: str, new: str) -> str:
    """Return the text after the edit, or why there is none."""
    found = find(text, old, new)
    if not isinstance(found, EditMatch):
        return found.reason
    (place,) = found.places
    return text[: place.start] + place.new + text[place.stop :]


@every_row("label", LABELS)
def test_numbers_in_every_spelling_are_taken_off(label: Callable[[int], str]):
    for new in ("\n".join(NEW), told(NEW, label)):
        assert edited(FILE, told(OLD, label), new) == WANTED
        assert edited(FILE, told(OLD, label) + "\n", new + "\n") == WANTED


@pytest.mark.integration
@every_row("label", LABELS)
def test_one_numbered_line_is_understood(label: Callable[[int], str]):
    for indent in ("", "    ", "\t", "\t\t"):
        line = f"{indent}square = radius * radius"
        text, new = f"first\n{line}\nlast\n", f"{indent}square = radius ** 2"
        for said in (new, told([new], label, 2)):
            assert edited(text, told([line], label, 2), said) == text.replace(line, new)


@every_row("label", LABELS)
def test_kept_lines_may_have_numbers_and_new_ones_none(label: Callable[[int], str]):
    new = f"{label(4)}{OLD[0]}\n    check(radius)\n{label(5)}{OLD[1]}"
    wanted = FILE.replace(OLD[1], f"    check(radius)\n{OLD[1]}")
    assert edited(FILE, told(OLD, label), new) == wanted
    shifted = new.replace("    check", "          check")  # moved as far as the numbers are wide
    assert edited(FILE, told(OLD, label), shifted) == "numbers"


@every_row("label", LABELS)
def test_numbers_in_the_new_text_only_are_refused(label: Callable[[int], str]):
    for new in (NEW, ["def other(radius):"], ["", *OLD[1:]]):
        assert edited(FILE, "\n".join(OLD), told(new, label)) == "numbers"
    assert edited(FILE, "radius * radius", label(5) + "radius ** 2") == "numbers"
    assert edited(FILE, OLD[1] + "  ", told([OLD[1], "    more()"], label, 7)) == "numbers"


@every_row(
    ("one", "other"),
    [(one, other) for one in LABELS[:12:5] for other in (LABELS[7], LABELS[9], LABELS[16])],
)
def test_two_ways_of_numbering_are_refused(one: Callable[[int], str], other: Callable[[int], str]):
    assert edited(FILE, told(OLD, one), told(NEW, other)) == "numbers"


def test_numbers_that_start_elsewhere_are_refused():
    assert edited(FILE, told(OLD, LABELS[0]), told(NEW, LABELS[0], 3)) == "numbers"
    restarted = told(NEW, LABELS[0], 1)
    assert edited(FILE, told(OLD, LABELS[0]), restarted) == "numbers"
    backwards = "4:def area(radius):\n3:    other()"
    assert edited(FILE, told(OLD, LABELS[0]), backwards) == "numbers"


def test_lines_as_search_files_prints_them_are_understood():
    old = "src/area.py\n4:\tdef area(radius):\n5-\t    square = radius * radius"
    assert edited(FILE, old, "\n".join(NEW)) == WANTED
    assert edited(FILE, old, f"src/area.py\n{told(NEW, LABELS[14])}") == WANTED
    one = "src/area.py\n5:\t    square = radius * radius"
    assert edited(FILE, one, "    square = 1") == FILE.replace(OLD[1], "    square = 1")
    ranged = f"Lines 4-5:\n{told(OLD, LABELS[1])}"
    assert edited(FILE, ranged, "\n".join(NEW)) == WANTED


def test_a_first_line_may_lack_its_number():
    old = f"def area(radius):\n{told([*OLD[1:], '    return math.pi * square'], LABELS[0], 5)}"
    new = "def area(radius):\n    return math.pi * radius ** 2"
    wanted = FILE.replace("    square = radius * radius\n    return math.pi * square", new[18:])
    assert edited(FILE, old, new) == wanted


@every_row(
    ("old", "reason"),
    [
        ("4:def area(radius):\n4:    square = radius * radius", "absent"),
        ("5:def area(radius):\n4:    square = radius * radius", "absent"),
        ("4:def area(radius):\n    square = radius * radius", "absent"),
        ("4:def area(radius):\n5|    square = radius * radius", "absent"),
        ("4:def area(radius):\n5:    square = radius", "absent"),
        ("4:def area(diameter):\n5:    square = radius * radius", "absent"),
    ],
)
def test_what_is_no_copy_of_lines_is_absent(old: str, reason: str):
    assert edited(FILE, old, "x = 1") == reason


def test_a_numbered_line_that_occurs_twice_is_refused():
    text = f"{FILE}\n{FILE}"
    assert edited(text, "5:    square = radius * radius", "    square = 1") == "ambiguous"


def test_a_short_line_is_taken_where_its_number_says_it_is():
    text = "a:\n  - 12\nb:\n"
    assert edited(text, "2\t  - 12", "  - 13") == "a:\n  - 13\nb:\n"
    assert edited(text, "3\t  - 12", "  - 13") == "absent"


def test_blank_lines_may_stand_as_bare_numbers():
    old = "1: import math\n2\n3:\n4: def area(radius):"
    new = "1: import cmath\n2\n3:\n4: def area(radius):"
    assert edited(FILE, old, new) == FILE.replace("math\n", "cmath\n", 1)


def test_an_indentation_told_wrong_besides_is_mended_only_where_new_lines_tell_it():
    text = FILE.replace("def", "  def").replace("    ", "      ")
    label = LABELS[1]
    assert edited(text, told(OLD, label), told(NEW, label)) == edited(
        text, "\n".join(OLD), "\n".join(NEW)
    )
    assert edited(text, told(OLD, label), "\n".join(NEW)) == edited(
        text, "\n".join(OLD), "\n".join(NEW)
    )
    assert edited(text, told(OLD[1:], label), "    square = 1") == "numbers"


MAP = "prices = {\n    1: 'one value',\n    2: 'two value',\n    4: 'four value',\n}\n"


@every_row(
    ("text", "old", "new", "wanted"),
    [
        (MAP, "    1: 'one value',", "    1: 'one',", MAP.replace("one value", "one")),
        (MAP, "2:    1: 'one value',", "    1: 'one',", MAP.replace("one value", "one")),
        (MAP, "2\t    1: 'one value',", "    1: 'one',", MAP.replace("one value", "one")),
        (MAP, "2:    1: 'one value',", "2:    1: 'one',", MAP.replace("one value", "one")),
        (MAP, "3:    2: 'two value',", "    3: 'three',", "numbers"),
        (MAP, "    3: 'four value',", "    3: 'drei',", "absent"),
        (MAP, "    3: 'four value',\n}", "    3: 'drei',\n}", "absent"),
        ("a\n  four value\n4: four value\n", "3: four value", "3: x", "absent"),
        ("3. first thing\n4. second thing\n", "5. second thing", "5. other", "absent"),
        ("| 3 | first thing |\n", "| 4 | first thing |", "| 4 | x |", "absent"),
        ("a = rows[1:3]\n", "a = rows[2:3]", "a = rows[2:4]", "absent"),
        ("switch (x) {\ncase 3: stop();\n}\n", "case 4: stop();", "case 4: go();", "absent"),
        ("x:\n  - one\n", "  - one\n", "  3: one\n  4: two\n", "x:\n  3: one\n  4: two\n"),
        ("first one\nother\n", "first one\n", "1: first\n2: second\n", "numbers"),
        (
            "a\nfirst one\nother\n",
            "first one\n",
            "1: first\n2: two\n",
            "a\n1: first\n2: two\nother\n",
        ),
        (
            "a\nfirst\nsecond\n",
            "first\nsecond\n",
            "1: first\n2: second\n",
            "a\n1: first\n2: second\n",
        ),
        (
            FILE,
            "4: def area(radius):",
            "codes = {\n    200: 'fine',\n}",
            FILE.replace(OLD[0], "codes = {\n    200: 'fine',\n}"),
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
@example(["alpha = 1"], ["    beta(alpha)"], [" 3: delta"], ["alpha = 1"], LABELS[0])
@example(["alpha = 1"], ["", "}"], ["alpha = 1"], ["alpha = 1"], LABELS[19])
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
        "edit_file", path="a", old_text=told(OLD, LABELS[0]), new_text=told(NEW, LABELS[3])
    )
    assert "without line numbers" in message
    assert message.endswith(
        "The lines as they are:\n4\tdef area(radius):\n5\t    square = radius * radius"
    )
    message = await bench.fails(
        "edit_file", path="a", old_text=OLD[0], new_text=told(NEW, LABELS[0])
    )
    assert "line numbers; nothing was changed" in message
    assert (project / "a").read_text() == FILE


def test_a_new_text_without_the_gap_that_the_numbers_of_the_old_one_have_is_in_doubt():
    old, new = told(OLD, lambda n: f"{n}: "), told(NEW, lambda n: f"{n}:")
    assert edited(FILE, old, new) == "numbers"
    assert edited(FILE, old, "4:\n5:") == FILE.replace("\n".join(OLD), "\n")


def test_a_new_text_that_differs_in_its_numbers_only_changes_nothing():
    old = told(OLD, lambda n: f"{n}: ")
    assert edited(FILE, old, "\n".join(OLD)) == "unchanged"
    assert edited(FILE, old, told(OLD, lambda n: f"{n}: ", first=104)) == "unchanged"


THREE = "a = 1\nb = 2\n  c = 3\n"


@every_row(
    "old, new, bare",
    [
        (
            "1: a = 1\n2: b = 2",
            "1: a = 1\n2: b = 4",
            [UnnumberedEdit("a = 1\nb = 2", "a = 1\nb = 4", 1)],
        ),
        ("1: a = 1\n2: b = 2", "3: b = 4", [UnnumberedEdit("a = 1\nb = 2", "b = 4", 1)]),
        (
            "1: a = 1\n2: b = 2",
            "4: b = 4",
            [UnnumberedEdit("a = 1\nb = 2", "b = 4", 1, is_certain=False)],
        ),
        (
            "2: b = 2\n3:   c = 3",
            "1: b = 4",
            [UnnumberedEdit("b = 2\n  c = 3", "b = 4", 2, is_certain=False)],
        ),
        ("x = 1\n2: b = 2", "2: b = 4", []),  # one line with a number may have it of its own
        (
            "x = 1\n2: b = 2\n3:   c = 3",
            "b = 4",
            [UnnumberedEdit("x = 1\nb = 2\n  c = 3", "b = 4", 2, is_certain=False)],
        ),
        # The name of a file before a number, and behind it an empty line: no heading.
        ("a.py:1:\na.py:2:b = 2", "b = 4", [UnnumberedEdit("\nb = 2", "b = 4", 1)]),
        (
            "a.py\n1: a = 1\n2: b = 2",
            "a.py\n1: a = 1\n2: b = 4",
            [
                UnnumberedEdit(
                    "a.py\na = 1\nb = 2", "a.py\n1: a = 1\n2: b = 4", 1, is_certain=False
                ),
                UnnumberedEdit("a = 1\nb = 2", "a = 1\nb = 4", 1),
            ],
        ),
        ("\n1: a = 1", "1: a = 4", [UnnumberedEdit("\na = 1", "a = 4", 1)]),
        ("a = 1\nb = 2", "b = 4", []),
        ("a.py:1:a = 1\nb.py:2:b = 2", "b = 4", []),  # of two files
        ("L1: a = 1\nLine 2: b = 2", "b = 4", []),
        ("L1: a = 1\n2: b = 2", "b = 4", []),
        ("2: b = 2\n1: a = 1", "b = 4", []),  # they do not rise
    ],
)
def test_an_edit_is_read_without_its_numbers(old: str, new: str, bare: list[UnnumberedEdit]):
    assert list(without_numbers(Lines(THREE), old, new)) == bare


@every_row(
    "new, old, text, expected",
    [
        ("2: b = 4", "b = 2", THREE, True),
        ("1: a = 1\n2: b = 4", "b = 2", THREE, False),
        ("2: b = 2\n3: x", "b = 2", THREE, True),
        ("1:\n2: y", "b = 2", THREE, True),  # an empty line tells nothing
        ("2: b = 2\n5: x", "b = 2", "x\n" * 9, True),
        ("1: b = 2\n5: x", "b = 2", "x\n" * 9, False),  # a list begins so
        ("2: y\n3: x", "b = 2", "x\n" * 9, False),
        ("2: b = 4", "2: b = 2", THREE, False),
        ("1: a\n2: b", "1: a\nb", "1: a\nb\n", False),  # the file's own number
        ("2: b = 4\nx", "b = 2", THREE, False),
        ("x\n2: b = 4\n3: c", "b = 2", THREE, False),
        ("", "b = 2", THREE, False),
        ("9: b = 2", "b = 2", THREE, True),
        ("9: b = 4", "b = 2", THREE, False),
    ],
)
def test_a_new_text_has_line_numbers_where_they_are_those_of_its_lines(new, old, text, expected):
    assert has_numbers(new, old, text) is expected


@every_row(
    "mark, bodies, gaps",
    [
        (":", (" a", " b"), (" ", "")),
        (":", (" a", "", "  b"), (" ", "")),
        (":", (" a", "b"), ("",)),
        (":", ("a", "b"), ("",)),
        ("|", ("\ta", "\tb"), ("\t", "")),
        (":", (" a", "\tb"), ("",)),
        ("\t", (" a", " b"), ("",)),
        (":", ("", ""), ("",)),
    ],
)
def test_a_space_behind_every_number_is_a_gap_or_the_files_own(mark, bodies, gaps):
    numbers = tuple(range(3, 3 + len(bodies)))
    assert Copy(("", "", mark), numbers, bodies).gaps == gaps
