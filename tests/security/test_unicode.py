"""The output gate."""

import pytest

from rows import every_row
from ybs.security.unicode import hidden_characters, printable, unabridged

PLAIN = "def f():\n\treturn 'grün', '日本', '👩‍👩‍👧', 'می‌خواهم', '❤️'\n"


def test_plain_text_comes_back_as_the_same_object():
    assert printable(PLAIN) is PLAIN


@every_row(
    ("text", "shown"),
    [
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),  # T01
        ("\x1b[2Jx", "␛[2Jx"),  # T02
        ("a\rb\bc", "a␍b␈c"),
        ("\x9b31m\x9d0;t\x9c", "\\x9b31m\\x9d0;t\\x9c"),  # T03
        ("\x7f\x00", "␡␀"),
        ("x\u202ey\u2066z", "x<U+202E>y<U+2066>z"),
        ("\U000e0041", "<U+E0041>"),
        ("a\u200bb\ufeffc\u00add", "a<U+200B>b<U+FEFF>c<U+00AD>d"),
        ("\ud800", "<U+D800>"),
        ("a\u2028b", "a<U+2028>b"),
    ],
)
def test_what_acts_or_hides_is_shown(text: str, shown: str):
    assert printable(text) == shown
    shown.encode()


def test_colours_are_dropped_and_windows_line_ends_are_plain():
    assert printable("\x1b[1;31mred\x1b[0m\r\nnext\r\n") == "red\nnext\n"


def test_of_what_is_allowed_no_colour_and_no_line_end_is_dropped():
    assert unabridged("s\x1b[;make\r\nnext\r\n") == "s␛[;make␍\nnext␍\n"
    assert unabridged(PLAIN) is PLAIN
    assert unabridged("grün, 日本") == "grün, 日本"
    assert unabridged("\u202e\x1b[1m") == "<U+202E>␛[1m"


#: Default_Ignorable_Code_Point of Unicode 16 (DerivedCoreProperties.txt): what a font draws nothing for.
IGNORABLE = (
    "00ad 034f 061c 115f-1160 17b4-17b5 180b-180f 200b-200f 202a-202e 2060-206f 3164 fe00-fe0f feff ffa0 fff0-fff8"
    " 1bca0-1bca3 1d173-1d17a e0000-e0fff"
)


@pytest.mark.integration
def test_everything_that_a_font_draws_nothing_for_is_shown_between_letters():
    for row in IGNORABLE.split():
        first, _, last = row.partition("-")
        for code in range(int(first, 16), int(last or first, 16) + 1):
            assert printable(f"a{chr(code)}b") == f"a<U+{code:04X}>b"
            assert list(hidden_characters(f"a{chr(code)}b")) == [f"U+{code:04X}"]


def test_hidden_characters_are_named_once_each():
    assert list(hidden_characters("a\u202eb\u202ec\u200b")) == ["U+202E", "U+200B"]
    assert list(hidden_characters(PLAIN)) == []
