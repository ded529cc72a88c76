"""What a shell says of a program that it does not find, and what is made of it."""

from rows import every_row
from ybs.tools.shell.programs import corrected, has_hint, missing_in


@every_row(
    ("said", "name"),
    [
        ("/bin/sh: 1: python: not found", "python"),
        ("sh: line 1: tally.sh: command not found\n", "tally.sh"),
        ("/bin/sh: python: command not found", "python"),
        ("./run.sh: line 3: gawk: command not found", "gawk"),
        ("sh: g++-12: not found", "g++-12"),
        ("/usr/bin/env: \u2018python\u2019: No such file or directory", "python"),
        ("env: 'python': No such file or directory", "python"),
        ("env: python: No such file or directory", "python"),
        ("a.c: warning\nsh: 1: first: not found\nsh: 2: last: not found\n", "last"),
        ("sh: 1: ./tally.sh: not found", ""),
        ("curl: 404: page: not found there", ""),
        ("python: not found", ""),
        ("cat: a.txt: No such file or directory", ""),
        ("", ""),
    ],
)
def test_the_program_that_was_not_found_is_known(said: str, name: str):
    assert missing_in(said) == name


PYTHON = (
    "sh: 1: python: not found\n[exit code 127, 0.1 s]\n[python is not on this machine; python3 is.]"
)
TALLY = "[exit code 127, 0.1 s]\n[it ran in a sandbox]\n[tally.sh is a file here: run it as `sh tally.sh`.]"


@every_row(
    ("command", "output", "meant"),
    [
        ("python a.py", PYTHON, "python3 a.py"),
        ("cd a && python b.py | python", PYTHON, "cd a && python3 b.py | python3"),
        ("python -m venv python", PYTHON, "python3 -m venv python"),
        ("python a.py", f"{PYTHON}\n[note: a]\n(Make the call again.)", "python3 a.py"),
        ("tally.sh x", TALLY, "sh tally.sh x"),
        ("tally.sh", "[job-1 ended with exit code 127 after 0:00]\n" + TALLY, "sh tally.sh"),
        # the program is not where a command begins
        ("env X=1 python a.py", PYTHON, ""),
        ("python3 a.py", PYTHON, ""),
        ("./tally.sh", TALLY, ""),
        # no hint, or none of ybs
        ("python a.py", "[python is not on this machine; python3 is.]", ""),
        ("python a.py", PYTHON.replace("127", "1"), ""),
        ("python a.py", PYTHON.replace("python3 is", "rm is"), ""),
        ("tally.sh", TALLY.replace("`sh tally.sh`", "`rm -rf tally.sh`"), ""),
        ("tally.sh", TALLY.replace("`sh tally.sh`", "`sh other.sh`"), ""),
    ],
)
def test_a_command_is_corrected_as_the_hint_says(command: str, output: str, meant: str):
    assert corrected(command, output) == meant


def test_a_hint_stands_behind_the_exit_code():
    assert has_hint(PYTHON)
    assert has_hint(TALLY)
    assert not has_hint("[python is not on this machine; python3 is.]\n[exit code 127, 0.1 s]")
