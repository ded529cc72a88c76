"""Commits of a session in a real repository: asked once, with hooks in the real sandbox, and taken back whole."""

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostile_git import needs_git
from hosts import this_host
from opened import Open
from scripted import OpenAIServer
from trusting import give_trust, is_trusted, put
from ybs.core.events import FilesChanged, Noticed
from ybs.core.ports import Answer, Question
from ybs.frontends.headless.advice import refuse
from ybs.git import committable
from ybs.git.consent import recall
from ybs.security.policy.confirm import Unattended, nobody
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call

pytestmark = [pytest.mark.integration, needs_git]


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=me", "-c", "user.email=me@here")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def repository(project: Path) -> Path:
    git(project, "-c", "init.defaultBranch=main", "init", "-q", "--template=")
    (project / "a.py").write_text("def parse(text):\n    return text\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "theirs")
    return project


class Person:
    """Answers questions, and remembers them."""

    def __init__(self, *said: bool) -> None:
        self.said, self.asked = list(said), list[Question]()

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        return Answer(is_allowed=self.said.pop(0))


def write(content: str, path: str = "a.py") -> list[Any]:
    return [call("write_file", path=path, content=content), "done"]


CHANGED = "def parse(text):\n    return text.strip()\n"


def subjects(folder: Path) -> list[str]:
    return git(folder, "log", "--format=%s").splitlines()


def opened(open_session: Open, server: OpenAIServer, person: Any, **more: Any) -> Any:
    session, events = open_session(server, mode="bypass", **more)
    session.confirm = person
    return session, events


async def test_commits_are_asked_about_once_and_say_what_changed(
    repository: Path, open_session: Open
):
    person = Person(True)
    for number, subject in ((1, "Change a.py"), (2, "Change a.py")):
        async with OpenAIServer(write(CHANGED * number)) as server:
            session, events = opened(open_session, server, person)
            async with session:
                await session.send("please make it good")
                (changed,) = events.of(FilesChanged)
                assert changed.commit == git(repository, "rev-parse", "HEAD").strip()
        assert subjects(repository)[0] == f"[ybs] {subject}"
    (question,) = person.asked
    assert question.preview.title == "commit what each turn changes in this repository"
    assert "please" not in git(repository, "log", "--format=%B")
    assert git(repository, "status", "--porcelain") == ""


async def test_what_commands_made_is_not_committed_but_what_they_changed_or_moved_is(
    repository: Path, open_session: Open
):
    (repository / "old.py").write_text("x = 1\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "more")
    command = (
        "mkdir -p __pycache__ build && echo 1 > __pycache__/a.cpython-311.pyc && echo 2 > build/a.o"
        " && echo 3 > report.xml && mv old.py new.py && echo '# more' >> a.py"
    )
    script = [
        call("run_shell", command=command),
        call("write_file", path="b.py", content="b = 1\n"),
        "done",
    ]
    person = Person(True)
    async with OpenAIServer(script) as server:
        session, events = opened(open_session, server, person)
        async with session:
            await session.send("go")
    changed = git(repository, "show", "--name-only", "--no-renames", "--format=", "HEAD").split()
    assert sorted(changed) == ["a.py", "b.py", "new.py", "old.py"]
    left = [event.text for event in events.of(Noticed) if "Not committed" in event.text]
    assert [text.splitlines()[-1] for text in left] == [
        "Not committed, because commands made them: report.xml."
    ]
    assert not person.asked[0].takes_reason


async def test_nothing_is_committed_after_a_no_nor_where_nobody_was_asked(
    repository: Path, open_session: Open
):
    person = Person(False)
    for answering in (nobody, person, person):
        async with OpenAIServer(write(f"# {id(answering)} {len(person.said)}\n")) as server:
            session, events = opened(open_session, server, answering)
            async with session:
                await session.send("go")
                assert [event.commit for event in events.of(FilesChanged)] == [""]
        known = recall(this_host(), repository / ".git")
        assert (known is None) == (answering is nobody)
        git(repository, "checkout", "-q", "--", ".")
    assert subjects(repository) == ["theirs"]
    assert len(person.asked) == 1


async def test_git_does_not_look_for_commits_that_nobody_can_agree_to(
    repository: Path, open_session: Open, monkeypatch: pytest.MonkeyPatch
):
    looked = list[bool]()

    async def look(git: Any) -> Any:
        looked.append(True)
        return await committable.look(git)

    monkeypatch.setattr("ybs.git.committer.look", look)
    for answering, is_looked_at in ((Unattended(refuse), False), (Person(False), True)):
        async with OpenAIServer(write(f"# {is_looked_at}\n")) as server:
            session, _ = opened(open_session, server, answering)
            async with session:
                await session.send("go")
        assert bool(looked) is is_looked_at
    assert subjects(repository) == ["theirs"]


async def test_who_set_it_in_their_own_settings_is_not_asked_and_a_project_cannot(
    repository: Path, open_session: Open, home: Path
):
    (repository / ".ybs.json").write_text('{"git": {"auto_commit": true}}')
    for commits in (False, True):
        async with OpenAIServer(write(f"# {commits}\n")) as server:
            session, events = opened(open_session, server, nobody)
            async with session:
                await session.send("go")
                (changed,) = events.of(FilesChanged)
                assert bool(changed.commit) == commits
        (home / ".ybs.json").write_text('{"git": {"auto_commit": true}}')
        git(repository, "checkout", "-q", "--", ".")


async def test_stopping_the_question_ends_the_turn_without_a_commit_and_keeps_the_undo(
    repository: Path, open_session: Open
):
    asked = asyncio.Event()

    async def wait(_: Question) -> Answer:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with OpenAIServer(write(CHANGED)) as server:
        session, events = opened(open_session, server, wait)
        async with session:
            turn = asyncio.ensure_future(session.send("go"))
            await asked.wait()
            session.cancel()
            await turn
            assert [event.commit for event in events.of(FilesChanged)] == [""]
            assert recall(this_host(), repository / ".git") is None
            assert (await session.history.undo()).files is not None
    assert git(repository, "status", "--porcelain") == ""


async def test_a_turn_that_was_stopped_asks_nothing_and_the_next_one_does(
    repository: Path, open_session: Open
):
    person = Person(True)
    script = [*write(CHANGED)[:1], call("run_shell", command="sleep 60"), *write("new\n", "b.txt")]
    async with OpenAIServer(script) as server:
        session, events = opened(open_session, server, person)
        async with session:
            turn = asyncio.ensure_future(session.send("go"))
            while not session.environment.workspace.shells.in_front:  # noqa: ASYNC110 - of a process
                await asyncio.sleep(0.01)
            session.cancel()
            assert (await turn).finished.reason == "interrupted"
            assert person.asked == []
            await session.send("go on")
            assert len(person.asked) == 1
            assert [bool(event.commit) for event in events.of(FilesChanged)] == [False, True]


async def test_an_undo_and_a_redo_leave_no_litter(repository: Path, open_session: Open):
    async with OpenAIServer([*write(CHANGED), *write("new\n", "b.txt")]) as server:
        session, _ = opened(open_session, server, Person(True))
        async with session:
            for words in ("one", "two"):
                await session.send(words)
            whole = subjects(repository)
            assert whole == ["[ybs] Add b.txt", "[ybs] Change a.py", "theirs"]
            undone = await session.handle("/undo 2")
            assert "The branch is back before commits" in str(undone)
            assert subjects(repository) == ["theirs"]
            assert git(repository, "status", "--porcelain") == ""
            redone = await session.handle("/redo")
            assert "The branch is at commits" in str(redone)
    assert subjects(repository) == whole
    assert git(repository, "status", "--porcelain") == ""


def hook(repository: Path, script: str) -> None:
    path = repository / ".git/hooks/pre-commit"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "is_committed"),
    [
        ("git diff --cached --quiet && exit 9; exit 0", True),
        ("echo 'a.py:2: no'; exit 1", False),
        ("echo x > planted; touch .git/planted; test ! -e planted", True),
    ],
)
async def test_hooks_run_in_the_sandbox_and_one_that_fails_prevents_the_commit(
    repository: Path, open_session: Open, script: str, is_committed: bool
):
    hook(repository, script)
    person = Person(True)
    async with OpenAIServer(write(CHANGED)) as server:
        session, events = opened(open_session, server, person, sandbox=True)
        if session.environment.sandbox.state not in ("full", "reduced"):
            pytest.skip("no sandbox can be had here")
        async with session:
            await session.send("go")
            (changed,) = events.of(FilesChanged)
            notices = "\n".join(event.text for event in events.of(Noticed))
    assert "pre-commit" in person.asked[0].preview.body
    assert bool(changed.commit) == is_committed
    assert ("the hook pre-commit failed (exit code 1)" in notices) != is_committed
    assert ("a.py:2: no" in notices) != is_committed
    assert not (repository / "planted").exists()
    assert not (repository / ".git/planted").exists()


