"""Backslashes that a model adds are taken away where that leaves a sound text."""

from rows import every_row
from ybs.tools.editing.matcher import unescaped


def test_each_reading_is_another_text_and_an_escape_of_an_expression_stays():
    old = r"""re.compile(\"\d+\")\nx = 1"""
    readings = [text for text, _ in unescaped(old, old)]
    assert len({old, *readings}) == len(readings) + 1
    assert 're.compile("\\d+")\nx = 1' in readings
    assert all(r"\d" in text for text in readings)


def test_a_line_end_that_was_meant_to_stay_in_a_string_is_not_broken():
    old = r"x = 1\ny = 2"
    assert list(unescaped(old, r'x = 1\nprint("a\nb")')) == []
    assert list(unescaped(old, r"x = 1\nprint('a\nb')")) == []
    assert ("x = 1\ny = 2", 'x = 1\nprint("a")') in list(unescaped(old, r'x = 1\nprint("a")'))


def test_an_apostrophe_alone_is_no_string():
    assert ("x\ny", "x\n# all users' own") in list(unescaped(r"x\ny", r"x\n# all users' own"))


@every_row(
    "line, is_sound",
    [
        ("a = 'b'\\nc = 'd'", True),
        ('a = "b"\\nc = "d"', True),
        ('a = "b" + "', False),
        ("a = 'b\\nc = 'd", False),
        ("a = 'b' + '\\nc = 'd' + '", False),
        ("a = 'b\\nc = 4", True),  # an apostrophe, perhaps
        ("it's\\nits don't", True),  # within words
    ],
)
def test_a_reading_that_breaks_a_string_of_a_new_line_is_not_offered(line: str, is_sound: bool):
    readings = [new for _, new in unescaped("x\\ny", f"x\\n{line}")]
    assert ("x\n" + line.replace("\\n", "\n") in readings) == is_sound
