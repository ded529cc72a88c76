"""Cuts of a text that go through no word."""

from rows import every_row
from ybs.core.cutting import LONGEST_WORD, from_word, up_to_word, whole_words


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


def test_of_an_end_that_may_go_on_half_stays() -> None:
    assert (up_to_word("a bcd"), up_to_word("abcd")) == ("a ", "ab")
    assert (from_word("abc d"), from_word("abcd")) == ("c d", "cd")


def test_a_text_that_fits_is_whole() -> None:
    assert (whole_words("one two", 7), whole_words("one two", 6)) == ("one two", "one ")
