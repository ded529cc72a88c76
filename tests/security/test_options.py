"""Options by which a program runs another one."""

from rows import every_row
from ybs.security.commands.options import running


@every_row(
    ("command", "option"),
    [
        ("rg --pre x y", ("--pre", "x")),
        ("rg --pre=x y", ("--pre", "x")),
        ("sort --compress=x y", ("--compress-program", "x")),
        ("tar -xIx y", ("-I", "x")),
        ("tar xf y -I", ("-I", "")),
        ("go test -exec=x", ("-exec", "x")),
        ("less +!x y", ("+!x", "x")),
        ("git -c a.b=!x log", ("-c", "x")),
        ("git -c", ("-c", "")),
        ("git -p log", ("-p", "")),
        ("git grep -Ox y", ("-O", "x")),
        ("git clone ext::x", ("ext::x", "")),
        ("git config core.pager x", ("core.pager", "x")),
        ("git -C sub config alias.x !y", ("alias.x", "y")),
    ],
)
def test_s02_s03_s08_an_option_that_runs_something_is_found_with_what_it_runs(command, option):
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
