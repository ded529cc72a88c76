import pytest

from rows import every_row
from ybs.config.variables import Unset, has_reference, replace_references


def test_an_unset_variable_is_named():
    with pytest.raises(Unset, match="NOPE"):
        replace_references("a ${NOPE} b", {})


@every_row(
    ("text", "expected"),
    [
        ("${A}", "1"),
        ("x${A}y${A}z", "x1y1z"),
        ("${EMPTY}", ""),
        ("$${A}", "${A}"),
        ("$A {A} ${} ${1} ${a-b} $", "$A {A} ${} ${1} ${a-b} $"),
        ("${NESTED}", "${A}"),
    ],
)
def test_references_are_replaced_once(text: str, expected: str):
    assert replace_references(text, {"A": "1", "EMPTY": "", "NESTED": "${A}"}) == expected


def test_a_reference_is_seen_and_an_escaped_one_is_none():
    assert has_reference("a${A}")
    assert has_reference("$${A}${B}")
    assert not has_reference("$${A}")
    assert not has_reference("$A ${}")
