r"""Names as text: one spelling for each name, and one name for each spelling."""

import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.security.paths.names import real_name, shown_name
from ybs.security.unicode import has_suspects


@every_row(
    ("name", "shown"),
    [
        (b"a.txt", "a.txt"),
        ("grün".encode(), "grün"),
        (b"caf\xe9", r"caf\xe9"),
        (b"a\nb\x1b\x7f", r"a\x0ab\x1b\x7f"),
        (b"\xc2\x9b", r"\xc2\x9b"),
        ("a\u3164".encode(), r"a\xe3\x85\xa4"),  # a letter to Unicode, and nobody sees it
        (rb"a\b", r"a\b"),
        (rb"a\x41", r"a\x41"),
        (rb"a\x0A", r"a\x5cx0A"),
        (rb"a\x5c", r"a\x5cx5c"),
    ],
)
def test_a_name_is_shown_with_a_mark_for_each_odd_byte(name: bytes, shown: str):
    assert shown_name(os.fsdecode(name)) == shown
    assert os.fsencode(real_name(shown)) == name


def test_marks_that_are_one_character_together_become_it():
    assert real_name(r"\xc3\xbc") == "ü"


@pytest.mark.integration
@given(st.binary(max_size=12) | st.from_regex(rb"(\\|x|0|a|5c|\n|\xff|\xc3|\xa9){0,9}"))
def test_every_name_comes_back_and_is_printable(name: bytes):
    path = os.fsdecode(name)
    shown = shown_name(path)
    assert real_name(shown) == path
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert not {"Cc", "Cs", "Zl", "Zp"} & {unicodedata.category(sign) for sign in shown}
    assert not has_suspects(shown)


@pytest.mark.integration
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_what_is_shown_means_one_name_only(text: str):
    path = real_name(text)
    assert real_name(shown_name(path)) == path
