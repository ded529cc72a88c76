"""Values of another type than the schema's."""

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from rows import every_row
from ybs.tools.calls.arguments import Unfit, converted, joined


class Item(Struct):
    name: str
    count: int = 1


Word = Literal["files", "Content"]


@every_row(
    ("value", "kind", "expected"),
    [
        ("5", int, 5),
        (" 5 ", int, 5),
        ("5.0", int, 5),
        (5.0, int, 5),
        ("-1.5", float, -1.5),
        ("true", bool, True),
        ("False", bool, False),
        ("yes", bool, True),
        ("NO", bool, False),
        (1, bool, True),
        ("null", int | None, None),
        ('["a", "b"]', list[str], ["a", "b"]),
        ('{"name": "a"}', Item, Item("a")),
        ('[{"name": "a"}]', list[Item], [Item("a")]),
        ({"name": "a"}, list[Item], [Item("a")]),
        ("a", list[str], ["a"]),
        (["a"], str, "a"),
        (["5"], int, 5),
        (["1", "2"], list[int], [1, 2]),
        ("FILES", Word, "files"),
        ("content", Word | None, "Content"),
        (["Files"], Word, "files"),
    ],
)
@every_row("is_careful", [False, True])
def test_what_is_certain_is_converted(value: Any, kind: Any, expected: Any, is_careful: bool):
    found = converted(value, kind, is_careful=is_careful)
    assert found == expected
    assert type(found) is type(expected)


@every_row(("value", "text"), [(5, "5"), (1.5, "1.5"), (True, "true")])
def test_a_number_is_a_text_only_for_reading(value: Any, text: str):
    assert converted(value, str, is_careful=False) == text
    with pytest.raises(Unfit):
        converted(value, str, is_careful=True)


@every_row(
    ("value", "kind"),
    [
        ("many", int),
        ("5.5", int),
        (5.5, int),
        ("nan", float),
        ("1e999", float),
        ("maybe", bool),
        (2, bool),
        ({"a": 1}, str),
        (["a", "b"], str),
        ([], str),
        ('["a", "b"', list[str]),
        ("[1, 2]", list[str]),
        ("word", Word),
        (" 7 ", Annotated[str, Meta(max_length=1)]),
        ("0", Annotated[int, Meta(ge=1)]),
        ("[" * 100_000, list[int]),
    ],
)
@every_row("is_careful", [False, True])
def test_what_would_be_made_up_is_not(value: Any, kind: Any, is_careful: bool):
    with pytest.raises(Unfit):
        converted(value, kind, is_careful=is_careful)


def test_a_word_that_could_be_two_is_neither():
    with pytest.raises(Unfit):
        converted("AB", Literal["ab", "Ab"], is_careful=False)


@every_row(
    ("command", "text"),
    [
        (["bash", "-lc", "echo 'a b'"], """bash -lc 'echo '"'"'a b'"'"''"""),
        (["ls", "a b", "$x"], "ls 'a b' '$x'"),
        (["ls -la"], ""),  # no list of words, but one command in a list
        (["ls", 1], ""),
        ("ls", ""),
        ([], ""),
    ],
)
def test_only_a_list_of_words_is_joined_as_a_command(command: Any, text: str):
    assert joined(command) == text
