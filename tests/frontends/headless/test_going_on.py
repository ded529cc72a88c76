"""`--continue`, `--resume` and `--fork`: a session that was left goes on, in its own file or in a copy."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest

from hosts import this_host
from scripted import OpenAIServer
from serving import serving
from ybs import cli
from ybs.commands.open import SlashCommands
from ybs.session.session import Session
from ybs.transcripts.log import Log

pytestmark = pytest.mark.integration

Print: TypeAlias = Callable[..., Any]


@pytest.fixture
def server(project: Path) -> Iterator[Any]:
    with serving(["first", "second", "third", "fourth", "fifth"]) as running:
        yield running


@pytest.fixture
def printed(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Print]:
    """Give a function that takes one turn without a terminal and returns its JSON object."""

    def run(*words: str, code: int = 0) -> Any:
        where = ("--endpoint", server.url, "-m", "scripted", "--no-sandbox")
        assert cli.main([*where, "-P", "--output-format", "json", *words]) == code
        return msgspec.json.decode(capsys.readouterr().out)

    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield run


def files() -> list[str]:
    return sorted(path.stem for path in this_host().sessions_folder.glob("*.jsonl"))


def said_in(server: OpenAIServer) -> list[str]:
    """Return what stood in the last request, without the system prompt."""
    return [each["content"] for each in server.requests[-1].body["messages"][1:]]


def test_a_session_goes_on_in_its_file_and_a_fork_in_another(printed, server):
    name = printed("one")["session"]
    assert files() == [name]
    assert printed("--continue", "two")["session"] == name
    assert said_in(server) == ["one", "first", "two"]
    fork = printed("--resume", "1", "--fork", "three")["session"]
    assert files() == sorted({name, fork})
    assert len(files()) == 2
    assert said_in(server) == ["one", "first", "two", "second", "three"]
    assert printed("--resume", name, "four")["session"] == name
    assert said_in(server) == ["one", "first", "two", "second", "four"]


def test_one_shots_stand_behind_conversations_and_copies_are_called_so(
    printed: Print, project: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def listed(*words: str) -> Any:
        assert cli.main(["sessions", *words, "--format", "json"]) == 0
        return msgspec.json.decode(capsys.readouterr().out)

    begun = printed("mend the lamp")["session"]
    printed("--resume", begun, "go on")
    alone = printed("only once")["session"]
    copy = printed("--resume", begun, "--fork", "another way")["session"]
    kinds = {each["session"]: each["is_one_shot"] for each in listed()}
    assert kinds == {begun: False, alone: True, copy: False}
    assert [each["session"] for each in listed()][-1] == alone
    titles = {each["session"]: each["title"] for each in listed()}
    assert titles[copy] == f"{titles[begun]} (fork)"
    assert cli.main(["sessions"]) == 0
    *_, empty, head, last = capsys.readouterr().out.splitlines()
    assert (empty, head) == ("", "One-shots (ybs --print):")
    assert last.split()[0] == "3"
    again = printed("--resume", copy, "--fork", "and once more")["session"]
    assert next(e["title"] for e in listed() if e["session"] == again) == titles[copy]


def test_a_one_shot_that_was_killed_is_one_until_somebody_goes_on_with_it(printed, server, capsys):
    def kinds() -> dict[str, bool]:
        assert cli.main(["sessions", "--format", "json"]) == 0
        listed = msgspec.json.decode(capsys.readouterr().out)
        return {each["session"]: each["is_one_shot"] for each in listed}

    name = printed("only once")["session"]
    path = this_host().sessions_folder / f"{name}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))  # as a kill leaves it: without its title and its end
    assert kinds() == {name: True}
    assert printed("--resume", name, "go on")["session"] == name
    assert kinds() == {name: False}


def test_what_cannot_go_on_says_why_and_what_to_do(printed, server, tmp_path, monkeypatch):
    name = printed("mend the lamp")["session"]
    result = printed("--resume", "mend_the_lmap", "go", code=1)
    assert f"similar names: {name}" in result["message"]
    with_lock = Log(this_host().sessions_folder / f"{name}.jsonl", last=99)
    result = printed("--continue", "go", code=1)
    assert result["message"].endswith("Continue in a copy of it with --fork")
    assert printed("--continue", "--fork", "go")["session"] != name
    with_lock.close()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert printed("--resume", name, "go")["session"] == name


def test_where_no_session_is_saved_continue_begins_a_conversation_and_says_so(
    printed: Print, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed("--resume", "nosuch", "go", code=1)["is_error"]
    begun = printed("--continue", "go")
    assert printed("--continue", "and go on")["session"] == begun["session"]
    assert cli.main(["sessions", "--format", "json"]) == 0
    (only,) = msgspec.json.decode(capsys.readouterr().out)
    assert not only["is_one_shot"]


async def test_the_new_session_of_continue_is_told_of(server: OpenAIServer, project: Path) -> None:
    where = {"provider": "openai", "endpoint": server.url, "model": "scripted", "sandbox": False}
    async with Session.open(project, commands=SlashCommands(), resume="", **where) as session:
        assert session.warnings[-1].startswith(f"No session of {project} is saved, so a new one")
        assert session.resumed is None


async def test_where_all_was_taken_back_continue_says_so(server, project):
    where = {"provider": "openai", "endpoint": server.url, "model": "scripted", "sandbox": False}
    async with Session.open(project, commands=SlashCommands(), **where) as session:
        await session.send("one")
        await session.handle("/clear")
        name = session.journal.name
    async with Session.open(project, commands=SlashCommands(), resume="", **where) as session:
        assert "are empty, so a new one was started" in session.warnings[-1]
        assert "resumed by name" in session.warnings[-1]
        assert session.resumed is None
    async with Session.open(project, commands=SlashCommands(), resume=name, **where) as session:
        assert session.journal.name == name


@pytest.mark.parametrize("fork", [False, True])
async def test_after_a_kill_before_the_first_words_continue_begins_a_new_session(
    server: OpenAIServer, project: Path, *, fork: bool
) -> None:
    where = {"provider": "openai", "endpoint": server.url, "model": "scripted", "sandbox": False}
    session = Session.open(project, commands=SlashCommands(), **where)
    killed = session.journal.begin()  # its file has this one line; nobody ends the session
    session.emit(session.beginning(killed))
    session.journal.close()
    async with Session.open(
        project, commands=SlashCommands(), resume="", fork=fork, **where
    ) as again:
        assert "a new one was started" in again.warnings[-1]
        assert (await again.send("go")).finished.reason == "done"
        assert again.journal.name != killed
    await session.close()


async def test_a_program_goes_on_with_a_session_and_incognito_writes_nothing(server, project):
    where = {"provider": "openai", "endpoint": server.url, "model": "scripted", "sandbox": False}
    async with Session.open(project, commands=SlashCommands(), **where) as session:
        await session.send("one")
        name = session.journal.name
    async with Session.open(
        project, commands=SlashCommands(), resume=name, fork=True, **where
    ) as session:
        await session.send("two")
        assert session.journal.name != name
    assert said_in(server) == ["one", "first", "two"]
    before = {path: path.read_bytes() for path in this_host().sessions_folder.iterdir()}
    async with Session.open(
        project, commands=SlashCommands(), resume=name, incognito=True, **where
    ) as session:
        await session.send("three")
    assert said_in(server) == ["one", "first", "three"]
    assert {path: path.read_bytes() for path in this_host().sessions_folder.iterdir()} == before
