"""Which part of a line is one word of letters, and no name."""

from rows import every_row
from ybs.tools.editing.one_word import word_at


@every_row(
    "line, is_word",
    [
        ("the <care> of it", True),
        ("<care>", True),
        ("(<care>)", True),
        ("the (<care>) of", True),
        ("the (of <care>) x", True),
        ("the (<care>, it) x", True),
        ("do not <care>.", True),
        ("do not <care>: it", True),
        ("'the <care>.'", True),
        ("the (<care>). It", True),
        ("the (<care>): it", True),
        ("(the <care>.) It", True),
        ("the <care>...", True),
        ("the (<care>)_ x", False),
        ("the (<care>).x", False),
        ("call(<care>) x", False),
        ("the (<care> x", True),
        ("the <care>) x", False),
        ("the <care>.x", False),
        ("the <care>:x", False),
        ("the $<care> x", False),
        ("the <care>2 x", False),
        ("a=<care> x", False),
        ("x/<care> x", False),
        ("x[<care>] x", False),
    ],
)
def test_a_word_stands_between_spaces_or_in_brackets_of_a_sentence(line: str, is_word: bool):
    start, stop = line.index("<"), line.index(">") - 1
    text = line.replace("<", "").replace(">", "")
    assert word_at(text, start, stop) == ((start, stop) if is_word else None)


def test_a_part_of_a_word_means_the_whole_word_and_one_of_two_words_none():
    assert word_at("do take care", 4, 6) == (3, 7)
    assert word_at("do take care", 3, 3) == (3, 7)
    assert word_at("do take care", 5, 9) is None
    assert word_at("it is well-known to all", 6, 10) == (6, 16)
