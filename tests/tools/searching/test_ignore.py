"""`.gitignore` rules: what ybs leaves out is what git itself leaves out."""

import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ybs.tools.searching.ignore import Ignore

GIT = shutil.which("git") or ""
needs_git = pytest.mark.skipif(not GIT, reason="git IS NOT INSTALLED: its answers are not compared")

RULES = [
    *("*.log", "build/", "/top.py", "a/**", "**/b", "!keep.log", "a/*.py", "[ab].txt", "x?", "*"),
    *(
        r"\#a",
        "#a",
        "!*/",
        "a/**/b",
        "/a",
        "/a/",
        "a/",
        "**/",
        "**",
        "/**",
        "**/a/**",
        "a/b",
        "*/b",
    ),
    *(
        r"a\ ",
        "a ",
        "a  ",
        r"\!a",
        "!a",
        "!/a",
        "[!a]",
        "[^a]*",
        "[a-c]",
        r"[\]]",
        "[]]",
        "[]a]",
        "[a",
    ),
    *(
        "[[:alpha:]]",
        "[[:digit:]x]",
        r"\a",
        r"\*",
        r"a\*b",
        "a**b",
        "**b",
        "b**",
        "a/b**",
        "?",
        "??",
    ),
    *(
        ".*",
        "!.h",
        "/*",
        "!/a/",
        "a.",
        "*.",
        "*b*",
        "*/*",
        "a//b",
        "/",
        "//",
        "!",
        "! a",
        "é",
        "?.txt",
    ),
    *(
        "A",
        "a/b/",
        "b/a.txt",
        "b/*",
        "!b/a.txt",
        r"[a\-c]",
        "[c-a]",
        "[-a]",
        "[a-]",
        "{a,b}",
        "(a)",
        "a|b",
    ),
]
NAMES = [
    *(
        "a",
        "b",
        "c",
        "x1",
        "top.py",
        "x.log",
        "keep.log",
        "a.txt",
        "#a",
        "!a",
        ".h",
        "a ",
        "ab",
        "A",
    ),
    *(
        "*",
        "a*b",
        "]",
        "-",
        "é",
        "build",
        "[a",
        "{a,b}",
        "a|b",
        "(a)",
        "aXb",
        "1",
        "a.",
        "\\a",
        " a",
    ),
]


def is_out(folder: Path, path: str) -> bool:
    """Ask as a walk does: folder by folder, with the rules of each."""
    rules, here = Ignore(), folder
    parts = path.split("/")
    for depth, part in enumerate(parts, 1):
        rules = rules.within(str(here))
        are_folders = depth < len(parts) or (here / part).is_dir()
        if not rules.kept([part], str(here), are_folders=are_folders):
            return True
        here /= part
    return False


def left_out_by_git(folder: Path, paths: Sequence[str]) -> set[str]:
    command = [GIT, "-c", "core.excludesFile=", "check-ignore", "--no-index", "--stdin", "-z"]
    asked = "\0".join(paths).encode()
    done = subprocess.run(command, cwd=folder, input=asked, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return set(done.stdout.decode().split("\0")) - {""}


def made_up(chance: random.Random) -> str:
    if chance.random() < 0.7:
        return chance.choice(RULES)
    tokens = ["a", "b", "*", "?", "**", "/", "[ab]", "[!a]", ".", "x", "\\", ".log", "[^b]", "é"]
    return "".join(
        chance.choices(["", "!"], [4, 1]) + chance.choices(tokens, k=chance.randint(1, 5))
    )


def case_in(folder: Path, chance: random.Random) -> Iterator[str]:
    """Make a folder with rules, and yield paths in it; some of them are folders."""
    (folder / "in").mkdir(parents=True)
    rules = [made_up(chance) for _ in range(chance.randint(1, 5))]
    (folder / ".gitignore").write_text("\n".join(rules) + "\n")
    if chance.random() < 0.3:
        (folder / "in/.gitignore").write_text(made_up(chance))
    for _ in range(6):
        (folder / "/".join(chance.choices(NAMES, k=3))).mkdir(parents=True, exist_ok=True)
    folders = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()]
    for path in dict.fromkeys((*NAMES, *folders)):
        yield f"{folder.name}/{path}"
        yield f"{folder.name}/{chance.choice(folders)}/{chance.choice(NAMES)}"


@pytest.mark.integration
@needs_git
@pytest.mark.parametrize(
    ("seed", "count"), [("1", 10), pytest.param("2", 200, marks=pytest.mark.slow)]
)
def test_what_is_left_out_is_what_git_leaves_out(project: Path, seed: str, count: int):
    chance = random.Random(seed)
    subprocess.run([GIT, "init", "-q"], cwd=project, check=True)
    cases = [list(case_in(project / f"case{number}", chance)) for number in range(count)]
    expected = left_out_by_git(project, [path for case in cases for path in case])
    wrong = {
        (project / path.split("/")[0] / ".gitignore").read_text(): path
        for case in cases
        for path in case
        if is_out(project, path) != (path in expected)
    }
    assert expected
    assert wrong == {}
