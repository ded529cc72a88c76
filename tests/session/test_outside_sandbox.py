"""The way out: one command outside the sandbox, with the person's keys, after a question that says so. Played with real git."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw, json

from hosts import this_host
from opened import open_session as open_whole
from processes import comes
from scripted import OpenAIServer
from security.test_sandboxed_work import bubblewrap, landlock
from ybs.agent.environment import Permissions
from ybs.agent.toolbox import make_toolbox
from ybs.config.host import Host
from ybs.core.errors import ConfigError, ToolError
from ybs.core.events import Event, Noticed, ToolFinished
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Question
from ybs.frontends.headless.advice import refuse
from ybs.security.commands.wrappers import read
from ybs.security.paths import folder_index
from ybs.security.policy.rules import VERBS, outside_rules
from ybs.security.sandbox import bubblewrap as bubblewrap_sandbox
from ybs.security.sandbox import choice
from ybs.security.sandbox.launch import Launch
from ybs.session.options import Options
from ybs.session.settings import environment_of, load_settings
from ybs.testing import RecordedHook, call
from ybs.tools.shell import leaving
from ybs.tools.shell.leaving import Leaving
from ybs.tools.shell.orphans import CommandMark
from ybs.tools.shell.path_leases import WAIT_SECONDS

__all__ = ["open_whole"]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
both = pytest.mark.parametrize("make", [bubblewrap, landlock])
WHO = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}  # fmt: skip
BUSY = "a command, server, hook or tool that may change files here runs"
OUT = Answer(is_allowed=True, is_outside=True)
INSIDE = Answer(is_allowed=True)
NO = Answer(is_allowed=False, reason="not this")


class Session:
    """The tools of a session in a repository, a person who answers, and what they were asked."""

    def __init__(
        self,
        make: Callable[..., Any],
        project: Path,
        home: Path,
        *,
        trust: bool = True,
        path: str = "",
        servers: Mapping[str, Any] | None = None,
        **safety: Any,
    ) -> None:
        self.hook, self.project = RecordedHook(), project
        host = Host.of(
            {**this_host().environ, **WHO, "OWN_KEY": "from the person"}
            | ({"PATH": path} if path else {})
        )
        overrides = {f"safety.{name}": value for name, value in safety.items()}
        overrides |= {"mcpServers": servers} if servers else {}
        options = Options.of(project, {"host": host, "overrides": overrides, "trust": trust})
        self.environment = environment_of(options, load_settings(options))
        self.environment.sandbox.backend = make(project, home)
        self.questions: list[Question] = []
        self.events: list[Event] = []
        self.answer = OUT
        self.environment.gate.confirm = lambda question: self.confirm(question)
        self.toolbox = make_toolbox(self.environment, hooks=[self.hook])

    async def confirm(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer

    async def run(self, command: str, **more: Any) -> ToolResult:
        arguments = Raw(json.encode({"command": command, **more}))
        call = ToolCall(id="1", name="run_shell", arguments=arguments)
        return await self.toolbox.run(call, self.events.append)

    def git(self, *words: str) -> str:
        return git(self.project, *words)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, env={**os.environ, **WHO}, stdout=subprocess.PIPE)  # fmt: skip
    return done.stdout.decode().strip()


@pytest.fixture
def work(project: Path) -> Path:
    (project / "main.py").write_text("kept\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    return project


@pytest.fixture
async def open_session(work: Path, home: Path) -> AsyncGenerator[Callable[..., Session]]:
    opened: list[Session] = []

    def opening(make: Callable[..., Any] = bubblewrap, **safety: Any) -> Session:
        opened.append(Session(make, work, home, **safety))
        return opened[-1]

    yield opening
    for session in opened:
        await session.environment.aclose()


@both
async def test_a_days_work_with_git(open_session, make, work: Path, tmp_path: Path) -> None:
    hook = work / ".git" / "hooks" / "pre-commit"
    hook.write_text('#!/bin/sh\necho "ran with: $OWN_KEY" > hook-said\n')
    hook.chmod(0o755)
    git(tmp_path, "init", "-q", "--bare", "there.git")
    git(work, "remote", "add", "origin", str(tmp_path / "there.git"))
    session = open_session(make)
    (work / "main.py").write_text("changed\n")
    for command in (
        "git add main.py && git commit -q -m second",
        "git checkout -q -b topic",
        "git commit -q --allow-empty -m third",
        "echo more >> main.py && git stash",
        "git stash pop -q",
        "git commit -qam fourth",
        "git checkout -q main && git commit -q --allow-empty -m fifth",
        "git checkout -q topic && git rebase -q main",
        "git push -q -u origin topic",
    ):
        result = await session.run(command)
        assert not result.is_error, (command, result.output)
        assert result.summary == "exit code 0, outside the sandbox"
        assert session.questions[-1].outside == "needed", command
        assert "read-only in the sandbox" in session.questions[-1].reason, command
    assert (work / "hook-said").read_text() == "ran with: from the person\n"
    assert session.git("log", "--format=%s").split() == ["fourth", "third", "fifth", "second", "first"]  # fmt: skip
    assert git(tmp_path / "there.git", "rev-parse", "topic") == session.git("rev-parse", "topic")
    assert len(session.questions) == 9
    assert all(question.grant == "" for question in session.questions)
    assert len(session.hook.before) == len(session.hook.after) == 9  # so undo keeps the files


@both
async def test_a_yes_is_not_a_way_out(open_session, make) -> None:
    session = open_session(make)
    session.answer = INSIDE
    result = await session.run("git commit -q --allow-empty -m x; echo said: $OWN_KEY")
    assert "said:\n" in result.output
    assert session.git("log", "--format=%s") == "first"
    result = await session.run("git commit -q --allow-empty -m x", outside=True)
    assert result.is_error
    assert "with outside: true the person is asked" in result.output
    assert result.summary.endswith("; .git is read-only in the sandbox")
    assert session.git("log", "--format=%s") == "first"


@both
async def test_what_only_the_kernel_sees_write_into_git_is_offered_the_way_out(
    open_session, make, work: Path
) -> None:
    (work / "release").write_text("#!/bin/sh\ngit commit -q --allow-empty -m x 2>/dev/null\n")
    session = open_session(make)
    assert not (await session.run("sh release")).is_error
    assert [each.outside for each in session.questions] == ["needed"]
    assert session.questions[0].reason.startswith("it wants to write to .git/")
    assert session.questions[0].reason.endswith("; .git is read-only in the sandbox")
    assert session.git("log", "-1", "--format=%s") == "x"


@both
async def test_the_model_may_ask_and_the_person_decides(open_session, make) -> None:
    session = open_session(make)
    session.answer = NO
    result = await session.run("echo said: $OWN_KEY", outside=True)
    assert result.is_refused
    assert "Refused: not this" in result.output
    question = session.questions[0]
    assert (question.outside, question.grant) == ("needed", "")
    assert "with your keys, your logins and all your files" in question.warnings[0]
    assert question.preview.title == "Run a shell command outside the sandbox"
    session.answer = OUT
    result = await session.run("echo said: $OWN_KEY", outside=True)
    assert result.output.startswith("said: from the person\n")
    assert "[it ran outside the sandbox]" in result.output


@pytest.mark.parametrize("mode", ["ask", "accept-edits", "auto"])
async def test_it_is_asked_about_in_every_mode_and_once(open_session, mode: str) -> None:
    session = open_session(mode=mode, allow=("run_shell", "run_shell(echo *)"))
    for count in (1, 2):
        await session.run("echo said: $OWN_KEY", outside=True)
        assert len(session.questions) == count


async def test_always_is_never_a_way_out(open_session) -> None:
    session = open_session()
    session.answer = Answer(is_allowed=True, is_outside=True, is_for_session=True)
    session.environment.workspace.since_ns = time.time_ns() + 10**12
    assert not (await session.run("touch made")).is_error
    await session.run("touch made")
    assert len(session.questions) == 2
    assert tuple(sorted(session.environment.policy.rules.grants)) == ()


async def test_bypass_lets_out_what_the_model_asks_for_or_the_settings_name(open_session) -> None:
    session = open_session(mode="bypass", outside_sandbox=("git commit *",))
    assert not (await session.run("git commit -q --allow-empty -m second")).is_error
    assert "said:\n" in (await session.run("echo said: $OWN_KEY")).output
    assert "from the person" in (await session.run("echo said: $OWN_KEY", outside=True)).output
    assert session.questions == []


@pytest.mark.parametrize("mode", ["plan", "deny"])
async def test_plan_and_deny_refuse(open_session, mode: str) -> None:
    session = open_session(mode=mode, outside_sandbox=("git *",))
    for command, more in (("echo x", {"outside": True}), ("git commit -q --allow-empty -m x", {})):
        assert (await session.run(command, **more)).is_refused
    assert session.git("log", "--format=%s") == "first"
    assert session.questions == []


async def test_deny_rules_and_blocked_commands_stay_refused_and_warnings_stay(open_session) -> None:
    session = open_session(deny=("run_shell(git push *)",), outside_sandbox=("git *",))
    for command in ("git push", "sudo id"):
        assert (await session.run(command, outside=True)).is_refused
    assert session.questions == []
    session.answer = NO
    await session.run("git reset --hard HEAD~1")
    assert any("throws away changes" in warning for warning in session.questions[0].warnings)


async def test_what_the_persons_settings_name_runs_outside_without_a_question(open_session, work):
    session = open_session(outside_sandbox=("git commit *", "git add *"))
    session.confirm = refuse  # nobody is there
    (work / "main.py").write_text("changed\n")
    result = await session.run("git add main.py && git commit -q -m second")
    assert result.summary == "exit code 0, outside the sandbox"
    assert session.git("log", "-1", "--format=%s") == "second"
    for command in (
        "git commit -q -m x --allow-empty | tee said",
        "git commit -q -m $(id) --allow-empty",
        "cat ~/.profile && git commit -q -m x --allow-empty",
        "git -c core.editor=./x commit --allow-empty",
        "git commit -q -m x --allow-empty > made",
        "git tag x",
    ):
        result = await session.run(command)
        assert "outside the sandbox" not in result.summary, command
    assert session.git("log", "-1", "--format=%s") == "second"
    result = await session.run("git tag x", outside=True)
    assert result.is_refused
    assert "safety.outside_sandbox of your own settings" in result.output


#: What a rule does not let out, though its star would cover the words.
HELD_BY_A_RULE = (
    "git push ./made.git HEAD:main",
    "git push made.git HEAD:main",
    "git push --repo=made.git HEAD:main",
    "git push made HEAD:main",
    "git push git://127.0.0.1:1/x.git main",
    "git push https://127.0.0.1:1/x.git main",
    "git push me@127.0.0.1:x.git main",
    "git push 127.0.0.1:x.git main",
    "git push -u 127.0.0.1:x.git main",
    "git push -- other main",
    "git pull git://127.0.0.1:1/x.git main",
    "git fetch ssh://127.0.0.1:1/x.git",
    "git ls-remote git://127.0.0.1:1/x.git",
    "git fetch -q .",
    "cd made.git/objects && git status",
    "cd there && git status",
    "git status && make",
    "git status; sh main.py",
    "env git status",
    "/usr/bin/git status",
    "GIT_DIR=made.git git status",
    "git -C made.git status",
    "git --git-dir=made.git status",
    "git shell -c x",
    "git clone --template=./t made.git copy",
    "git commit --allow-empty -F ../secret",
    "git config --global user.name x",
    "git commit --allow-empty -F/etc/hostname",
    "git commit --allow-empty -F ~/.ssh/id_rsa",
    "git commit --allow-empty -aF/etc/hostname",
    "git commit --allow-empty -F way-out",
    "git commit --allow-empty -Fway-out",
    "git commit --allow-empty -F ways/secret",
    "git tag x -F ./ways/secret",
    "git add --pathspec-from-file=way-out",
    "git diff --no-index main.py way-out",
    "git diff --no-index . ways/",
    "git commit --allow-empty -m *",
    "git fetch -* .",
    "git commit --allow-empty -m x [[:alpha:]]ay-out",
    'git commit --allow-empty -m "$HOME"',
    "git commit --allow-empty -m {a,b}",
    "git add ways/secret",
    "git fetch ./main.py",
    "gh alias set x '!touch leaked'",
    "gh api repos/a/b",
    "gh api https://127.0.0.1:1/x",
    "gh auth token",
    "gh codespace ssh -- -oProxyCommand=./x",
    "gh extension install .",
    "gh gist create main.py",
    "gh issue comment 1 -R evil/x -b TEXT",
    "gh pr checkout 5",
    "gh run download 5",
    "gh issue comment 1 -Revil/x -b TEXT",
    "gh issue comment https://github.com/evil/x/issues/1 -b TEXT",
    "gh pr list --json number --jq env.HOME",
    "gh pr list --json number -q env.HOME",
    "gh pr list --json=number --jq=env.HOME",
    "gh pr create --repo evil/x --title a --body b",
    "gh pr create --repo=evil/x --title a --body b",
    "gh release create v1 way*",
    "gh release create v1 main.py",
    "gh release upload v1 main.py",
    "gh repo clone a/b -- -c core.sshCommand=./x",
    "gh repo deploy-key add key.pub",
    "gh secret set TOKEN -b x",
    "gh ssh-key add key.pub",
    "glab mr create -R evil/x",
    "git tag -u -m -F../secret -u -m --no-local-user t1",
    "git tag -n9",
    "git commit --allow-empty -m -F../secret",
    "git push -o origin evil:x.git",
    "gh issue list --json title -l -b --jq=env",
    "gh pr list -H -b --jq=env --json title",
    "gh issue create -t T -l -b -Revil/x -l -b -F/etc/hostname",
    "gh issue comment 'https://github.com/evil/x/issues/1 x' --body x",
    "gh release create v1 'way-out#a label'",
    "gh pr view 1 -w",
    "glab release create v1 -r -b -F/etc/hostname",
    "glab mr view 1 -w",
    "glab mr list -H evil/x",
)


#: Rules, and commands that they cover but for what a program makes of one word.
ODD_WORDS = (
    ("git log *", "git log -1 --format=x --output=.git/config", False),
    ("git log *", "git log -1 --outpu=.envrc", False),
    ("git log *", "git log -1 --oneline --format=%h", False),
    ("git log * --format=%h", "git log -1 --oneline --format=%h", True),
    ("git commit *", "git commit -q -m 'a (b) [c] | d' --allow-empty", True),
    ("git *", "git remote-ext x y", False),
    ("git *", "git checkout-index --prefix=.git/hooks/ main.py", False),
    ("git *", "git merge-index ./x -a", False),
    ("git *", "git rebase -x './x' HEAD", False),
    ("git *", "git status --short", True),
    ("git commit *", "git commit -aFmsg", False),
    ("git commit *", "git commit -m --output=x -q", False),
    ("git *", "git commit -a -m 'fix: words, as in ../docs'", True),
    ("git *", "git commit -m 'https://example.com/x is named'", False),
    ("git *", "git commit -m '/etc/a b'", False),
    ("git *", "git commit -am words", True),
    ("git *", "git commit -aF words", False),
    ("git *", "git tag -lu words", False),
    ("git *", "git pull -rinteractive", False),
    ("git commit -am *", "git commit -am 'two words'", True),
    ("git commit -F *", "git commit -F '/etc/a b'", False),
    ("git *", "git push --tags", True),
    ("git *", "git fetch", True),
    ("git *", "git pull --rebase", True),
    ("git *", "git tag v1", True),
    ("git *", "git tag -u key v1", False),
    ("git tag -u key *", "git tag -u key -m 'two words' v1", True),
    ("git tag -u key *", "git tag -u key -u -m v1", False),
    ("git log *", "git log -m --output=x", False),
    ("git *", "git format-patch -kolink -1", False),
    ("git *", "git init --separate-git-dir=g", False),
    ("git *", "git worktree add lnk/hooks topic", False),
    ("git *", "git am md", False),
    ("git *", "git remote add x ./y.bundle", False),
    ("git fetch *", "git fetch '--upload-pack=sh run' .", False),
    ("git tag *", "git tag 'v1;env>pwned;'", False),
    ("git *", "git push -u origin HEAD:refs/heads/topic", True),
    ("git *", "git checkout -b topic origin/main~1", True),
    ("git *", "git log --oneline -5 main..topic", True),
    ("git *", "git log --since='2 days ago'", False),
    ("gh *", "gh pr create --draft --title 'a (b)' --body 'c; d'", True),
    (
        "gh pr create *",
        "gh pr create --title 'a: b' --body 'Closes https://example.com/1\n- c'",
        True,
    ),
    ("gh pr create *", "gh pr create --title a --body --repo=evil/x", False),
    ("gh *", "gh pr create --body-file way-out", False),
    ("gh *", "gh issue list --json number", False),
    ("gh issue list --json *", "gh issue list --json number", True),
    ("gh *", "gh repo view a/b", False),
    ("gh pr *", "gh pr list -R me/x", False),
    ("gh pr list -R me/x *", "gh pr list -R me/x topic", True),
    ("gh pr list -R me/x *", "gh pr list -R me/x -R evil/x", False),
    ("gh pr * -R me/x", "gh pr list -R evil/x -R me/x", False),
    ("git push *", "git push origin main", True),
    ("git push *", "git push evil:x/y.git main", True),  # held as it is no remote
    ("git push *", "git push git://127.0.0.1/x.git main", False),
    ("git push *", "git push me@host:x.git main", False),
    ("git show *", "git show HEAD~2:src/main.py", True),
)


async def test_a_rule_with_a_star_does_not_let_out_the_command_that_reads_alike(
    open_session, work: Path, tmp_path: Path
) -> None:
    (work / "-Osh").touch()  # an option of `git grep`, in the shell's expansion
    (work / "a").write_text("a\n")
    (work / "b.sh").write_text(f"#a\ntouch {tmp_path}/leaked\n")
    git(work, "add", "a", "b.sh")
    session = open_session(outside_sandbox=("git grep *",))
    session.confirm = refuse
    result = await session.run("git grep *")
    assert "outside the sandbox" not in result.summary
    assert not (tmp_path / "leaked").exists()
    assert "outside the sandbox" in (await session.run("git grep kept")).summary


@pytest.mark.parametrize(("pattern", "command", "is_let_out"), ODD_WORDS)
def test_a_rules_star_stands_for_no_word_that_a_program_makes_more_of(
    pattern: str, command: str, *, is_let_out: bool
) -> None:
    (rule,) = outside_rules([pattern])
    (part,) = read(command).parts
    assert rule.lets_out(part) is is_let_out


async def test_a_rules_star_stands_for_no_other_repository_place_or_program(
    open_session, work: Path, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "secret").write_text("a secret\n")
    (work / "there").mkdir()
    (work / "Makefile").write_text(f"all:\n\ttouch {tmp_path}/leaked\n")
    (work / "way-out").symlink_to(tmp_path / "there" / "secret")
    (work / "ways").symlink_to(tmp_path / "there")
    session = open_session(outside_sandbox=("git *", "gh *", "glab *"))
    session.confirm = refuse
    for command in HELD_BY_A_RULE:
        result = await session.run(command)
        assert "outside the sandbox" not in result.summary, command
        assert not (tmp_path / "leaked").exists(), command
    assert "outside the sandbox" in (await session.run("git commit -q -m x --allow-empty")).summary
    git(work, "init", "-q", "--bare", "made.git")
    assert (
        "outside the sandbox" not in (await session.run("git commit -q -m x --allow-empty")).summary
    )


#: Why no rule counts in a repository that was made later.
OF_A_MADE_REPOSITORY = "of a repository that was here when the session began"


def moved_into_place(work: Path) -> str:
    """Return a command that makes a repository of a folder that was there before, so that all in it is old."""
    (work / ".git" / "HEAD").unlink()  # else it is known to be a repository, and held
    (work / ".git").rename(work / "old")
    return "mv old .git; echo 'ref: refs/heads/main' > .git/HEAD"


def put_back(work: Path) -> None:
    (work / "old").rename(work / ".git")
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


@pytest.mark.parametrize("how", ["made", "moved"])
async def test_no_rule_counts_in_a_repository_that_the_session_made(
    open_session, work: Path, tmp_path: Path, how: str
) -> None:
    (work / "x.sh").write_text(f"touch {tmp_path}/leaked\n")
    settings = f'[protocol "ext"]\nallow = always\n[remote "origin"]\nurl = ext::sh {work}/x.sh\n'
    (work / "settings").write_text(settings)
    make = moved_into_place(work)
    if how == "made":
        make = "git init -q ."
    make += "; cat settings >> .git/config"
    session = open_session(outside_sandbox=("git *",))
    session.answer = INSIDE
    await session.run(make)
    assert git(work, "config", "remote.origin.url").startswith("ext::")
    session.answer = NO
    for command in ("git push origin main", "git status", "git add main.py"):
        assert (await session.run(command, outside=True)).is_refused
        assert OF_A_MADE_REPOSITORY in session.questions[-1].reason
    assert not (tmp_path / "leaked").exists()


async def test_a_rule_goes_on_to_count_where_a_push_noted_its_remote(
    open_session, work: Path, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "--bare", "there.git")
    git(work, "remote", "add", "origin", f"me@host:{tmp_path}/there.git")
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text('#!/bin/sh\nshift $(($# - 1)); exec sh -c "$1"\n')
    ssh.chmod(0o755)
    session = open_session(
        path=f"{ssh.parent}:{os.environ['PATH']}",
        outside_sandbox=("git push *", "git commit *", "git branch *"),
    )
    session.confirm = refuse
    for command in (
        "git push -q -u origin main",
        "git branch topic && git commit -q -m second --allow-empty && git push -q",
    ):
        assert (await session.run(command)).summary == "exit code 0, outside the sandbox"
    assert git(tmp_path / "there.git", "log", "-1", "--format=%s", "main") == "second"


@pytest.mark.parametrize("way", ["path", "near", "file", "remotes", "branches", "modules"])
async def test_no_rule_counts_where_git_would_come_to_a_repository_of_this_machine(
    open_session, work: Path, tmp_path: Path, way: str
) -> None:
    there = tmp_path / "there.git"
    git(tmp_path, "init", "-q", "--bare", "there.git")
    hook = there / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/leaked\n")
    hook.chmod(0o755)
    urls = {"path": str(there), "near": "../there.git", "file": f"file://{there}"}
    if way in urls:
        git(work, "remote", "add", "origin", urls[way])
    else:
        (work / ".git" / way).mkdir(exist_ok=True)
        text = (
            f"URL: {there}\nPush: HEAD:refs/heads/main\n" if way == "remotes" else f"{there}#main\n"
        )
        (work / ".git" / way / "origin").write_text(text)
    session = open_session(outside_sandbox=("git push *",))
    session.answer = NO
    for command in ("git push", "git push origin main"):
        assert (await session.run(command, outside=True)).is_refused
        assert "safety.outside_sandbox does not count: " in session.questions[-1].reason
    assert not (tmp_path / "leaked").exists()


async def test_a_value_of_an_option_that_a_rule_names_hides_no_address(
    open_session, work: Path
) -> None:
    git(work, "remote", "add", "origin", "me@127.0.0.1:x.git")
    session = open_session(outside_sandbox=("git push -o *",))
    session.answer = NO
    assert (await session.run("git push -o origin evil:x.git", outside=True)).is_refused
    assert session.questions[-1].reason.endswith("evil:x.git is not a remote of this repository")
    assert "outside the" in (await session.run("git push -o origin")).summary


async def test_git_that_leaves_by_a_rule_reaches_no_repository_of_this_machine_by_another_name(
    open_session, work: Path, home: Path, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "--bare", "there.git")
    git(work, "remote", "add", "origin", "https://example.com/x.git")
    (home / ".gitconfig").write_text(f'[url "{tmp_path}/there.git"]\ninsteadOf = https://example.com/x.git\n')  # fmt: skip
    session = open_session(outside_sandbox=("git push *",))
    session.confirm = refuse
    assert "transport 'file' not allowed" in (await session.run("git push origin main")).output


async def test_no_rule_goes_on_with_what_was_under_way_when_the_session_began(
    open_session, work: Path, tmp_path: Path
) -> None:
    state, head = work / ".git" / "rebase-merge", git(work, "rev-parse", "HEAD")
    state.mkdir()
    texts = {"git-rebase-todo": f"exec touch {tmp_path}/leaked\n", "head-name": "refs/heads/main\n", "onto": head, "orig-head": head, "msgnum": "0", "end": "1", "done": "", "interactive": ""}  # fmt: skip
    for name, text in texts.items():
        (state / name).write_text(text)
    session = open_session(outside_sandbox=("git *",))
    session.answer = NO
    assert (await session.run("git rebase --continue", outside=True)).is_refused
    assert session.questions[-1].reason.endswith("a rebase was under way when the session began")
    session.answer = OUT
    await session.run("git rebase --continue", outside=True)
    assert (tmp_path / "leaked").exists(), "this one was asked about"
    assert "outside the" in (await session.run("git commit -q -m x --allow-empty")).summary
    assert len(session.questions) == 2


async def test_a_rule_goes_on_with_what_git_began_in_this_session(open_session, work: Path) -> None:
    for branch in ("other", "main"):
        git(work, "checkout", "-q", "-B", branch, "HEAD")
        (work / "main.py").write_text(f"by {branch}\n")
        git(work, "commit", "-qam", branch)
        git(work, "checkout", "-q", "HEAD~1")
    git(work, "checkout", "-q", "main")
    session = open_session(outside_sandbox=("git *",))
    session.confirm = refuse
    assert "CONFLICT" in (await session.run("git merge other")).output
    (work / "main.py").write_text("by both\n")
    result = await session.run("git add main.py && git commit -q -m both")
    assert result.summary == "exit code 0, outside the sandbox"


@pytest.mark.parametrize("name", ["COMMIT_EDITMSG", "logs/HEAD", "rr-cache/x/preimage", "lfs"])
async def test_no_rule_counts_where_a_link_leads_git_to_another_file(
    open_session, work: Path, home: Path, name: str
) -> None:
    (home / ".bashrc").write_text("# mine\n")
    place = work / ".git" / name
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(home / ".bashrc")
    session = open_session(outside_sandbox=("git commit *",))
    session.answer = NO
    command = "git commit --allow-empty -m 'x; touch leaked'"
    assert (await session.run(command, outside=True)).is_refused
    assert f"{name} is a link or not a regular file" in session.questions[-1].reason
    assert (home / ".bashrc").read_text() == "# mine\n"


@pytest.mark.parametrize("head", ["x", "ref: heads/main"])
async def test_git_that_leaves_by_a_rule_takes_the_repository_that_was_looked_at(
    open_session, work: Path, tmp_path: Path, head: str
) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "core.fsmonitor", f"touch {tmp_path}/leaked; false")
    (work / ".git" / "HEAD").write_text(f"{head}\n")
    session = open_session(outside_sandbox=("git status *",))
    session.confirm = refuse
    result = await session.run("git status")
    assert "outside the sandbox" in result.summary
    assert "not a git repository" in result.output
    assert not (tmp_path / "leaked").exists()


async def test_what_leaves_by_a_rule_is_not_started_where_the_repository_has_gone(
    open_session, work: Path
) -> None:
    session = open_session()
    (work / ".git").rename(work / "old")
    with pytest.raises(ToolError, match="another one by now: it is not in a repository"):
        session.environment.workspace.shells.prepare_outside(
            "git status", is_asked=False, loads_project=False
        )


async def test_no_rule_counts_while_a_job_runs_in_the_background(open_session, work: Path) -> None:
    session = open_session(outside_sandbox=("git commit *",))
    assert "outside the" in (await session.run("git commit -q -m x --allow-empty")).summary
    session.answer = INSIDE
    await session.run("sleep 30", background=True)
    session.answer = NO
    assert (await session.run("make", outside=True)).is_refused
    assert "whatever runs here in the background writes" in session.questions[-1].warnings[-1]
    assert (await session.run("git commit -q -m x --allow-empty", outside=True)).is_refused
    assert session.questions[-1].reason.endswith(BUSY)


async def test_no_rule_counts_while_a_server_runs_that_may_change_the_project(
    open_session, work: Path
) -> None:
    loop = 'cd "$YBS_PROJECT_DIR" && [ -e main.py ] || exit; while :; do echo x > beat; sleep 0.05; done'
    entry = {"command": "sh", "args": ["-c", loop], "project": "write"}
    session = open_session(servers={"s": entry}, outside_sandbox=("git show *",))
    session.answer = NO
    starting = asyncio.create_task(session.environment.mcp.connections["s"].settled())
    assert await comes((work / "beat").exists, 40)
    assert (await session.run("git show --stat", outside=True)).is_refused
    assert session.questions[-1].reason.endswith(BUSY)
    starting.cancel()


@pytest.mark.parametrize("way", ["begun", "linked"])
async def test_what_leaves_by_a_rule_is_looked_at_anew_before_it_starts(
    open_session, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    session = open_session(outside_sandbox=("git add *",))
    session.confirm = refuse
    mark = CommandMark.new()

    async def meanwhile(*_: object) -> None:
        if way == "begun":
            return await mark.begin(Launch((), {}, writable=(f"{work}/sub",)))
        (work / "main.py").rename(tmp_path / "main.py")
        return (work / "main.py").symlink_to(tmp_path / "main.py")

    monkeypatch.setattr(session.hook, "before_change", meanwhile)
    result = await session.run("git add main.py")
    said = BUSY if way == "begun" else "main.py is found by a link"
    assert result.is_refused
    assert f"safety.outside_sandbox does not count by now: {said}" in result.output
    mark.abandon()


async def test_nothing_that_may_change_files_begins_while_git_that_left_by_a_rule_runs(
    open_session, work: Path
) -> None:
    session, mark = open_session(), CommandMark.new()
    async with Leaving("git status", work, session.environment.workspace).held():
        beginning = asyncio.create_task(mark.begin(Launch((), {}, writable=(f"{work}/sub",))))
        await asyncio.sleep(3 * WAIT_SECONDS)
        assert not beginning.done()
    await beginning
    mark.abandon()


async def test_what_was_said_to_load_nothing_is_not_started_where_it_does_by_then(
    open_session, work: Path
) -> None:
    """A repository that is made after the answer would have the command find programs of the project."""
    session = open_session()

    async def confirm(question: Question) -> Answer:
        session.questions.append(question)
        git(work, "init", "-q", "--bare", "made.git")
        return OUT

    session.confirm = confirm
    result = await session.run("git commit -q -m x --allow-empty", outside=True)
    assert result.is_error
    assert "since the question the command may load what lies in the project" in result.output
    assert session.git("log", "--format=%s") == "first"
    result = await session.run("git commit -q -m x --allow-empty", outside=True)
    assert "outside the sandbox" in result.summary, "the question said so"
    assert len(session.questions) == 2


@pytest.mark.parametrize(
    "name", ["glab-cli/config.yml", "gh-resolved", "config.yml", "Hooks/x", "index.txt"]
)
async def test_no_rule_counts_where_gits_own_folder_holds_what_is_not_gits(
    open_session, work: Path, name: str
) -> None:
    session = open_session(outside_sandbox=("git *", "glab *"))
    assert "outside the" in (await session.run("git commit -q -m x --allow-empty")).summary
    session.answer = NO
    place = work / ".git" / name
    place.parent.mkdir(exist_ok=True)
    place.write_text("browser: ./x\n")
    for command in ("glab mr list", "git status"):
        assert (await session.run(command, outside=True)).is_refused
        said = f"{work / '.git' / name.partition('/')[0]} is not git's own"
        assert said in session.questions[-1].reason


async def test_what_git_itself_leaves_in_its_folder_ends_no_rule(open_session, work: Path) -> None:
    git(work, "commit", "-q", "--allow-empty", "-m", "more")
    git(work, "bisect", "start", "HEAD", "HEAD~1")
    git(work, "bisect", "reset")
    git(work, "update-index", "--split-index")
    git(work, "pack-refs", "--all")
    git(work, "worktree", "add", "-q", str(work.parent / "other"))
    git(work, "fetch", "-q", ".")
    git(work, "rm", "-q", "--cached", "main.py")
    git(work, "stash", "-q")
    session = open_session(outside_sandbox=("git commit *",))
    session.confirm = refuse
    assert "outside the" in (await session.run("git commit -q -m x --allow-empty")).summary


async def test_a_rule_counts_only_in_a_project_that_is_trusted(open_session, work: Path) -> None:
    session = open_session(trust=False, outside_sandbox=("git commit *",))
    session.answer = NO
    result = await session.run("git commit -q -m x --allow-empty")
    assert "outside the sandbox" not in result.summary
    assert session.git("log", "--format=%s") == "first"
    assert any("only in a project that you trust" in each.reason for each in session.questions)


def plant(work: Path, tmp_path: Path, *names: str) -> str:
    """Plant programs in folders of the project, and return a PATH that leads there, as of a person with the project's `.venv`."""
    for folder in ("bin", ".venv/bin"):
        (work / folder).mkdir(parents=True)
        for name in names:
            planted = work / folder / name
            planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/leaked\n")
            planted.chmod(0o755)
    return f"bin:{work}/.venv/bin:{os.environ['PATH']}"


