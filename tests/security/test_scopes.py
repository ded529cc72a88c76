"""Scopes: what "always this session" would cover, and what it never covers."""

from rows import every_row
from ybs.security.commands.wrappers import read
from ybs.security.policy.scopes import (
    GIT_READ_ONLY,
    is_never_granted,
    scopes_in,
    scopes_of,
    text_of,
)


@every_row(
    ("text", "scopes"),
    [
        ("pytest -q tests", ["pytest *"]),
        ("python -m pytest -x", ["python -m pytest *"]),
        ("uv run pytest", ["uv run pytest *"]),
        ("npm run lint -- x", ["npm run lint *"]),
        ("npm test", ["npm test *"]),
        ("git log -p", [GIT_READ_ONLY]),
        ("git status && git diff", [GIT_READ_ONLY]),
        ("pytest; ruff check .", ["pytest *", "ruff check *"]),
        ("pytest 2>/dev/null | tail -5", ["pytest *", "tail *"]),
    ],
)
def test_a_scope_stands_for_a_kind_of_command(text: str, scopes: list[str]):
    assert scopes_of(read(text)) == scopes
    assert scopes_in(text_of(scopes)) == scopes


@every_row(
    "text",
    [
        *("pytest; x", "pytest > x", "pytest < x", "A=1 pytest", "pytest $X", "pytest $(x)", "x"),
        *(
            "pytest ../other",
            "pytest /etc",
            "pytest ~/x",
            "pytest *.py",
            "pytest -p x",
            "pytest -c x",
        ),
        *(
            "pytest --rootdir=/x",
            "pytest --x=/etc",
            "env pytest",
            "git",
            "git push",
            "git -C x log",
        ),
        *("git -c a=b log", "git log --output=x", "git diff --ext-diff", "sort -o x y", "npm run"),
        *("npm run ../x", "npm run -s", "(pytest)", "pytest <<E\nx\nE", "> x", "rg --pre x y"),
        *("go test -exec x", "pytest 'open", "rg ../x"),
    ],
)
def test_s13_what_reaches_further_has_no_scope(text: str):
    assert scopes_of(read(text)) == []


@every_row(
    "text",
    [
        *("python x.py", "bash x.sh", "sh -c ls", "env ls", "xargs ls", "find . -name x", "node x"),
        *("git -C x push", "git -c a=b log", "rg --pre x y", "eval x", "nohup make", "docker ps"),
        *("sudo x", "> x", "make; python3 x", "timeout 5 make"),
    ],
)
def test_nothing_is_remembered_about_what_runs_anything(text: str):
    assert is_never_granted(read(text))


@every_row("text", ["make", "git push", "make && ./configure", "cp a b"])
def test_an_exact_command_can_be_remembered(text: str):
    assert not is_never_granted(read(text))


@every_row(
    "text",
    [
        *("run_shell(make *)", "run_shell(pytest)", "run_shell(pytest *) + x", "run_shell(rm *)"),
        *(
            "run_shell(make ' + run_shell(pytest *) + ')",
            "write_file(pytest *)",
            "",
            "run_shell( *)",
        ),
    ],
)
def test_only_known_scopes_are_read_back(text: str):
    assert scopes_in(text) == []
