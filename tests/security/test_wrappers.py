"""What runs behind a program that runs another one."""

from itertools import pairwise

from rows import every_row
from ybs.security.commands.wrappers import Reading, read


def runs_of(text: str) -> list[list[str]]:
    return [run.words for run in read(text).runs]


@every_row(
    ("text", "words"),
    [
        ("eval 'echo a; rm -r' x", ["rm", "-r", "x"]),
        ("eval a 'b;' 'rm -r x'", ["rm", "-r", "x"]),
        ("python3 -m pip uninstall x", ["pip", "uninstall", "x"]),
        ("python3 -B -m pytest", ["pytest"]),
        ("python3 -m", ["python3", "-m"]),
        ("alias ls='sudo id'", ["sudo", "id"]),
        ("env --split-string='sudo id'", ["sudo", "id"]),
        ("A=1 /bin/RM x", ["rm", "x"]),
        ("setarch -R rm x", ["rm", "x"]),
        ("setarch x86_64 -R rm x", ["rm", "x"]),
        ("linux64 rm x", ["rm", "x"]),
        ("choom -n 500 -- rm x", ["rm", "x"]),
        ("faketime 'last friday' rm x", ["rm", "x"]),
        ("start-stop-daemon --start --exec rm -- x", ["rm", "--", "x"]),
        ("A=1 rm x", ["rm", "x"]),
        ("A=1", []),
    ],
)
def test_a_program_is_found_behind_the_one_that_runs_it(text: str, words: list[str]):
    assert words in runs_of(text)


@every_row(
    "text", ["env A=sudo ls", "env = ls", "command -v sudo", "timeout 5 ls", "find . -name sudo"]
)
def test_a_word_that_is_not_run_is_not_taken_for_a_program(text: str):
    assert "sudo" not in [words[0] for words in runs_of(text)]


def test_no_line_of_variables_makes_the_reading_endless():
    doubling = "a=xxxxxxxx; " + "".join(
        f"{b}=${a}${a}${a}${a}; " for a, b in pairwise("abcdefghijkl")
    )
    reading = read(f"{doubling} git $l")
    assert max(map(len, reading.values.values())) <= 1_000
    assert reading.meant[-1].words[0] == "git"


def test_however_many_wrappers_stand_before_a_shell_what_it_is_fed_is_not_overlooked():
    def is_seen(reading: Reading) -> bool:
        return any(run.words[:1] == ["rm"] for run in reading.runs) or not reading.is_clear

    for count in range(12):
        assert is_seen(read("env " * count + "sh <<E\nrm -r x\nE")), count
