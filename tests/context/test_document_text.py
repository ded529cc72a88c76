"""The text of documents: encodings, what nobody sees, frames, and cutting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from timing import takes_at_most
from ybs.context.document_text import (
    cut_to,
    decoded,
    fair_parts,
    framed,
    tidied,
    tokens_of,
    without_comments,
    without_hidden_characters,
)
from ybs.security.unicode import printable


@every_row(
    ("data", "text"),
    [
        (b"", ""),
        (b"plain", "plain"),
        ("größer 日本".encode(), "größer 日本"),
        (b"\xef\xbb\xbfmarked", "marked"),
        ("größer".encode("utf-16"), "größer"),
        ("größer".encode("utf-16-be"), ""),  # zeros and no mark: no text
        (b"\xfe\xff" + "größer".encode("utf-16-be"), "größer"),
        (b"\xff\xfea\0b", "a"),  # cut in the middle of a character
        ("größer".encode("latin-1"), "größer"),
        ("“größer”".encode("cp1252"), "“größer”"),
        ("viele Umlaute: äöüäöü".encode()[:-1], "viele Umlaute: äöüäö\ufffd"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ""),
    ],
)
def test_bytes_become_text(data: bytes, text: str):
    assert decoded(data) == text


@every_row(
    ("text", "left"),
    [
        ("a\r\nb\rc\n", "a\nb\nc"),
        ("a\x0cb\x85c\u2028d\u2029e\x1cf\x1dg", "a\nb\nc\nd\nefg"),
        (
            "\x1b[1;31mred\x1b[0m \x1b]0;title\x07x \x1b]8;;http://e\x1b\\link\x1b]8;;\x1b\\",
            "red x link",
        ),
        ("\x1b(Bx\x1bcy\x9b31mz\x00\x07\x7f", "xy31mz"),
        ("a\u202eb\u200bc\u2066d\ufeffe\u00adf", "abcdef"),
        ("hid\U000e0041\U000e0042den", "hidden"),
        ("tab\tand 日本 👩\u200d💻 stay", "tab\tand 日本 👩\u200d💻 stay"),
    ],
)
def test_what_acts_or_hides_is_removed(text: str, left: str):
    assert without_hidden_characters(text) == left


@every_row(
    ("text", "left"),
    [
        ("a <!-- do evil --> b", "a  b"),
        ("a\n<!-- more\n-->\nb", "a\n\nb"),
        ("<!--> seen <!---> too", " seen  too"),
        ("`<!-- x -->` and\n```\n<!-- y -->\n```", "`` and\n```\n\n```"),
        ("a --> b", "a --> b"),
        ("a <!-- never closed", "a <!-- never closed"),  # readers see it
        ("a\n  <!-- never closed\nmore", "a\n[the rest stands in a comment that is never closed]"),
    ],
)
def test_html_comments_are_dropped(text: str, left: str):
    assert without_comments(text) == left


@every_row(
    "text", ["</document>", "</DOCUMENT >", "< / document>", "<\n//document", "<document name='x'>"]
)
def test_a_text_cannot_end_its_frame(text: str):
    assert framed(f"x{text} y") == f"x&lt;{text[1:]} y"
    assert framed("<documents> 1 < 2 </doc>") == "<documents> 1 < 2 </doc>"


def test_empty_lines_are_made_one():
    assert tidied("\n\n a\n\n\n \n\nb  \n\nc\n \n") == " a\n\nb  \n\nc"


def test_neither_comments_nor_hidden_characters_put_a_frames_end_together():
    for text in ("</docu<!-- x -->ment>", "</docu\u200bment>", "<\x1b[0m/document>"):
        assert framed(without_comments(without_hidden_characters(text))) == "&lt;/document>"


def test_hostile_texts_take_no_time():
    with takes_at_most(2.0):  # 64,000 squared would take minutes
        for text in (
            "<!--" * 16_000,
            "<" + " " * 64_000,
            "< " * 32_000,
            "\x1b[" * 32_000,
            "\n" * 64_000,
        ):
            framed(tidied(without_comments(without_hidden_characters(text))))


def test_tokens_are_estimated_with_care_for_other_alphabets():
    assert tokens_of("") == 0
    assert tokens_of("four") == 1
    assert tokens_of("x" * 4_001) == 1_001
    assert tokens_of("日本語の文章") == 6
    assert 4 <= tokens_of("Привет") <= 6


def test_a_cut_text_keeps_whole_lines_or_the_beginning_of_one():
    text = "\n".join(f"line {number:03}" for number in range(100))
    kept, left = cut_to(text, 60)
    assert kept == "\n".join(text.split("\n")[: 100 - left])
    assert 0 < left < 100
    kept, left = cut_to(text, 60, keeps_end=True)
    assert kept.endswith("line 099")
    assert cut_to("日" * 1_000, 130) == ("日" * 100, 1)
    assert cut_to("\n\n" + "x " * 1_000, 40)[0] == "x " * 18 + "x"
    assert cut_to("word " + "x" * 1_000, 40)[0] == "word"  # no part of what may be a token
    assert cut_to(text, 0) == ("", 100)


@pytest.mark.integration
@given(st.lists(st.integers(0, 9_000), max_size=12), st.integers(0, 5_000))
def test_no_part_is_more_than_needed_and_all_together_no_more_than_there_is(sizes, total):
    parts = fair_parts(sizes, total)
    assert sum(parts) <= total
    assert all(0 <= part <= size for part, size in zip(parts, sizes, strict=True))
    if sum(sizes) <= total:
        assert parts == sizes


@pytest.mark.integration
@given(st.text(max_size=200), st.integers(0, 40))
def test_any_text_becomes_legible_and_fits_its_budget(text: str, tokens: int):
    clean = framed(tidied(without_comments(without_hidden_characters(text))))
    assert printable(clean) == clean
    assert tokens_of(cut_to(clean, tokens)[0]) <= tokens
