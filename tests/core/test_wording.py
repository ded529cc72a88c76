from rows import every_row
from ybs.core.wording import first_words, listed, plural


@every_row(
    "count, noun, words",
    [
        (0, "line", "0 lines"),
        (1, "line", "1 line"),
        (1_200, "line", "1,200 lines"),
        (1, "match", "1 match"),
        (2, "match", "2 matches"),
    ],
)
def test_a_count_has_its_noun(count: int, noun: str, words: str):
    assert plural(count, noun) == words


def test_many_names_are_told_in_part():
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed("abcde") == "a, b, c, d, e"
    assert listed("abcdef", 4) == "a, b, c, d and 2 more"


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
        ("é" * 7, 5, "éééé…"),
        ("日a", 2, "…"),
    ],
)
def test_the_beginning_of_a_text_takes_no_more_columns_than_there_are(text, most, shown):
    assert first_words(text, most) == shown
