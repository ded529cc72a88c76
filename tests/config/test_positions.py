import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rows import every_row
from timing import takes_at_most
from ybs.config.positions import Broken, Scan

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)

#: JSON with a sign too few or too many, which is JSON at times.
nearly_json = st.builds(
    lambda value, at, sign, cut: (text := json.dumps(value))[:at] + sign + text[at + cut :],
    JSON,
    st.integers(0, 30),
    st.sampled_from(["", " ", "\n", ",", "0", "}", "]", '"']),
    st.integers(0, 1),
)


@every_row(
    ("text", "words", "line", "path"),
    [
        ("", "too early", 1, ()),
        ("{", "too early", 1, ()),
        ('{"a"', "colon", 1, ()),
        ('{"a": ', "too early", 1, ("a",)),
        ('{"a":\n1', "too early", 2, ("a",)),
        ('{"a": 1,', "too early", 1, ("a",)),
        ('{"a": 1,\n}', "comma too many", 2, ("a",)),
        ('{"a": [1,]}', "comma too many", 1, ("a", 0)),
        ('{"a": 1\n"b": 2}', "comma is missing", 2, ("a",)),
        ("{a: 1}", "double quotes", 1, ()),
        ("{'a': 1}", "unexpected character", 1, ()),
        ('{"a": }', "value is missing", 1, ("a",)),
        ('{"a": "x\n"}', "is not closed", 1, ("a",)),
        ('{"a": [[1, 2}', "comma is missing", 1, ("a", 0, 1)),
        ('{"\\ud800": 1}', "a key contains", 1, ()),
        ("{} {}", "text after the end", 1, ()),
        ("[" * 60, "too early", 1, (0,) * 40),
        ('{"a": 1 // why\n}', "unexpected character", 1, ("a",)),
    ],
)
def test_broken_text_names_line_and_key(text: str, words: str, line: int, path: tuple[Any, ...]):
    with pytest.raises(Broken, match=words) as caught:
        Scan(text)
    assert (caught.value.line, caught.value.path) == (line, path)


@every_row(
    ("value", "words"),
    [
        ("NaN", "`NaN` is not valid JSON"),
        ("-Infinity", "`-Infinity` is not valid JSON"),
        ("True", "`True` is not valid JSON"),
        ("01", "`01` is not valid JSON"),
        ("1e999", "out of range"),
        ("9" * 5000, "out of range"),
        (r'"\ud800"', "a character that JSON does not allow"),
        (r'"\x"', "a character that JSON does not allow"),
    ],
)
def test_a_value_that_json_forbids_costs_only_itself(value: str, words: str):
    scan = Scan(f'{{"a": 1,\n "b": [{value}],\n "c": {value}, "d": 4}}')
    assert scan.value["a"] == 1
    assert "c" not in scan.value
    assert scan.value["d"] == 4
    assert scan.problems[-1][0] == ("c",)
    assert words in scan.problems[-1][1]


def test_a_nest_that_is_too_deep_is_cut_off_where_it_is():
    scan = Scan('{"a": ' + "[" * 50 + '{"x": "]"}' + "]" * 50 + ', "b": 2}')
    assert scan.value["b"] == 2
    assert scan.problems == [(("a", *[0] * 39), "it is nested deeper than 40 levels")]


def test_problems_are_counted_up_to_a_limit():
    assert len(Scan("[" + ",".join(["NaN"] * 1000) + "]").problems) == 100


def test_every_key_has_its_line():
    text = '{\n"a": {\n\n"b.c": [1,\n {"d": "x"}]}\n}'
    assert Scan(text).lines == {
        ("a",): 2,
        ("a", "b.c"): 4,
        ("a", "b.c", 0): 4,
        ("a", "b.c", 1): 5,
        ("a", "b.c", 1, "d"): 5,
    }


@pytest.mark.integration
@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_valid_json_is_read_as_json_does(value: Any, indent: int | None, is_ascii: bool):
    scan = Scan(json.dumps(value, indent=indent, ensure_ascii=is_ascii))
    assert scan.value == value
    assert scan.problems == []


@pytest.mark.integration
@given(st.text(alphabet='{}[]",:\\ \n0aeN-.', max_size=60) | nearly_json)
@example('{"a": [0, {"0": -0.0}], "": [] }')
def test_nonsense_is_broken_or_a_value_and_nothing_else(text: str):
    broken = scan = None
    try:
        scan = Scan(text)
    except Broken as error:
        broken = error
    if broken is not None:
        assert 1 <= broken.line <= text.count("\n") + 1
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(text)
    elif scan is not None and not scan.problems:
        assert scan.value == json.loads(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "[" * 256_000,
        "[" + "[]," * 85_000 + "[]]",
        '{"a": "' + "\\" * 255_990,
        '{"a": "' + '\\"' * 127_990,
        '{"' + '":1,"' * 51_000,
        " " * 256_000,
        "-" * 256_000,
    ],
    ids=["open", "wide", "slashes", "quotes", "names", "spaces", "dashes"],
)
def test_the_largest_file_takes_little_time_whatever_it_holds(text: str):
    with takes_at_most(2.5), suppress(Broken):
        Scan(text)
