"""Another model in mid-session: its tools, its prompt and its window count at once, and the transcript names it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripted import OllamaServer, OpenAIServer
from ybs.commands.open import SlashCommands
from ybs.repo_map.mapper import FEWEST_FILES
from ybs.session.reply import Reply
from ybs.session.session import Session

pytestmark = pytest.mark.integration

SHORT = {
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "search_files",
    "run_shell",
    "delete_file",
}
LONG = SHORT | {"delete_file", "git", "shell_job", "repo_map", "memorize", "set_thought"}
#: What a model with a large window is told of, too.
LARGE = LONG | {"ask_user", "todo"}


@pytest.fixture
def repository(project: Path) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    subprocess.run(
        [
            "git",
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-qm",
            "Begin the work",
            "--allow-empty",
        ],
        cwd=project,
        check=True,
    )
    for name in ("a.py", "b.py", "c.py"):
        (project / name).write_text("def one():\n    return 1\n" * 3)
    return project


def large(server: OpenAIServer, window: int = 100_000) -> dict[str, Any]:
    """Return settings with a provider of the person's own, whose model has a large window."""
    entry = {"endpoint": server.url, "model": "large", "window": window}
    return {"providers.far.endpoint": entry["endpoint"], "providers.far.model": "large"} | {
        "providers.far.window": window
    }


def tools_of(body: Any) -> set[str]:
    return {tool["function"]["name"] for tool in body["tools"]}


def system_of(body: Any) -> str:
    return body["messages"][0]["content"]


def text_in(path: str) -> str:
    return Path(path).read_text()


async def said(session: Session, line: str) -> str:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    assert not reply.is_error, reply.text
    return reply.text


async def test_a_larger_model_has_all_tools_and_the_whole_prompt_at_once_and_a_small_one_the_few(
    repository: Path,
) -> None:
    async with (
        OllamaServer(["one", "three"], models=["small:1b"]) as near,
        OpenAIServer(["two"], models=["large"]) as far,
        Session.open(
            repository,
            commands=SlashCommands(),
            provider="ollama",
            endpoint=near.url,
            model="small:1b",
            overrides=large(far),
        ) as session,
    ):
        await session.send("first")
        before = session.status()
        assert "Now using far large." in await said(session, "/provider far")
        assert session.conversation.system != system_of(near.requests[0].body)  # not only later
        assert session.status().window == 100_000
        assert before.window != 100_000
        await session.send("second")
        await said(session, "/provider ollama small:1b")
        assert session.status().window == before.window
        await session.send("third")
    first, third = (each.body for each in near.requests)
    (second,) = (each.body for each in far.requests)
    assert tools_of(first) == tools_of(third) == SHORT
    assert tools_of(second) == LARGE
    assert len(system_of(second)) > len(system_of(first))
    assert "Begin the work" in system_of(second)
    assert "Begin the work" not in system_of(first) + system_of(third)
    assert "far large" in system_of(second)
    assert third["messages"][1]["content"].startswith("Top level: a.py")
    by_name = {tool["function"]["name"]: tool["function"] for tool in second["tools"]}
    assert "network" in by_name["run_shell"]["parameters"]["properties"]
    assert [each["role"] for each in second["messages"]].count("user") == 2


async def test_the_map_is_as_large_as_the_new_model_has_room_for(repository: Path) -> None:
    for number in range(FEWEST_FILES):
        (repository / f"part{number}.py").touch()
    async with (
        OllamaServer(["one"], models=["small:1b"]) as near,
        OpenAIServer(["two"], models=["large"]) as far,
        Session.open(
            repository,
            commands=SlashCommands(),
            provider="ollama",
            endpoint=near.url,
            model="small:1b",
            overrides=large(far),
        ) as session,
    ):
        context = session.context
        assert context.mapper.tokens == 0
        await said(session, "/provider far")
        assert context.mapper.tokens == 1024
        await said(session, "/provider ollama small:1b")
        assert context.mapper.tokens == 0


async def test_a_resumed_session_names_the_model_that_answered_last_and_its_provider(repository):
    async with (
        OllamaServer(["one", "x"], models=["small:1b"]) as near,
        OpenAIServer(["two"], models=["large"]) as far,
    ):
        at: dict[str, Any] = {"provider": "ollama", "endpoint": near.url, "model": "small:1b"}
        async with Session.open(
            repository, commands=SlashCommands(), **at, overrides=large(far)
        ) as session:
            await session.send("first")
            await said(session, "/provider far large")
            await session.send("second")
        async with Session.open(
            repository, commands=SlashCommands(), **at, overrides=large(far), resume=""
        ) as session:
            assert session.resumed is not None
            assert (
                "It used far large before and uses ollama small:1b now; /provider far large switches back."
                in session.resumed.text
            )
            await said(session, "/provider far large")
            assert session.status().model == "large"
        # It was only looked at: what it says of the last model is as it was.
        async with Session.open(
            repository, commands=SlashCommands(), **at, overrides=large(far), resume=""
        ) as session:
            assert session.resumed is not None
            assert "/provider far large switches back." in session.resumed.text


async def test_a_switch_is_one_line_of_the_transcript_and_no_title_is_repeated(repository):
    async with (
        OllamaServer(["one"], models=["small:1b", "other:1b"]) as near,
        Session.open(
            repository,
            commands=SlashCommands(),
            provider="ollama",
            endpoint=near.url,
            model="small:1b",
        ) as session,
    ):
        await said(session, "/model other:1b")  # nothing was said yet: the first line has it
        await session.send("first")
        path = session.journal.path
        await said(session, "/rename A title")
        before = text_in(path).count('"title"')
        await said(session, "/model small:1b")
        await session.journal.synced()
        text = text_in(path)
    starts = [line for line in text.splitlines() if '"session_start"' in line]
    assert ['"other:1b"' in line for line in starts] == [True, False]
    assert ['"small:1b"' in line for line in starts] == [False, True]
    assert text.count('"title"') == before
