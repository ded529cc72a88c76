from rows import every_row
from ybs.core.wording import listed, plural


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
