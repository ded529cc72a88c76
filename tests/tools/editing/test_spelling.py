"""What looks the same is the same where an edit is looked for, by the names that Unicode gives it."""

from unicodedata import lookup, normalize

from rows import every_row
from ybs.tools.editing.spelling import (
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


def test_an_ellipsis_is_three_dots():
    assert plain(f"a{lookup('HORIZONTAL ELLIPSIS')}") == "a..."


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
