"""One shell command on trial, and commands among the arguments of other tools."""

from typing import Any

from msgspec.json import encode

from rows import every_row
from ybs.config.schema import SafetySettings
from ybs.security.commands.wrappers import read
from ybs.security.commands.writers import needs_network
from ybs.security.policy.command_case import CommandCase, commands_in, from_its_folder
from ybs.security.policy.rules import Rule, rule_of


@every_row(
    ("command", "reason"),
    [
        ("ls; make", "make changes files"),
        ("ls > x", "it writes to x"),
        ("> x", "it writes to x"),
        ("ls | tee x", "tee changes files in this way"),
        ("sort -o x y", "sort changes files in this way"),
        ("sed -i s/a/b/ x", "sed changes files in this way"),
        ("tar xzf x.tgz", "tar changes files in this way"),
        ("git commit -m x", "git commit writes to .git, which is read-only in the sandbox"),
        ("git -C sub push", "git push writes to .git, which is read-only in the sandbox"),
        ("git branch new", "git branch writes to .git, which is read-only in the sandbox"),
        ("mkdir x && git add x", "git add writes to .git, which is read-only in the sandbox"),
        ("git apply x", "git apply changes something"),
        ("git add -n .", "git add writes to .git, which is read-only in the sandbox"),
        ("git tag v1", "git tag writes to .git, which is read-only in the sandbox"),
        ("git worktree add x", "git worktree writes to .git, which is read-only in the sandbox"),
        ("mv x /tmp/x", "mv changes files"),
        ("git stash", "git stash writes to .git, which is read-only in the sandbox"),
        ("git config user.name x", "git config writes to .git, which is read-only in the sandbox"),
        ("npm ci", "npm ci needs the network"),
        ("pip install x", "pip install needs the network"),
        ("npm version patch", "npm version changes something"),
        ("curl -s http://localhost:8000/x", "curl reaches a server on this machine"),
        ("curl 127.0.0.1:80", "curl reaches a server on this machine"),
        ("curl http://localhost.evil.com", "curl needs the network"),
        ("ruff format .", "ruff format changes something"),
        ("curl x", "curl needs the network"),
        ("nc -z localhost 80", "nc reaches a server on this machine"),
        ("rsync -a x y", "rsync changes files"),
        ("find . -exec rm {} +", "rm changes files"),
        *(
            (text, "")
            for text in (
                "git branch -a",
                "git branch --contains HEAD",
                "git branch --format='%(refname)' x",
                "git tag -l 'v*'",
                "git worktree list",
                "git remote get-url origin",
                "git submodule status",
                "git config get user.name",
                "make test",
                "rm /tmp/x",
                "cp x /tmp/x",
                'tmp=$(mktemp); sort x > "$tmp"; rm "$tmp"',
                "gunzip -c x.gz",
                "dd if=x count=1",
                "gofmt -l .",
                "curl --version",
                "ssh -V",
                "git stash list",
                "git config --list",
                "make -n",
                "ruff format --check .",
            )
        ),
        *(
            (text, "")
            for text in (
                "ls -la | sort > /dev/null",
                "echo x > /tmp/y",
                "tar tf x.tar",
                "sed -n 1p x",
                "ls | tee /dev/stderr",
            )
        ),
        *((text, "") for text in ("python3 x.py", "pytest -q", "git log -p", "A=1 ls", "(ls)")),
    ],
)
def test_what_is_known_to_write_or_to_need_the_network_is_named(command: str, reason: str):
    assert CommandCase(command, SafetySettings()).writes == reason


@every_row(
    ("command", "expected"),
    [
        ("curl x", True),
        ("mkdir x && wget y", True),
        ("git commit -m x; npm ci", True),
        ("mkdir x", False),
        ("curl http://localhost:1/", False),
        ("git push", False),
    ],
)
def test_what_is_of_no_use_without_the_network_is_known(command: str, expected: bool):
    assert needs_network(read(command)) is expected


@every_row(
    ("command", "reason"),
    [
        ("ls -la | sort", ""),
        ("find . -exec cat {} +", ""),
        ("ls; make", "make is not in safety.safe_commands"),
        ("> x", "it is not in safety.safe_commands"),
        ("ls 'open", "it is not understood"),
        ("./cat x", "./cat is not in safety.safe_commands"),
        ("find . -exec ./cat {} +", "./cat is not in safety.safe_commands"),
        ("PATH=. ls", "PATH=. is not in safety.safe_commands"),
    ],
)
def test_in_deny_the_listed_programs_alone_run(command: str, reason: str):
    assert CommandCase(command, SafetySettings()).unlisted == reason


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


def test_what_is_only_known_when_it_runs_leaves_no_sandbox():
    rules = [rule_of("run_shell(git push *)")]
    assert CommandCase("git push origin main", SafetySettings()).may_leave(rules)
    assert not CommandCase("git push $REMOTE", SafetySettings()).may_leave(rules)
    assert not CommandCase("git push; make", SafetySettings()).may_leave(rules)


@every_row(
    ("text", "is_let_out"),
    [
        ("git grep *", False),
        ("git push *", False),
        ("gh pr view *", False),
        ("git log ?", False),
        ("git log -[O]x", False),
        ("git push $REMOTE", False),
        ("git push ~/x", False),
        ("git commit -F notes.txt", True),
        ("git log | head", True),
    ],
)
def test_a_command_in_which_the_shell_replaces_something_leaves_no_sandbox_by_its_very_text(
    text: str, *, is_let_out: bool
):
    assert CommandCase(text, SafetySettings()).may_leave([Rule("run_shell", text)]) is is_let_out


def test_a_rule_that_denies_means_a_line_as_it_stands_and_as_it_reads_from_its_folder():
    line = "cd /p/secret && cat a"
    case = CommandCase(from_its_folder(line, "/p"), SafetySettings())
    assert case.is_touched_by(rule_of("run_shell(cd /p/secret)"), line)
    assert case.is_touched_by(rule_of("run_shell(cd secret)"), line)
    assert not case.is_touched_by(rule_of("run_shell(cd other)"), line)