@pytest.mark.parametrize("is_asked", [True, False])
async def test_git_that_leaves_and_of_which_the_question_names_no_file_finds_no_program_of_the_project(
    open_session, work: Path, tmp_path: Path, *, is_asked: bool
) -> None:
    path = plant(work, tmp_path, "git", "ssh")
    git(work, "remote", "add", "origin", "me@127.0.0.1:x.git")
    session = open_session(path=path, outside_sandbox=() if is_asked else ("git *",))
    assert "outside the" in (await session.run("git commit -q -m x --allow-empty")).summary
    assert "Connection refused" in (await session.run("git push origin main", outside=True)).output
    assert len(session.questions) == 2 * is_asked
    assert not any("venv" in str(each) for each in session.questions)
    assert session.git("log", "-1", "--format=%s") == "x"
    assert not (tmp_path / "leaked").exists()


@pytest.mark.parametrize(
    "command",
    [
        *("git commit -q -m x --allow-empty", "git status && tool"),
        "git cherry-pick --strategy=by/tool main",
    ],
)
async def test_what_may_load_the_project_is_started_as_in_the_persons_own_shell_and_named(
    open_session, work: Path, tmp_path: Path, command: str
) -> None:
    path = plant(work, tmp_path, "tool")
    (work / "git-merge-by").symlink_to(work / "bin")  # git starts `git-merge-STRATEGY`
    hook = work / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexec tool\n")
    hook.chmod(0o755)
    session = open_session(path=path)
    session.environment.workspace.since_ns = 0
    assert "outside the" in (await session.run(command, outside=True)).summary
    assert ".venv/" in session.questions[-1].warnings[-1]
    assert (tmp_path / "leaked").exists()


