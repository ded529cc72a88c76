"""A file's lines made ready for search."""

import pytest

from rows import every_row
from ybs.tools.editing import lines as module
from ybs.tools.editing.lines import Lines


@every_row(
    "text, number, before, after",
    [
        ("a\nb", 0, 0, 0),
        ("a\nb", 1, 0, 0),
        ("a\n\nb\n", 0, 0, 1),
        ("a\n\nb\n", 2, 1, 0),
        ("a\n\n \n\nb", 4, 3, 0),
        ("\n\nb\n\n\t\n", 2, 2, 2),
        ("\n\nb\n\n\t", 2, 2, 2),
        ("b\n\n", 0, 0, 1),
        ("b\n", 0, 0, 0),
    ],
)
def test_blank_lines_are_counted_up_to_the_next_line(
    text: str, number: int, before: int, after: int
):
    lines = Lines(text)
    assert (lines.blanks_before(number), lines.blanks_after(number)) == (before, after)


def test_runs_are_found_by_what_lines_hold_and_may_overlap():
    lines = Lines("a b\n\nab\n  a  b\n“c”\n")
    assert lines.solid == [0, 2, 3, 4]
    assert lines.starts == [0, 4, 5, 8, 15, 19, 20]
    assert lines.runs(["ab"]) == [0, 1, 2]
    assert lines.runs(["a b", "ab"]) == [0, 1]
    assert lines.runs(["ab", '"c"']) == [2]
    assert lines.runs(["ab", "d"]) == lines.runs([]) == []
    assert lines.coded(["ab", "d", '"c"']) == [lines.sign(0), "", lines.sign(3)]
    assert [lines.sign(place) for place in (-1, 4)] == ["", ""]
    assert lines.sign(0) == lines.sign(2) != lines.sign(3)


def test_of_a_line_that_is_everywhere_so_many_places_are_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_MOST_PLACES", 3)
    assert Lines("a\n" * 3).runs(["a"]) == Lines("a\n" * 9).runs(["a"]) == [0, 1, 2]
