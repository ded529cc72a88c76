"""/plan: what was proposed is shown, kept, and carried out in the mode that is chosen."""

from pathlib import Path

import pytest

from opened import Open
from scripted import OpenAIServer
from ybs.core.events import ToolFinished
from ybs.guards.planning import HOW
from ybs.session.reply import Outcome, Reply
from ybs.session.session import Session
from ybs.testing import call

PLAN = "I looked.\n\nPlan:\n1. write made.txt\n2. look at it @gone.py"


async def said(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


@pytest.mark.integration
async def test_a_plan_is_shown_and_going_ahead_changes_the_mode_and_does_it(
    open_session: Open, project: Path
):
    write = call("write_file", path="made.txt", content="x")
    async with OpenAIServer([write, PLAN, write, "done"]) as server:
        session, events = open_session(server, mode="plan")
        async with session:
            outcome = await session.send("make it")
            assert outcome.plan == PLAN.removeprefix("I looked.\n\n")
            assert events.of(ToolFinished)[0].is_refused
            assert not (project / "made.txt").exists()
            assert (await said(session, "/plan")).text == outcome.plan
            assert (await said(session, "/plan keep")).text.startswith("Say what the plan should")
            assert (await said(session, "/plan go bypass")).is_error
            assert session.mode == "plan"
            done = await session.handle("/plan go")
            assert isinstance(done, Outcome)
            assert (done.text, done.plan) == ("done", "")
            assert session.mode == "accept-edits"
            assert (project / "made.txt").read_text() == "x"
            assert (await said(session, "/plan")).text == outcome.plan
        bodies = [repr(request.body) for request in server.requests]
    assert [body.count(HOW) for body in bodies] == [1, 1, 1, 1]
    assert "Go ahead with this plan." in bodies[2]


@pytest.mark.integration
async def test_a_plan_is_there_again_when_the_session_is_resumed_and_was_cleared(
    open_session: Open,
):
    async with OpenAIServer([PLAN, "done", "done"]) as server:
        session, _ = open_session(server, mode="plan")
        async with session:
            await session.send("make it")
            await session.handle("/plan go ask")
            assert session.mode == "ask"
            await session.handle("/plan go auto")
            assert session.mode == "auto"
            await session.handle("/clear")
            name = session.journal.name
        again, _ = open_session(server, resume=name)
        async with again:
            assert (await said(again, "/plan")).text.startswith("Plan:\n1. write made.txt")


async def test_where_nothing_was_planned_that_is_said(open_session: Open):
    async with OpenAIServer(["Which database do you want?"]) as server:
        session, _ = open_session(server, mode="plan")
        async with session:
            assert (await session.send("make it")).plan == ""
            assert (await said(session, "/plan")).text.startswith("There is no plan.")
            assert (await said(session, "/plan go")).is_error
            assert (await said(session, "/plan now")).is_error
            assert session.mode == "plan"


async def test_an_answer_in_another_mode_asks_nothing(open_session: Open):
    async with OpenAIServer([PLAN]) as server:
        session, _ = open_session(server)
        async with session:
            assert (await session.send("make it")).plan == ""
        assert HOW not in repr(server.requests[0].body)
