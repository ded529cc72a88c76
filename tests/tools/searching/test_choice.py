"""Which files a glob chooses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.core.errors import ToolError
from ybs.security.paths.globs import compiled
from ybs.tools.searching.choice import GlobChoice

PATHS = [
    "a.py",
    "b.ts",
    "a,b",
    "src/a.py",
    "src/x.test.py",
    "src/old/c.tsx",
    "old.py/d",
    "vendor/v.py",
]


@every_row(
    ("glob", "names_anywhere", "expected"),
    [
        ("*.py", False, ["a.py"]),
        ("*.py", True, ["a.py", "src/a.py", "src/x.test.py", "vendor/v.py"]),
        ("*.{ts,tsx}", True, ["b.ts", "src/old/c.tsx"]),
        ("a,b", False, ["a,b"]),
        ("*.ts, *.tsx", True, ["b.ts", "src/old/c.tsx"]),
        ("!*.py", False, ["b.ts", "a,b", "src/old/c.tsx"]),
        ("**/*.py,!vendor", False, ["a.py", "src/a.py", "src/x.test.py"]),
        ("src/**,!src/old/", False, ["src/a.py", "src/x.test.py"]),
        ("**,!src,!*.test.*,!{a,old}*", False, ["b.ts", "vendor/v.py"]),
        ("**,!**", False, []),
        ("!{vendor,src}", True, ["a.py", "b.ts", "a,b", "old.py/d"]),
    ],
)
def test_globs_may_be_several_and_leave_out(glob: str, names_anywhere: bool, expected: list[str]):
    assert GlobChoice(glob, names_anywhere=names_anywhere).of(PATHS) == expected


@pytest.mark.integration
@given(
    st.sampled_from(["**", "**/*", "**/*.py", "**/*{.py,.ts}", "**/*.{py,ts}", "**/*a.py"]),
    st.lists(st.text("ab./", min_size=1, max_size=9), max_size=5),
)
def test_the_quick_ways_choose_what_the_glob_does(glob: str, names: list[str]):
    paths = [f"{name.strip('/')}.py" for name in names if "//" not in name] + ["x/.py", "b.ts"]
    assert GlobChoice(glob).of(paths) == [path for path in paths if compiled(glob).fullmatch(path)]


@every_row("glob", ["!/etc", "a*,!../x", "!}x{"])
def test_what_is_left_out_has_to_make_sense_too(glob: str):
    with pytest.raises(ToolError):
        GlobChoice(glob)
