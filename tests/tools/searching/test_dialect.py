"""The dialect of search patterns: what it takes, what it refuses, and the text it surely needs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.core.errors import ToolError
from ybs.tools.searching.dialect import pattern_of


def fits(pattern: str, line: str, **options: bool) -> bool:
    """Return whether the pattern matches in the line, as text and, where it can be, as bytes."""
    read = pattern_of(pattern, **options)
    answer = re.search(read.text, line, re.MULTILINE) is not None
    if line.isascii():
        data = re.search(read.data.encode(), line.encode(), re.MULTILINE) is not None
        assert data == answer
    if answer and read.seeds:
        assert any(seed in (line.lower() if read.folds else line) for seed in read.seeds)
    return answer


@every_row(
    ("pattern", "yes", "no"),
    [
        ("foo[[:space:]]+bar", "foo \t bar", "foobar"),
        ("[^_[:alpha:][:digit:]]", "a-b", "a_b2"),
        (r"\[[:x]", "[:", "x:"),
        (r"[]\]:[:punct:]]", "]", "a"),
        ("function() {", "function {", "function() {"),
        (r"\<foo\>", "a foo b", "afoob"),
        ("a(?i)b|c", "aB", "A"),
        ("a(?i)b|c", "C", "Ab"),
        ("(?i:a)b", "Ab", "AB"),
        ("(?i)a(?-i:b)", "Ab", "aB"),
        (r"(\w)\1", "aa", "ab"),
        (r"(?P<x>a)(?P=x)", "aa", "ab"),
        (r"(?<x>a)b", "ab", "ba"),
        ("a++b", "aab", "b"),
        ("(?>a|ab)c", "ac", "abc"),
        ("x(?!y)", "xz", "xy"),
        ("(?<=x)y", "xy", "zy"),
        (r"\x41\u0042\x{43}", "ABC", "abc"),
        ("a$", "a\r", "a\rb"),
        (r"\Aa\Z", "a", "ba"),
        (r"[^\S\n]x", " x", "ax"),
        (r"[\b\t-\v]", "\b", "b"),
        ("x{,2}y", "y", "x"),
        ("{a}", "{a}", "a"),
        ("(?#remark)a{2}?b", "aab", "ab"),
        (r"[\W]", "-", "a"),
        ("ü", "grün", "grun"),
        ("ü", "gr\udcfcn", "gr\udcf6n"),
        ("[à-ü]", "\udcfc", "u"),
        (".", "ü", "\udcfc"),
        (r"\S", "\x1c", "\xa0"),
        ("[^a]", "ü", "a\udcfc"),
        ("a|b", "b", "c"),
    ],
)
def test_patterns_of_the_dialect_match(pattern: str, yes: str, no: str):
    assert fits(pattern, yes)
    assert not fits(pattern, no)


def test_case_can_be_ignored():
    assert fits("Straße", "STRAßE", ignore_case=True)
    assert pattern_of("Error", ignore_case=True).seeds == ("error",)
    assert pattern_of("KISS me", ignore_case=True).seeds == (" me",)


@every_row(
    ("pattern", "words"),
    [
        ("(", "the ( at character 1 has no )"),
        (")", "a ) without its ("),
        ("[a", "has no ]"),
        ("[z-a]", "no order"),
        ("[a-\\d]", "no order"),
        ("[[:odd:]]", "[:odd:] is not known"),
        ("[\\n]", "within one line"),
        ("a\\n", "context_lines"),
        ("a\nb", "holds no line end"),
        ("\0", "NUL"),
        ("*a", "nothing to repeat"),
        ("{2}", "nothing to repeat"),
        ("^*", "nothing to repeat"),
        ("a**", "two repeats"),
        ("a{3,2}", "no order"),
        ("a{9999}", "too often"),
        ("a\\", "single backslash"),
        (r"\p{L}", "letters are"),
        (r"\Qa\E", r"\Q is not known"),
        (r"\x{110000}", "no character"),
        ("(?x)a", "flag x"),
        ("(?-u)a", "flag u"),
        ("(?R)", "flag R"),
        ("(?&x)", "is not known"),
        (r"(?<=a+)b", "look-behind"),
        (r"\1", "invalid group reference"),
        ("(" * 60 + ")" * 60, "groups in groups"),
        ("a" * 6000, "characters"),
    ],
)
def test_what_is_outside_is_refused_with_its_reason(pattern: str, words: str):
    with pytest.raises(ToolError) as caught:
        pattern_of(pattern)
    assert words in str(caught.value)


@every_row(
    ("pattern", "seeds"),
    [
        (r"def \w+\(", ("def ",)),
        (r"^\s*(def|class)\s", ("def", "class")),
        ("TODO|FIXME", ("TODO", "FIXME")),
        ("(abc)?d", ()),
        ("(abc)+d", ("abc",)),
        (r"im[p]ort\b os", ("import os",)),
        ("abc|", ()),
        ("a", ()),
        ("x(?!abc)", ()),
    ],
)
def test_a_pattern_tells_the_text_that_it_surely_needs(pattern: str, seeds: tuple[str, ...]):
    assert pattern_of(pattern).seeds == seeds


def test_only_what_both_engines_know_goes_to_rg():
    assert pattern_of(r"a.$").rg == r"a.(?:\r??$)"
    assert pattern_of("^a|(^[^b]$)").rg
    for pattern in ("x(?=y)", r"(a)\1", "a*+", "ü", r"\<a", "(?>a)", "a*$^", "x(^a)", "(a$)b"):
        assert pattern_of(pattern).rg == ""


@pytest.mark.integration
@given(st.text(alphabet="ab.*+?(){}[]^$|\\\\dwsnx1-:<=!#i,2é", max_size=12))
def test_any_text_is_read_or_refused(pattern: str):
    try:
        read = pattern_of(pattern)
    except ToolError:
        return
    re.compile(read.text)
    re.compile(read.data.encode())
