"""Cuts of a text that go through no word."""

import re

import pytest

from rows import every_row
from ybs.core.cutting import (
    LONGEST_WORD,
    first_words,
    from_word,
    last_words,
    shortened,
    up_to_word,
    whole_words,
)


@every_row(
    ("text", "place", "before", "behind"),
    [
        ("one two three", 4, "one ", "two three"),
        ("one two three", 7, "one two", " three"),
        ("one two three", 6, "one ", " three"),
        ("one two", 7, "one ", ""),
        ("one", 2, "", ""),
        ('{"key":"abcdef"}', 10, '{"key":"', '"}'),
        ("一二三四五六", 3, "一二三", "四五六"),
        ("x" * 2 * LONGEST_WORD, 9, "x" * 9, "x" * (2 * LONGEST_WORD - 9)),
    ],
)
def test_a_word_that_is_cut_is_on_no_side(text: str, place: int, before: str, behind: str) -> None:
    assert (up_to_word(text, place), from_word(text, place)) == (before, behind)


@pytest.mark.integration
@every_row("sign", ["&q=", "?", "#", "/", ":", "=", "%26", "+", "@", "\\"])
def test_in_a_run_that_is_too_long_for_a_word_the_cut_is_at_a_sign(sign: str) -> None:
    part = "ghp_" + "OUYd27XwR5y9.USEi-UdQA1q5gS5Sl"
    whole = ("", "q", "26", part, f"26{part}")
    text = "https://h.example/?state=1&p=" + sign.join([part] * 400)
    for place in range(6_000, 6_050):
        before, behind = up_to_word(text, place), from_word(text, place)
        assert re.split(r"[^\w.-]", before)[-1] in whole
        assert re.split(r"[^\w.-]", behind)[0] in whole
        assert place - len(before) <= len(part + sign) >= len(before) + len(behind) - len(text)


def test_of_an_end_that_may_go_on_half_stays() -> None:
    assert (up_to_word("a bcd"), up_to_word("abcd")) == ("a ", "ab")
    assert (from_word("abc d"), from_word("abcd")) == ("c d", "cd")


def test_a_text_that_fits_is_whole() -> None:
    assert (whole_words("one two", 7), whole_words("one two", 6)) == ("one two", "one ")


@every_row(
    ("text", "most", "shown"),
    [
        ("a b\n c", 5, "a b c"),
        ("a b\n c", 4, "a b…"),
        ("a" + " " * 40 + "b", 6, "a b"),
        ("abcd efgh", 6, "abcd…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本 語", 6, "日本…"),
        ("é" * 5, 5, "é" * 5),
        ("é" * 7, 5, "…"),
        ("is " + "é" * 7, 9, "is…"),
        ("日a", 2, "…"),
    ],
)
def test_the_beginning_of_a_text_takes_no_more_columns_than_there_are(text, most, shown):
    assert first_words(text, most) == shown


def test_what_was_left_out_is_said_and_no_part_of_a_word_is_left() -> None:
    assert (shortened("one two", 7), shortened("one two", 6)) == ("one two", "one…")
    assert shortened("one, two", 7) == "one…"
    assert shortened("x" * 9, 8) == "…"
    assert (last_words("one two", 7), last_words("one two", 6)) == ("one two", " two")