async def test_git_that_is_asked_about_reaches_a_repository_of_this_machine(
    open_session, work: Path, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "--bare", "there.git")
    session = open_session()
    assert not (await session.run(f"git push -q {tmp_path}/there.git main", outside=True)).is_error
    assert git(tmp_path / "there.git", "log", "-1", "--format=%s", "main") == "first"


async def test_the_question_names_what_this_session_changed(open_session, work: Path) -> None:
    (work / "Makefile").write_text("all:\n\t./build\n")
    (work / "package.json").write_text("{}\n")
    session = open_session(outside_sandbox=("git commit *",))
    session.answer = NO
    for since, named in ((time.time_ns() + 10**12, False), (0, True)):
        session.environment.workspace.since_ns = since
        for command in ("make", "npm test"):
            await session.run(command, outside=True)
            said = session.questions[-1].warnings[-1].partition("keys: ")[2]
            assert said.startswith("./, Makefile, main.py, package.json") is named
    await session.run("git commit -q -m x")  # which loads nothing
    hook = work / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexec python3 main.py\n")
    await session.run("git commit -q -m 'Change package.json'")
    assert "git has a hook pre-commit" in session.questions[-1].reason
    assert "Makefile, main.py" in session.questions[-1].warnings[-1]


async def test_the_question_leaves_out_nothing_that_was_changed_or_moved(open_session, work: Path):
    session = open_session()
    session.answer = NO
    kept = ("bin/tool/run", "bin/tool/x, y", "other/tool/run", "other/here", "src/a", "src/b", "gone/a", "gone/b")  # fmt: skip
    for name in kept:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("kept\n")
    new = [work / f"new{number}" for number in range(9)]
    later = (work / kept[-1]).stat().st_ctime_ns + 10**8
    while not new[0].touch() and new[0].stat().st_ctime_ns < later:  # its clock goes in steps
        pass
    session.environment.workspace.since_ns = later
    for each in new:
        each.touch()
    (work / "bin/tool").rename(work / "bin/was")
    (work / "other/tool").rename(work / "bin/tool")
    (work / "bin/was/x, y").write_text("changed\n")
    (work / "src/b").write_text("changed\n")
    (work / "gone/a").unlink()
    (work / "made/deep").mkdir(parents=True)
    (work / "made/deep/a").touch()
    await session.run("make", outside=True)
    said = session.questions[-1].warnings[-1].partition("keys: ")[2]
    names = ", ".join(each.name for each in new)
    assert (
        said
        == f"./, bin/, gone/, made/, {names}, other/, src/b, bin/tool/, bin/was/, 'bin/was/x, y'"
    )


