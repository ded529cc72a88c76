"""How changes are drawn: numbers, colours, marked words, and what is folded."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.frontends.terminal.drawing.diffs import MAX_DIFF, MAX_NEW, diff_lines, short_diff
from ybs.frontends.terminal.signs import ASCII, UNICODE, Paint
from ybs.frontends.terminal.words import cells

PLAIN, COLOURED = Paint(has_colour=False), Paint(has_colour=True)
HEAD = "--- cart.py\n+++ cart.py\n"


def bare(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def drawn(text: str, width: int = 60, **how: bool) -> list[str]:
    return [bare(line) for line in diff_lines(text, width, PLAIN, UNICODE, **how)]


def test_lines_have_their_numbers_and_the_file_and_its_hunks_are_not_repeated() -> None:
    text = HEAD + "@@ -8,3 +8,4 @@\n a\n-b\n+c\x07\n+d\n e\n@@ -99,2 +100 @@\n f\n-g\n"
    assert drawn(text) == [
        "      8  a",
        "      9 -b",
        "      9 +c␇",
        "     10 +d",
        "     11  e",
        "    …",
        "    100  f",
        "    100 -g",
    ]


def test_no_part_of_a_line_is_taken_for_a_colour() -> None:
    assert drawn(HEAD + "@@ -1 +1 @@\n-a\r\n+s\x1b[;make\n") == ["    1 -a", "    1 +s␛[;make"]


def test_the_names_are_drawn_where_there_are_several_files() -> None:
    other = "--- /dev/null\n+++ b.py\n@@ -0,0 +1 @@\n+x"
    text = f"{HEAD}@@ -1 +1 @@\n-a\n+b\n{other}"
    assert [line.strip() for line in drawn(text, has_names=True)] == [
        *("--- cart.py", "+++ cart.py", "1 -a", "1 +b"),
        *("--- /dev/null", "+++ b.py", "1 +x"),
    ]

    assert drawn(text) == drawn(text, has_names=True)


def test_of_a_text_that_is_no_diff_every_line_is_drawn() -> None:
    for text in (
        "+note\n+++ hidden\n+++ too",
        "+++ hidden",
        "--- first\n+++ second",
        "@@ -1 +1 @@ hidden\n+a\n@@ -1 +1 @@ too",
    ):
        shown = "\n".join(drawn(text))
        assert [line for line in text.split("\n") if line.rpartition(" ")[2] not in shown] == []


#: Lines as they could be told apart from others by how they begin.
_BEGINNINGS = st.sampled_from(
    ["", "+", "++ ", "+++ ", "-", "-- ", "--- ", "@@ -1 +1 @@ ", "\\ ", " "]
)


@given(st.lists(_BEGINNINGS, min_size=1, max_size=12), st.sampled_from(["", "+"]), st.booleans())
def test_no_line_is_left_out_whatever_it_begins_with(
    beginnings: list[str], sign: str, has_names: bool
) -> None:
    words = [f"word{place}." for place in range(len(beginnings))]
    lines = [f"{sign}{each}{word}" for each, word in zip(beginnings, words, strict=True)]
    shown = drawn("\n".join(lines), has_names=has_names)
    has_one_name = not (sign or has_names) and beginnings[:3] == ["--- ", "+++ ", "@@ -1 +1 @@ "]
    left_out = [word for word in words if not any(word in line for line in shown)]
    assert left_out in ([], words[:2] if has_one_name else [])


def test_a_removed_line_that_looks_like_a_name_is_a_removed_line() -> None:
    assert drawn("@@ -1,2 +1 @@\n--- note\n+++ more\n x\n")[:2] == [
        "    1 --- note",
        "    1 +++ more",
    ]


def test_words_that_changed_are_marked_and_lines_with_little_in_common_are_not() -> None:
    text = HEAD + "@@ -1 +1 @@\n-total -= rebate(total)\n+total -= rebate(price)\n"
    old, new = diff_lines(text, 60, COLOURED, UNICODE)
    assert "\x1b[7mtotal\x1b[27m" in old
    assert old.count("\x1b[7m") == 1
    assert "\x1b[7mprice\x1b[27m" in new
    unlike = HEAD + "@@ -1 +1 @@\n-import os\n+class Cart:\n"
    assert "\x1b[7m" not in "".join(diff_lines(unlike, 60, COLOURED, UNICODE))


def test_code_has_the_colours_of_its_language_and_no_colour_where_there_is_none() -> None:
    text = HEAD + '@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return "x"\n'
    context, old, new = diff_lines(text, 60, COLOURED, UNICODE)
    assert "\x1b[35mdef\x1b[39m" in context
    assert "\x1b[35mreturn\x1b[39m" in new
    assert "\x1b[35m" not in old  # what was removed is one colour
    assert not re.search(r"\x1b\[3\d", "".join(diff_lines(text, 60, PLAIN, UNICODE)))


def test_a_text_over_several_lines_keeps_its_colour() -> None:
    text = '--- /dev/null\n+++ a.py\n@@ -0,0 +1,3 @@\n+"""One\n+two def\n+"""\n'
    middle = diff_lines(text, 60, COLOURED, UNICODE)[1]
    assert "\x1b[35m" not in middle


@every_row("width", [20, 40, 52, 80])
def test_a_long_line_is_folded_and_not_cut(width: int) -> None:
    line = "    total -= coupon.discount(total, " + "x" * 60 + ")"
    for signs, mark in ((UNICODE, "↳"), (ASCII, ">")):
        rows = diff_lines(f"{HEAD}@@ -3 +3 @@\n+{line}", width, COLOURED, signs)
        assert all(cells(row) <= width for row in rows)
        first, *rest = map(bare, rows)
        assert all(row.strip().startswith(mark) for row in rest)
        parts = [first.partition("+")[2], *(row.partition(mark)[2] for row in rest)]
        assert "".join(parts).replace(" ", "") == line.replace(" ", "")


def test_of_a_new_file_the_head_is_shown_and_of_a_change_both_ends() -> None:
    new = "--- /dev/null\n+++ a.py\n@@ -0,0 +1,400 @@\n" + "\n".join(f"+l{n}" for n in range(400))
    lines = drawn(new)
    above, hidden, below = short_diff(lines, new)
    assert (len(above), hidden, below) == (MAX_NEW, 400 - MAX_NEW, [])
    above, hidden, below = short_diff(lines, HEAD)
    assert len(above) + len(below) == MAX_DIFF
    assert below[-1].endswith("+l399")
    assert len(above) + hidden + len(below) == 400
    assert short_diff(lines[:MAX_NEW], new) == (lines[:MAX_NEW], 0, [])


@every_row("text", ["", "\n", "+a", "@@ -1 +1 @@", "--- a", "Binary file a: changed"])
def test_what_is_hardly_a_diff_is_drawn_all_the_same(text: str) -> None:
    assert "".join(drawn(text)).strip() == {"@@ -1 +1 @@": ""}.get(text, text.strip())


@pytest.mark.integration
def test_a_very_long_diff_is_drawn_without_colours_and_soon() -> None:
    rows = "\n".join(f"+def f{n}(): pass" for n in range(20_000))
    lines = diff_lines(
        f"--- /dev/null\n+++ a.py\n@@ -0,0 +1,20000 @@\n{rows}", 80, COLOURED, UNICODE
    )
    assert len(lines) == 20_000
    assert "\x1b[35m" not in lines[0]
