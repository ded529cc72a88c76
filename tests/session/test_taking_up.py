"""A turn whose process died goes on: what never began runs, what did is told and not run again, what was asked is asked again."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from opened import Open
from rows import every_row
from scripted import OpenAIServer
from ybs.core.conversation import CANCELLED
from ybs.core.events import ConfirmationAsked, ToolFinished, TurnFinished
from ybs.core.ports import Answer, Question
from ybs.session.reply import Outcome
from ybs.testing import answer, call

KILLED = """
import asyncio, os, signal, sys
from ybs.session.session import Session

def kill(envelope):
    if type(envelope.event).__name__ == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

async def confirm(question):
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    here = {"provider": "openai", "endpoint": sys.argv[2], "model": "m", "sandbox": False}
    session = Session.open(sys.argv[1], mode=sys.argv[4], confirm=confirm, **here)
    session.subscribe(kill)
    await session.send("change it")

asyncio.run(main())
"""


async def killed(project: Path, server: OpenAIServer, at: str, mode: str = "bypass") -> None:
    """Have a process die when the first event of a kind is told, or when the person is asked."""
    command = (sys.executable, "-c", KILLED, str(project), server.url, at, mode)
    process = await asyncio.create_subprocess_exec(*command)
    assert await asyncio.wait_for(process.wait(), 30) == -signal.SIGKILL


def said(server: OpenAIServer) -> list[dict[str, Any]]:
    """Return the messages of the last request."""
    messages: list[dict[str, Any]] = server.requests[-1].body["messages"]
    return messages


@pytest.mark.slow
async def test_a_command_that_ran_is_told_as_interrupted_and_not_run_again(open_session, project):
    (project / "a").write_text("text")
    shell = call("run_shell", command="echo 1 >> made; echo x")
    together = answer(shell, call("read_file", path="a"))
    async with OpenAIServer([together, "all done"]) as server:
        await killed(project, server, "ToolPrinted")
        session, events = open_session(server, mode="bypass", resume="")
        async with session:
            assert session.resumed is not None
            assert "/retry goes on with it" in session.resumed.text
            outcome = await session.take_up()
            assert isinstance(outcome, Outcome)
            assert (outcome.text, outcome.finished.reason) == ("all done", "done")
            assert await session.take_up() is None  # it has its end now
        *_, ran, read, note = said(server)
        assert ran["content"] == CANCELLED
        assert read["content"].startswith("1\ttext")
        assert "not run again: run_shell" in note["content"]
        assert (project / "made").read_text() == "1\n"
        assert [event.success for event in events.of(ToolFinished)] == [True, False]
    saved, _ = open_session(server, resume="")
    async with saved:
        assert await saved.take_up() is None


@pytest.mark.slow
@every_row("is_allowed", [True, False])
async def test_a_question_that_was_open_is_asked_again(open_session, project, is_allowed):
    (project / "a").write_text("text")
    async with OpenAIServer([call("delete_file", path="a"), "all done"]) as server:
        await killed(project, server, "", mode="ask")
        assert (project / "a").exists()
        asked: list[Question] = []

        async def confirm(question: Question) -> Answer:
            asked.append(question)
            return Answer(is_allowed=is_allowed)

        session, events = open_session(server, mode="ask", resume="", confirm=confirm)
        async with session:
            await session.take_up()
        assert [question.call.name for question in asked] == ["delete_file"]
        assert (project / "a").exists() is not is_allowed
        assert len(events.of(ConfirmationAsked)) == 1
        assert "not run again" not in said(server)[-1]["content"]


@pytest.mark.slow
async def test_a_turn_that_had_no_answer_yet_is_answered(open_session: Open, project: Path):
    async with OpenAIServer(["all done"]) as server:
        await killed(project, server, "RequestStarted")
        session, events = open_session(server, resume="")
        async with session:
            outcome = await session.take_up()
        assert outcome is not None
        assert outcome.text == "all done"
        assert [each["role"] for each in said(server)][:2] == ["system", "user"]
        assert "change it" in str(said(server))
        assert len(events.of(TurnFinished)) == 1


async def test_a_turn_that_ended_or_a_session_that_is_new_has_nothing_to_take_up(open_session):
    async with OpenAIServer(["fine"]) as server:
        session, _ = open_session(server)
        async with session:
            assert await session.take_up() is None
            await session.send("hello")
            assert await session.take_up() is None
        again, _ = open_session(server, resume="")
        async with again:
            assert await again.take_up() is None
        assert len(server.requests) == 1
