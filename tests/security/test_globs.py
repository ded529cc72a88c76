"""Glob patterns."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.security.paths.globs import compiled

PATHS = [
    "a.py",
    "b.ts",
    "src/a.py",
    "src/b.tsx",
    "src/deep/c.py",
    ".github/x.yml",
    "a[1].py",
    "a,b",
]


@every_row(
    ("pattern", "expected"),
    [
        ("*.py", ["a.py", "a[1].py"]),
        ("**/*.py", ["a.py", "src/a.py", "src/deep/c.py", "a[1].py"]),
        ("**", PATHS),
        ("src/**", ["src/a.py", "src/b.tsx", "src/deep/c.py"]),
        ("src/*.{py,tsx}", ["src/a.py", "src/b.tsx"]),
        ("{src/deep,nowhere}/*.py", ["src/deep/c.py"]),
        ("{**/c,b}.{py,ts}", ["b.ts", "src/deep/c.py"]),
        ("?.py", ["a.py"]),
        ("[ab].*", ["a.py", "b.ts"]),
        ("[!a].*", ["b.ts"]),
        ("a\\[1\\].py", ["a[1].py"]),
        ("a,b", ["a,b"]),
        ("{a,x},b", ["a,b"]),
        ("**/.py", []),
        ("{a", []),
        ("**/deep/*", ["src/deep/c.py"]),
        ("s*c/a.py", ["src/a.py"]),
    ],
)
def test_a_pattern_matches_whole_paths(pattern: str, expected: list[str]):
    fits = compiled(pattern).fullmatch
    assert [path for path in PATHS if fits(path)] == expected


def test_brackets_and_braces_may_stand_for_themselves_as_well():
    for name in ("[id]", "[user-id]", "[[...slug]]", "[!x]", "{{name}}", "{a}b{c}"):
        assert compiled(f"x/{name}/**", names_too=True).fullmatch(f"x/{name}/a.py"), name
    fits = compiled("[ab]/{x,y}/{z}", names_too=True).fullmatch
    assert all(map(fits, ("a/x/z", "b/y/z", "[ab]/x/{z}")))
    assert not any(map(fits, ("c/x/z", "a/{x,y}/z", "[ab/x/z")))
    assert not compiled("[id]/{z}").fullmatch("[id]/{z}")


def test_neither_a_star_nor_a_class_crosses_a_folder():
    assert not compiled("src*a.py").fullmatch("src/a.py")
    assert not compiled("src[!x]a.py").fullmatch("src/a.py")
    assert not compiled("src[+-0]a.py").fullmatch("src/a.py")


@every_row("pattern", ["[z-a]", "}x{"])
def test_nonsense_is_an_error(pattern: str):
    with pytest.raises(re.error):
        compiled(pattern)


@pytest.mark.integration
@given(st.text(alphabet="ab/.*?[]{},!\\", max_size=12))
def test_any_text_compiles_or_is_an_error(pattern: str):
    with suppress(re.error):
        compiled(pattern).fullmatch("a/b.a")