async def test_a_question_about_the_way_out_is_asked_anew_where_it_is_another_one_by_then(
    open_session, work: Path
) -> None:
    (work / "Makefile").write_text("all:\n\t@cat *.txt\n")
    session = open_session()
    session.environment.workspace.since_ns = time.time_ns() + 10**12

    async def confirm(question: Question) -> Answer:
        session.questions.append(question)
        if len(session.questions) == 1:
            (work / "new.txt").write_text("new\n")
            session.environment.workspace.since_ns = (work / "new.txt").stat().st_ctime_ns
        return OUT

    session.confirm = confirm
    assert "outside the sandbox" in (await session.run("make", outside=True)).summary
    first, second = session.questions
    assert not any("new.txt" in each for each in first.warnings)
    assert any("new.txt" in each for each in second.warnings)


async def test_the_way_out_that_is_only_offered_is_asked_about_again_with_what_was_changed(
    open_session, work: Path
) -> None:
    session = open_session(mode="accept-edits")
    for since, count in ((time.time_ns() + 10**12, 1), (0, 2)):
        session.questions.clear()
        session.environment.workspace.since_ns = since
        assert "outside the sandbox" in (await session.run("touch new")).summary
        assert not session.questions[0].warnings
        assert [each.outside for each in session.questions] == ["offered"] * count
    assert "main.py" in session.questions[1].warnings[-1]


