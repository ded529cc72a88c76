"""Whether a file can be read as what its name says."""

import warnings

import pytest

from rows import every_row
from ybs.tools.editing.syntax import MOST_CHARS, Flaw, flaw_in, flaw_made, is_known


@pytest.mark.integration
@every_row(
    "name, text, why, line",
    [
        ("a.json", '{"a": 1}', "", 0),
        ("a.json", '{"a": 1,\n "b" 2}', "Expecting ':' delimiter", 2),
        ("a.json", "[" * 100_000, "too deeply nested", 1),
        ("a.json", " " * (MOST_CHARS + 1), "", 0),
        ("a.toml", "a = 1\n", "", 0),
        ("a.toml", "a = 1\nb = \n", "Invalid value", 2),
        ("a.toml", "a = 1\nb = '", 'Expected "\'"', 2),
        ("a.txt", "def f(:\n", "", 0),
        ("Makefile", "def f(:\n", "", 0),
        ("a.py", "def f(): return 1\n    return 2\n", "unexpected indent", 2),
        ("a.py", "def f():\nreturn 1\n", "expected an indented block after function definition", 2),
        ("a.py", "if x:\n        y\n    z\n", "unindent does not match any outer", 3),
        ("a.py", "x = f(1\n", "'(' was never closed", 1),
        ("a.py", "f(1))\n", "unmatched ')'", 1),
        ("a.py", "def f()\n    pass\n", "expected ':'", 1),
        ("a.py", "return 1 return 2\n", "invalid syntax", 1),
        ("a.py", "print 'of old'\n", "", 0),
        ("a.py", "if 1:\n\tx\n        y\n", "", 0),
        ("a.py", "try:\n    x\nexcept A, B:\n    y\n", "", 0),
        ("a.py", "x = '\\d\\\\', b'\\d', r'\\d', f'\\N{EM DASH}\\'', \\\n 'a'\n", "", 0),
        ("a.py", "(" * 100_000, "too many nested parentheses", 1),
        ("a.py", "-" * 150_000 + "1", "", 0),
        ("a.py", "1" + "+1" * 90_000, "", 0),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(name: str, text: str, why: str, line: int):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flaw = flaw_in(name, text) or Flaw("", 0)
    assert flaw.why.startswith(why)
    assert (bool(flaw.why), flaw.line) == (bool(why), line)


def test_what_only_a_newer_python_reads_is_no_flaw():
    assert flaw_in("a.py", 'x = f"{y["z"]}"\n') is None


def test_what_could_not_be_read_before_is_nobodys_doing():
    assert flaw_made("a.py", "a = 1\n", "a = = 1\n") == Flaw("invalid syntax", 1)
    assert flaw_made("a.py", "b b\n", "a = = 1\nb b\n") is None
    assert flaw_made("a.py", "b b\n", "a = 1\n") is None


def test_only_some_kinds_are_known():
    assert [name for name in ("a.py", "a.json", "a.toml", "a.md", "py") if is_known(name)] == [
        "a.py",
        "a.json",
        "a.toml",
    ]
