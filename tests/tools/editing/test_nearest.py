"""The lines that are shown where a text is not in the file."""

from rows import every_row
from ybs.tools.editing.lines import Lines
from ybs.tools.editing.matcher import nearest

FILE = "def first(one):\n    return one\n}\n\ndef second(two):\n    return two\n}\n"


@every_row(
    "text, old, shown",
    [
        (FILE, "def second(two):\n    return three\n", "5\tdef second(two):\n6\t    return two"),
        (FILE, "print(x)\n    return two\n", "5\tdef second(two):\n6\t    return two"),
        (FILE, "}\nnothing like it\n", ""),  # a line without a word says nothing
        (FILE, "}\ndef secund(two):\n", "5\tdef second(two):"),
        (FILE, "return one\nreturn two\n", "2\t    return one\n3\t}"),  # the first of two as near
        (FILE, "return two\nreturn one\n", "1\tdef first(one):\n2\t    return one"),
        ("return one\n", "x\ny\nz\nreturn one\n", "1\treturn one"),
        ("x\n" * 50 + "\n", "x\nno\n", "1\tx\n2\tx"),
        ("x\n" * 51 + "\n", "x\nno\n", "1\tx\n2\tx\n3\tx"),  # it is everywhere
    ],
)
def test_the_lines_are_shown_that_have_most_in_common(text: str, old: str, shown: str):
    assert nearest(Lines(text), old) == shown


def test_three_similar_lines_are_shown_in_the_order_of_the_file():
    text = "".join(f"  value_{letter} = {letter}\n" for letter in "abcde") + "other\nvalue_xy = x\n"
    shown = nearest(Lines(text), "\tvalue_x = x\n").split("\n")
    assert shown[2:] == ["7\tvalue_xy = x"]
    assert sorted(shown[:2]) == shown[:2]
    assert len(shown) == 3