async def test_the_question_names_a_folder_that_may_be_entered_and_not_listed(
    open_session, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("closed", "gone", "open"):
        (work / name).mkdir()
    scandir = os.scandir

    def scan(path: Any) -> Any:
        if str(path).endswith("/closed"):
            raise PermissionError
        if str(path).endswith("/gone"):
            (work / "gone").rmdir()
        return scandir(path)

    monkeypatch.setattr(leaving.os, "scandir", scan)  # the superuser lists all
    session = open_session()
    session.answer = NO
    session.environment.workspace.since_ns = time.time_ns() + 10**12
    await session.run("make", outside=True)
    assert session.questions[0].warnings[-1].endswith("keys: closed/")


@pytest.mark.parametrize("where", ["home", "included", "variable"])
async def test_a_hook_in_the_home_folder_counts_as_those_of_the_repository(
    work: Path, home: Path, open_session: Any, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    hook = home / "hooks" / "pre-commit"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nsh check.sh\n")
    hook.chmod(0o755)
    (work / "check.sh").write_text("true\n")
    setting = f"[core]\n\thooksPath = {hook.parent}\n"
    if where == "variable":
        named = {"COUNT": "1", "KEY_0": "core.hooksPath", "VALUE_0": str(hook.parent)}
        for name, value in named.items():
            monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    else:
        (home / "more").write_text(setting)
        text = setting if where == "home" else "[include]\n\tpath = more\n"
        (home / ".gitconfig").write_text(text)
    session = open_session(outside_sandbox=("git commit *",))
    session.answer = NO
    (work / "check.sh").write_text("id\n")
    assert (await session.run("git commit -q -m 'Change check.sh'")).is_refused
    (question,) = session.questions
    assert question.reason.endswith("git has a hook pre-commit")
    assert any("check.sh" in warning for warning in question.warnings)


@pytest.mark.parametrize(
    ("key", "value", "in_home", "in_repository"),
    [
        ("core.editor", "code --wait", True, False),
        ("credential.helper", "!/usr/bin/gh auth git-credential", True, False),
        ("credential.helper", "gcloud.sh", True, False),
        ("filter.lfs.process", "git-lfs filter-process", True, False),
        ("url.https://127.0.0.1/.insteadOf", "https://example.com/", True, False),
        ("core.fsmonitor", "true", True, True),
        ("pull.rebase", "true", True, True),
        ("branch.main.remote", ".", True, True),
        ("branch.main.remote", "https://127.0.0.1/x.git", True, False),
        ("core.worktree", "/", True, False),
        ("remote.origin.vcs", "ext", True, False),
        ("protocol.ext.allow", "always", True, False),
        ("filter.nb.clean", "python3 -m nbstripout", False, False),
        ("diff.nb.textconv", "npx nb", False, False),
        ("hook.x.command", "make", False, False),
        ("core.hooksPath", ".hooks", False, False),
        ("core.fsmonitor", "./main.py", False, False),
    ],
)
@pytest.mark.parametrize("where", ["--local", "--global"])
async def test_no_rule_counts_where_settings_start_what_may_load_the_project_or_lead_elsewhere(
    open_session,
    work: Path,
    where: str,
    key: str,
    value: str,
    *,
    in_home: bool,
    in_repository: bool,
) -> None:
    git(work, "config", where, key, value)
    (work / ".hooks").mkdir()
    (work / ".hooks" / "pre-push").write_text("")
    session = open_session(outside_sandbox=("git add *",))
    session.answer = NO
    (work / "main.py").write_text("new\n")
    result = await session.run("git add main.py")
    assert result.is_refused is not (in_repository if where == "--local" else in_home)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[credential]\nhelper = !$HOME/place/main.py", "settings of yours name PLACE/main.py"),
        (
            '[core]\nsshCommand = "ssh -o ProxyCommand=~/place/main.py"',
            "settings of yours name PLACE/main.py",
        ),
        ("\ufeff[core]\nfsmonitor = ~/place/main.py", "settings of yours name PLACE/main.py"),
        (f"#{'x' * 1_000_000}\n", "settings of yours name PLACE"),
    ],
    ids=["variable", "glued", "byte-order-mark", "long"],
)
async def test_no_rule_counts_where_the_persons_settings_of_git_name_a_file_of_the_project(
    open_session, work: Path, home: Path, text: str, said: str
) -> None:
    (home / "place").symlink_to(work)
    (home / ".gitconfig").write_text(text, "utf-8")
    session = open_session(outside_sandbox=("git add *",))
    session.answer = NO
    (work / "main.py").write_text("new\n")
    assert (await session.run("git add main.py")).is_refused
    assert session.questions[-1].reason.endswith(said.replace("PLACE", str(work)))


