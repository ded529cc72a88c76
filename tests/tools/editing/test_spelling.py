"""What looks the same is the same where an edit is looked for, by the names that Unicode gives it."""

from unicodedata import lookup, normalize

from rows import every_row
from ybs.tools.editing.lines import (
    Lines,
    indent_of,
    is_recognisable,
    key_of,
    plain,
    plain_in_place,
    says_enough,
    says_something,
    spaced,
)


def test_full_width_forms_are_their_plain_characters():
    forms = [lookup(name) for name in ("FULLWIDTH EXCLAMATION MARK", "FULLWIDTH TILDE")]
    for code in range(ord(forms[0]), ord(forms[1]) + 1):
        assert plain(chr(code)) == normalize("NFKC", chr(code))
    assert plain(other := lookup("FULLWIDTH LEFT WHITE PARENTHESIS")) == other


@every_row(
    "name",
    [
        *("ZERO WIDTH SPACE", "ZERO WIDTH NON-JOINER", "ZERO WIDTH JOINER", "WORD JOINER"),
        "ZERO WIDTH NO-BREAK SPACE",
    ],
)
def test_what_has_no_width_is_not_there(name: str):
    assert key_of(f"na{lookup(name)}me = 1") == key_of("name = 1")


@every_row(
    "text, something, enough, recognisable",
    [
        ("", False, False, False),
        ("{_}", False, False, False),
        ("{ x }", True, False, False),
        ("abc = 1", True, False, False),  # five signs
        ("abc = 12", True, False, True),
        ("ab = ((_))", True, False, False),  # two letters
        ("abcdefg", True, False, True),
        ("a b c d e f g 8", True, True, True),
    ],
)
def test_a_text_is_recognised_by_its_letters_and_digits(
    text: str, something: bool, enough: bool, recognisable: bool
):
    found = says_something(text), says_enough(text), is_recognisable(text)
    assert found == (something, enough, recognisable)


def test_a_place_in_plain_signs_is_the_same_place_in_the_text():
    text = f"a{lookup('LEFT DOUBLE QUOTATION MARK')}b{lookup('HORIZONTAL ELLIPSIS')}{lookup('FULLWIDTH COLON')}"
    assert plain_in_place(text) == f'a"b{lookup("HORIZONTAL ELLIPSIS")}:'
    assert plain_in_place("a b") == plain("a b") == "a b"
    assert spaced(f"\ta{lookup('EN QUAD')} b\n") == "a b"
    assert [indent_of(line) for line in ("\t a b ", "a", "  ")] == ["\t ", "", "  "]


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
