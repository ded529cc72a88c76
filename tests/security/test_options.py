"""Options by which a program runs another one."""

from rows import every_row
from ybs.security.commands.options import Option, running


@every_row(
    ("command", "option"),
    [
        ("rg --pre x y", Option("--pre", "x")),
        ("rg --pre=x y", Option("--pre", "x")),
        ("sort --compress=x y", Option("--compress-program", "x")),
        ("tar -xIx y", Option("-I", "x")),
        ("tar xf y -I", Option("-I", "")),
        ("go test -exec=x", Option("-exec", "x")),
        ("less +!x y", Option("+!x", "x")),
        ("git -c a.b=!x log", Option("-c", "x")),
        ("git -c", Option("-c", "")),
        ("git -p log", Option("-p", "")),
        ("git grep -Ox y", Option("-O", "x")),
        ("git clone ext::x", Option("ext::x", "")),
        ("git config core.pager x", Option("core.pager", "x")),
        ("git -C sub config alias.x !y", Option("alias.x", "y")),
    ],
)
def test_s02_s03_s08_an_option_that_runs_something_is_found_with_what_it_runs(
    command: str, option: Option
):
    assert option in list(running(command.split()))


@every_row(
    "command",
    [
        *(
            "rg --pretty x",
            "sort -k2 x",
            "git log -c",
            "git diff -O x",
            "git",
            "git config core.pager",
        ),
        *("git switch -c x", "ls --pre x", "less x", "rg - --", "git config --get user.name"),
        *("git --no-pager log", "git --git-dir x log", "git log alias.py x", "rg - x"),
    ],
)
def test_other_options_run_nothing(command: str):
    assert list(running(command.split())) == []
