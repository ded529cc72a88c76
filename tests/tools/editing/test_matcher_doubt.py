"""Edits whose meaning is in doubt are refused, and slips that would break code are mended."""

import pytest

from rows import every_row
from ybs.tools.editing.matcher import EditMatch, Refusal, find, unescaped

METHOD = "class A:\n    def one(self):\n        return 1\n\nx = 2\n"
DEEP = "def f():\n    if a:\n        call(1)\n    end(1)\n"
TWO = "def a():\n    x()\n    return 5\n\ndef b():\n    y()\n    return 1\n"
QUERY = 'def f(db):\n    rows = db.run("SELECT name FROM orders")\n    log_rows(rows)\n    return rows\n'
MAP = "m = {\n  1: 'one value',\n  4: 'three value',\n}\n"
CALLS = "def f():\n    first_call()\n    second_call()\n"


def edited(text: str, old: str, new: str) -> str:
    """Return the text as an edit that is found in one place leaves it."""
    found = find(text, old, new)
    assert isinstance(found, EditMatch), found
    (place,) = found.places
    return text[: place.start] + place.new + text[place.stop :]


@every_row(
    ("text", "old", "new", "reason"),
    [
        (
            METHOD,
            "def one(self):\n        return 1\n",
            "def one(self):\n        return 1\n\ndef two(self):\n        return 2\n",
            "indentation",
        ),
        (DEEP, "    call(1)\n", "    call(1)\n  else:\n    other(1)\n", "indentation"),
        (DEEP, "call(1)\n", "\n\ncall(2)\n", "indentation"),
        (METHOD, "def one(self):\n        return 1\n", "return 1\n", "indentation"),
        ("1\talpha beta\n4\tgamma delta\n", "3\tgamma delta", "3\tgamma x", "absent"),
        (MAP, "  3: 'three value',\n", "  3: 'drei value',\n", "absent"),
        ('say("x")\nsay("x")\n', 'say(\\"x\\")', 'say("x")', "unchanged"),
        (TWO, "def a():\n    ...\n    return 1\n", "def a():\n    ...\n    return 2\n", "absent"),
        (QUERY, QUERY.replace("orders", "users"), QUERY.replace("log", "print"), "absent"),
        ("f = [\n    a,\n    b,\n]\n", "    a,\n", "    a,\n    b,\n", "applied"),
        ('v = "1.0.1"\n', '"1.0', '"1.0.1', "applied"),
    ],
)
def test_an_edit_in_doubt_is_refused(text: str, old: str, new: str, reason: str):
    found = find(text, old, new)
    assert not isinstance(found, EditMatch), found
    assert found.reason == reason


def test_replace_all_does_not_change_what_is_changed():
    found = find("x = foo\ny = foo_bar\n", "foo", "foo_bar", replace_all=True)
    assert not isinstance(found, EditMatch)
    assert (found.reason, found.lines) == ("applied", (2,))


@every_row("quoted", ["print('x\\n')", "if (c == '\\n') x();"])
def test_an_escape_within_single_quotes_does_not_become_a_line_end(quoted: str):
    old = "    first_call()\\n    second_call()"
    new = f"    first_call()\\n    {quoted}\\n    second_call()"
    assert not isinstance(find(CALLS, old, new), EditMatch)


@every_row(
    ("text", "old", "new", "wanted"),
    [
        ("row = [0, 0]\n", "[0", "[0, 0", "row = [0, 0, 0]\n"),
        ("def f\n  foo\nend\n", "  foo\n", "  foo\nend\n", "def f\n  foo\nend\nend\n"),
    ],
)
def test_more_of_the_same_may_be_added(text: str, old: str, new: str, wanted: str):
    assert edited(text, old, new) == wanted


@every_row(
    ("old", "new", "wanted"),
    [
        ("call(1)\n", "", "def f():\n    if a:\n    end(1)\n"),
        ("call(1)\n", "call(2)", DEEP.replace("call(1)", "call(2)")),
        ("call(1)\n", "if b:\n    call(1)\n", DEEP.replace("call", "if b:\n            call")),
        (
            "call(1)  \n",
            "call(1)\n        more(1)\n",
            DEEP.replace("    end", "        more(1)\n    end"),
        ),
    ],
)
def test_an_indentation_left_out_leaves_none_behind(old: str, new: str, wanted: str):
    assert edited(DEEP, old, new) == wanted
    found = find(DEEP, old, new)
    assert isinstance(found, EditMatch)
    assert "indentation" in found.how


@pytest.mark.integration
def test_many_places_are_told_in_time():
    found = find("abc " * 100_000 + "\n" * 100_000, "abc", "x")
    assert not isinstance(found, EditMatch)
    assert len(found.lines) == 100_000


def test_a_change_of_all_lines_is_refused_where_a_blank_line_between_them_was_overlooked() -> None:
    text = "first_call(1)\nsecond_call(2)\n\nlast_call(3)\n"
    found = find(text, text.replace("\n\n", "\n"), "other(1)\nmore(2)\n")
    assert not isinstance(found, EditMatch)


def test_a_new_line_among_blank_lines_that_only_the_model_has_brings_none() -> None:
    text = "first_call(1)\nsecond_call(2)\nlast_call(3)\n"
    old = text.replace("\n", "\n\n")[:-1]
    new = "first_call(1)\n\nsecond_call(2)\nmore(4)\nlast_call(3)\n"
    assert edited(text, old, new) == new.replace("\n\n", "\n")


@every_row(
    "text, old, wanted",
    [
        ("first_call()\n  second_call()", "second_call()  ", "first_call()"),
        ("first_call()\n  second_call()\n", "second_call()  ", "first_call()\n"),
        ("  only_call()", "only_call()  ", ""),
        ("\n  only_call()\n", "only_call()  \n", "\n"),
        ("  first_call()\nsecond_call()", "first_call()  ", "second_call()"),
    ],
)
def test_a_line_that_goes_leaves_no_line_end_behind(text: str, old: str, wanted: str):
    assert edited(text, old, "") == wanted


@every_row("text, is_exact", [("first_call()\n" * 2, True), (" first_call() \n" * 2, False)])
def test_a_refusal_says_whether_the_places_have_the_very_text(text: str, is_exact: bool):
    found = find(text, "first_call()\n", "x()\n")
    assert isinstance(found, Refusal)
    assert (found.reason, found.lines, found.is_exact) == ("ambiguous", (1, 2), is_exact)
    assert (found.nearest, found.placeholder) == ("", "")


def test_where_the_likeliest_reading_of_escapes_is_not_there_another_one_is_tried():
    text = '# one\\n two\nsay("two")\n'  # an escape of the file, and plain quotes
    old = '# one\\n two\nsay(\\"two\\")\n'
    assert edited(text, old, old.replace("one", "three")) == text.replace("one", "three")


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