async def test_trust_in_a_project_lets_no_hook_of_its_repository_run(
    repository: Path, open_session: Open
):
    git(repository, "config", "core.hooksPath", ".githooks")
    put(repository, ".ybs.json", '{"safety": {"allow": ["run_shell(make test)"]}}')
    give_trust(repository)
    person, notices = Person(True, False), list[str]()
    for number, script in enumerate(("exit 0", "echo RAN; exit 1", "echo RAN; exit 1"), start=1):
        put(repository, ".githooks/pre-commit", f"#!/bin/sh\n{script}\n", 0o755)
        async with OpenAIServer(write(CHANGED * number)) as server:
            who = person if number < 3 else Unattended(refuse)
            session, events = opened(open_session, server, who, sandbox=True)
            if session.environment.sandbox.state not in ("full", "reduced"):
                pytest.skip("no sandbox can be had here")
            async with session:
                await session.send("go")
        git(repository, "checkout", "-q", "--", "a.py")
        assert is_trusted(repository)
        notices += [event.text for event in events.of(Noticed)]
    assert [question.preview.title for question in person.asked] == [
        "commit what each turn changes in this repository",
        "run new hooks of this repository before it commits: pre-commit",
    ]
    assert subjects(repository) == ["[ybs] Change a.py", "theirs"]
    assert sum("they run only where you agreed to them" in each for each in notices) == 2
    assert "RAN" not in "".join(notices)


