"""One shell command on trial, and commands among the arguments of other tools."""

from typing import Any

from msgspec.json import encode

from rows import every_row
from ybs.config.schema import Safety
from ybs.security.policy.command_case import CommandCase, commands_in

UNCHECKED = "it has parts that cannot be checked word by word, such as a loop, a group or $(…)"


@every_row(
    ("command", "reason"),
    [
        ("ls; make", "`make` is not one of the read-only commands"),
        ("ls; sort -o x y", "`sort -o x y` does more than read: -o"),
        ("rg --pre x y", "`rg --pre x y` does more than read: --pre"),
        ("ls > x", "`ls` writes to x"),
        ("> x", "`` writes to x"),
        ("A=1 ls", "`A=1 ls` sets a variable"),
        ("ls $X", "one of its words, such as $NAME, is only known when it runs"),
        ("(ls)", UNCHECKED),
        ("ls 'open", UNCHECKED),
        ("find . -exec cat {} +", "one program in it runs another"),
        (
            "sort *",
            "`sort *` may do more than read: * can stand for a file that is named like an option",
        ),
        ("< x", "`` is not one of the read-only commands"),
        ("ls -la | sort > /dev/null", ""),
    ],
)
def test_the_part_that_is_not_safe_is_named(command: str, reason: str):
    assert CommandCase(command, Safety()).unsafe == reason


@every_row(
    ("arguments", "commands"),
    [
        ({"command": "make x"}, ["make x"]),
        ({"shell_cmd": "ls"}, ["ls"]),
        ({"text": "rm -rf x"}, ["rm -rf x"]),
        ({"text": "/bin/rm -rf x"}, ["/bin/rm -rf x"]),
        ({"inner": [{"args": ["git", "push", "-f"]}]}, ["git push -f"]),
        ({"sql": "SELECT 1"}, ["SELECT 1"]),
        ({"text": "remove it, please"}, []),
        ({"text": "rm"}, []),
        ({"text": "git is a program\nof many"}, []),
        ({"count": 1, "names": [], "on": True}, []),
    ],
)
def test_texts_that_look_like_commands_are_found(arguments: dict[str, Any], commands: list[str]):
    assert list(commands_in(encode(arguments))) == commands


def test_many_texts_are_looked_at_together_and_none_is_left_out():
    texts = list(commands_in(encode({"command": [{"run": f"x {n}"} for n in range(60)]})))
    assert len(texts) == 51
    assert "x 59" in texts[-1]


def test_arguments_that_are_no_json_hold_no_commands():
    assert list(commands_in(b"{")) == []