@pytest.mark.parametrize("is_held", [True, False])
async def test_what_leaves_by_a_rule_does_not_change_ybs_itself(
    open_session, work: Path, monkeypatch: pytest.MonkeyPatch, is_held: bool
) -> None:
    code = work / ".venv"
    code.mkdir()
    (code / "ybs.py").write_text("as it was\n")
    for module in (choice, bubblewrap_sandbox, leaving):
        monkeypatch.setattr(
            module, "code_in", lambda root: (str(code),) if root == str(work) else ()
        )
    if not is_held:
        monkeypatch.setattr(leaving, "has_bubblewrap", lambda: False)
    session = open_session(outside_sandbox=("git stash *",))
    session.answer = NO
    result = await session.run("git stash -q --all", outside=True)
    assert result.is_refused is not is_held
    assert (code / "ybs.py").read_text() == "as it was\n"


@pytest.mark.parametrize("name", ["EDITOR", "VISUAL", "GIT_EDITOR", "core.editor"])
async def test_what_leaves_by_a_rule_starts_no_editor(
    open_session, work: Path, home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """An editor loads files of the folder that it starts in, such as `.exrc`."""
    editor = home / "bin" / "vim"
    editor.parent.mkdir()
    editor.write_text("#!/bin/sh\ntouch ~/edited\necho x > $1\n")
    editor.chmod(0o755)
    if "." in name:
        git(work, "config", "--global", name, str(editor))
    else:
        monkeypatch.setenv(name, str(editor))
    session = open_session(outside_sandbox=("git commit *",))
    session.answer = NO
    result = await session.run("git commit --allow-empty", outside=True)
    assert not session.questions
    assert "empty commit message" in result.output
    assert not (home / "edited").exists()


async def test_no_rule_counts_where_git_lfs_goes_by_a_file_of_the_project(
    open_session, work: Path
) -> None:
    git(work, "config", "--global", "filter.lfs.process", "git-lfs filter-process")
    (work / ".lfsconfig").write_text("[lfs]\nurl = https://127.0.0.1:1/\n")
    session = open_session(outside_sandbox=("git checkout *",))
    session.answer = NO
    assert (await session.run("git checkout -q -b x", outside=True)).is_refused
    assert session.questions[-1].reason.endswith("git-lfs goes by .lfsconfig")


async def test_no_rule_counts_where_a_variable_leads_git_elsewhere(
    open_session, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_WORK_TREE", "/")
    session = open_session(outside_sandbox=("git add *",))
    session.answer = NO
    assert (await session.run("git add main.py")).is_refused
    assert session.questions[-1].reason.endswith("GIT_WORK_TREE is set")


async def test_no_rule_counts_where_a_folder_cannot_be_looked_into_or_the_repository_is_odd(
    open_session, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(outside_sandbox=("git add *",))
    session.answer = NO
    (work / ".git" / "commondir").write_text(".\n")
    assert (await session.run("git add main.py", outside=True)).is_refused
    assert "only a worktree's may have" in session.questions[-1].reason
    (work / ".git" / "commondir").unlink()
    (work / "sub").mkdir()
    monkeypatch.setattr(folder_index, "monotonic", iter(range(0, 10**6, 1000)).__next__)
    assert (await session.run("git add main.py", outside=True)).is_refused
    assert "could not be looked at" in session.questions[-1].reason


async def test_below_the_top_no_rule_counts(open_session, work: Path, home: Path) -> None:
    (work / "sub").mkdir()
    session = Session(bubblewrap, work / "sub", home, outside_sandbox=("git status *",))
    session.answer = NO
    assert (await session.run("git status", outside=True)).is_refused
    git(work / "sub", "init", "-q", "--bare", ".")
    assert (await session.run("git status", outside=True)).is_refused
    await session.environment.aclose()


def backdate(path: Path) -> None:
    """Have a saved session have begun on 18 January 2026."""
    first, _, rest = path.read_text().partition("\n")
    old = json.decode(first) | {"timestamp": "2026-01-18T00:00:00.000Z"}
    path.write_text(f"{json.encode(old).decode()}\n{rest}")


async def test_a_session_that_goes_on_as_a_copy_began_with_its_first_line(
    work: Path, open_whole: Any
) -> None:
    async with OpenAIServer(["done"]) as server:
        session, _ = open_whole(server, sandbox=True)
        async with session:
            await session.send("hello")
            name, path = session.journal.name, Path(session.journal.path)
        backdate(path)
        again, _ = open_whole(server, resume=name, fork=True)
        async with again:
            assert again.environment.workspace.since_ns == 1_768_694_400 * 10**9


@pytest.mark.parametrize(("was_there", "is_let_out"), [(True, True), (False, False)])
async def test_a_session_that_goes_on_knows_the_repository_that_its_first_line_was_written_with(
    work: Path, open_whole: Any, *, was_there: bool, is_let_out: bool
) -> None:
    if not was_there:
        moved_into_place(work)
    async with OpenAIServer(["done"]) as server:
        session, _ = open_whole(server, sandbox=True)
        async with session:
            await session.send("hello")
            name = session.journal.name
    if not was_there:
        put_back(work)
    for is_fork in (True, False):
        again, _ = open_whole(server, resume=name, fork=is_fork)
        async with again:
            assert bool(again.environment.workspace.repository) is is_let_out
            await again.start_anew(is_incognito=False)
            assert bool(again.environment.workspace.repository) is is_let_out


async def test_a_session_that_goes_on_amid_a_merge_knows_its_repository(open_session, work: Path):
    number = str((work / ".git").stat().st_ino)
    (work / ".git" / "MERGE_HEAD").write_text("")
    for before, is_known in ((number, True), (f"{number} REVERT_HEAD", True), ("1", False)):
        workspace = open_session().environment.workspace
        workspace.began(0, before)
        assert workspace.repository == (f"{number} MERGE_HEAD" if is_known else "")


async def test_git_loads_the_project_where_it_finds_a_submodule(open_session, work: Path) -> None:
    session = open_session(outside_sandbox=("git status *",))
    session.answer = NO
    assert "outside the sandbox" in (await session.run("git status", outside=True)).summary
    git(work, "init", "-q", "sub")
    assert (await session.run("git status", outside=True)).is_refused
    assert session.questions[-1].reason.endswith("sub/.git is a repository, too")


async def test_what_the_session_changed_ends_no_rule_for_what_loads_nothing(open_session, work):
    session = open_session(outside_sandbox=("git *",))
    session.confirm = refuse
    (work / "main.py").write_text("changed\n")
    result = await session.run("git add -A && git commit -q -m second && git status", outside=True)
    assert "outside the sandbox" in result.summary


async def test_a_file_that_a_command_wrote_back_in_time_counts(open_session, work: Path) -> None:
    session = open_session()
    session.answer = INSIDE
    await session.run("printf 'all:\\n' > Makefile; touch -d 2001-01-01 Makefile")
    session.answer = NO
    await session.run("make", outside=True)
    assert "Makefile" in session.questions[-1].warnings[-1]


async def test_it_is_ended_and_limited_like_any_command(open_session, work: Path) -> None:
    session = open_session()
    result = await session.run("(sleep 30; touch left) & sleep 30", outside=True, timeout=1)
    assert result.is_error
    assert "time limit of 1 s" in result.output
    result = await session.run("cat; tty; nohup sleep 30 >/dev/null 2>&1 & echo begun", outside=True)  # fmt: skip
    assert "not a tty" in result.output
    assert not (work / "left").exists()


async def test_nothing_runs_in_the_background_outside(open_session) -> None:
    session = open_session()
    for command, more in (("sleep 30", {"background": True}), ("sleep 30 &", {})):
        result = await session.run(command, outside=True, **more)
        assert result.is_error
        assert "Outside the sandbox nothing runs in the background" in result.output
    await session.run("sleep 30", background=True)
    assert [each.outside for each in session.questions] == [""]


async def test_without_a_sandbox_there_is_no_way_out_of_it(open_session) -> None:
    session = open_session()
    session.environment.sandbox.is_off = True
    session.answer = INSIDE
    result = await session.run("echo said: $OWN_KEY", outside=True)
    assert "said:\n" in result.output
    assert [each.outside for each in session.questions] == [""]


async def test_a_copy_of_the_project_is_no_place_to_leave_from(open_session, tmp_path: Path):
    from ybs.agent.environment import ToolEnvironment

    session = open_session()
    environment = session.environment
    copy = tmp_path / "copy"
    copy.mkdir()
    other = ToolEnvironment.of(copy, environment.loaded, Permissions(), original=environment)
    assert environment.sandbox.may_be_left
    assert not other.sandbox.may_be_left
    await other.aclose()


async def test_a_session_commits_stashes_and_undoes_as_ever(work, open_whole, monkeypatch):
    for name, value in WHO.items():
        monkeypatch.setenv(name, value)
    git(work, "init", "-q", "--bare", str(work.parent / "there.git"))
    git(work, "remote", "add", "origin", str(work.parent / "there.git"))
    commands = (
        "sed -i s/kept/changed/ main.py",
        "git commit -qam second",
        "git push -q -u origin main",
        "echo thrown >> main.py; git stash -q",
    )
    calls = [call("run_shell", command=command) for command in commands]
    async with OpenAIServer([*calls, "done"]) as server:
        session, events = open_whole(server, sandbox=True)
        async with session:
            if session.environment.sandbox.state != "full":
                pytest.skip(f"NOT TESTED: {session.environment.sandbox.backend.why}")
            questions: list[Question] = []

            async def confirm(question: Question) -> Answer:
                questions.append(question)
                return OUT if question.outside == "needed" else INSIDE

            session.confirm = confirm
            await session.send("commit it")
            undone = await session.history.undo()
    finished = events.of(ToolFinished)
    assert [each.success for each in finished] == [True] * 4, [each.output for each in finished]
    told = [each.text for each in events.of(Noticed)]
    assert [text.partition(". ")[0] for text in told] == [
        "A command made or changed git repositories here: changed: .git"  # by `push -u`
    ]
    assert git(work, "log", "--format=%s").split() == ["second", "first"]
    assert git(work.parent / "there.git", "log", "--format=%s", "main").split() == ["second", "first"]  # fmt: skip
    assert undone
    assert (work / "main.py").read_text() == "kept\n"


@pytest.mark.parametrize("pattern", ["git *", "git stash", "gh *", "gh pr *", "gh run view *"])
def test_a_setting_may_name_what_a_rule_can_let_out(pattern: str) -> None:
    assert [each.pattern for each in outside_rules([pattern])] == [pattern]


def test_the_docs_name_the_verbs_that_a_rule_can_let_out() -> None:
    text = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    told = text.partition("**Outside the sandbox, once.**")[2].partition("\n\n")[0]
    for program, verbs in VERBS.items():
        named = told.partition(f"of `{program}` ")[2].partition(
            ";" if program == "git" else ", with"
        )[0]
        assert all(f"`{verb}`" in named for verb in verbs), program


@pytest.mark.parametrize(
    "pattern",
    [
        *("*", "git* push", "", "git", "git pu*", "git go *", "git worktree *", "gh api *", "gh"),
        *("gh pr", "gh pr checkout *", "gh release upload", "glab mr", "make * list"),
        *("make *", "make test", "sh *", "npm test", "kubectl *", "echo *", "cd *", "./git push *"),
    ],
)
def test_a_setting_names_a_verb_that_a_rule_can_let_out(work: Path, pattern: str) -> None:
    overrides = {"safety.outside_sandbox": (pattern,)}
    options = Options(host=this_host(), folder=work, overrides=overrides)
    with pytest.raises(ConfigError, match="is not a rule: only git, gh and glab"):
        environment_of(options, load_settings(options))