async def test_without_a_sandbox_a_repository_with_hooks_has_no_commits(
    repository: Path, open_session: Open
):
    hook(repository, "exit 0")
    async with OpenAIServer([*write(CHANGED), *write(CHANGED * 2)]) as server:
        session, events = opened(open_session, server, Person(True))
        async with session:
            for words in ("one", "two"):
                await session.send(words)
            told = [event for event in events.of(Noticed) if "hooks" in event.text]
    assert [event.level for event in told] == ["warning"], "a run without a terminal shows it too"
    assert "there is no sandbox to run them in" in told[0].text
    assert subjects(repository) == ["theirs"]


Start = Callable[..., tuple[Session, RecordedEvents]]


async def test_the_answer_is_shown_changed_and_forgotten(
    repository: Path, open_session: Start, home: Path
):
    async def said(line: str, **more: Any) -> tuple[str, bool]:
        async with OpenAIServer([]) as server:
            session, _ = open_session(server, **more)
            async with session:
                reply: Any = await session.handle(f"/autocommit {line}".strip())
                return reply.text, reply.is_error

    hook(repository, "exit 0")
    assert "asks once" in (await said(""))[0]
    assert (await said("on"))[0].endswith("in the sandbox: pre-commit.")
    kept = recall(this_host(), repository / ".git")
    assert kept is not None
    assert (kept.may_commit, bool(kept.hooks)) == (True, True)
    assert "commits nothing in this repository" in (await said("off"))[0]
    assert "asks once" in (await said("ask"))[0]
    assert recall(this_host(), repository / ".git") is None
    assert await said("maybe") == ("Usage: /autocommit, or /autocommit on, off or ask", True)
    assert (await said("on", incognito=True))[1]
    (home / ".ybs.json").write_text('{"git": {"auto_commit": true}}')
    assert "Your settings say so" in (await said(""))[0]
    (home / ".ybs.json").write_text('{"git": {"auto_commit": false}}')
    assert await said("on") == (
        "Your settings say no for all repositories: git.auto_commit is false.",
        True,
    )
