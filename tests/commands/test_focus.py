"""/focus: shown, set and cleared, and told to the conversation that runs."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scripted import OpenAIServer
from ybs.commands.project import focus
from ybs.session.session import Session
from ybs.testing import RecordedEvents

Open = Callable[..., tuple[Session, RecordedEvents]]


@pytest.mark.integration
async def test_a_focus_is_kept_and_told_with_the_next_words(open_session: Open, project: Path):
    async with OpenAIServer(["one", "two", "three"]) as server:
        session, _ = open_session(server, overrides={"context.repo_map_tokens": 0})
        async with session:
            assert "No focus" in (await focus(session, "")).text
            assert "No focus" in (await focus(session, "clear")).text
            await session.send("hello")
            await focus(session, "Taken back before a word was said.")
            reply = await focus(session, "The parser only.")
            assert (reply.is_error, ".ybs/FOCUS.md" in reply.text) == (False, True)
            assert (project / ".ybs/FOCUS.md").read_text() == "The parser only.\n"
            assert (await focus(session, "")).text == "The parser only."
            await session.send("go on")
            assert "The focus was cleared" in (await focus(session, "Clear")).text
            await session.send("and now")
            await session.handle("/export talk.md")
        said = [str(request.body) for request in server.requests]
        assert "The parser only." not in said[0]
        assert said[1].count("The parser only.") == 1
        assert "Taken back" not in said[1]
        assert "The focus of this project was removed" in said[2]
    assert "The focus of this project was removed" in (project / "talk.md").read_text()
    assert not (project / ".ybs/FOCUS.md").exists()


async def test_in_incognito_the_focus_is_shown_and_stays(playing, project: Path):
    (project / ".ybs").mkdir()
    (project / ".ybs/FOCUS.md").write_text("The parser.")
    async with playing([], incognito=True) as (session, _, _):
        assert (await focus(session, "")).text == "The parser."
        for argument in ("Something else.", "clear"):
            reply = await focus(session, argument)
            assert reply.is_error
            assert "an incognito session saves nothing" in reply.text
    assert (project / ".ybs/FOCUS.md").read_text() == "The parser."


@pytest.mark.integration
async def test_a_focus_leaves_nothing_untracked_and_rules_of_others_stay(playing, project):
    def git(*words: str) -> str:
        command = ["git", "-C", str(project), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    async with playing([]) as (session, _, _):
        await focus(session, "The parser.")
        assert git("status", "--porcelain", "-uall") == ""
        await focus(session, "clear")
        assert not (project / ".ybs").exists()
        (project / ".ybs").mkdir()
        (project / ".ybs/.gitignore").write_text("mine\n")
        await focus(session, "The parser.")
        await focus(session, "clear")
    assert (project / ".ybs/.gitignore").read_text() == "mine\n"
