"""Background jobs in a session: they outlive the turn, the person sees and stops them, and they end with it."""

import asyncio
import re
from collections.abc import Callable

import pytest

from processes import comes, ends, is_alive
from scripted import OpenAIServer
from ybs.core.events import ToolFinished, ToolPrinted
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call

pytestmark = pytest.mark.integration

Open = Callable[..., tuple[Session, RecordedEvents]]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ybs.tools.shell.process.GRACE_SECONDS", 0.05)
    monkeypatch.setattr("ybs.tools.builtin.run_shell.FIRST_SECONDS", 0.1)


SERVE = call("run_shell", command="echo $$; sleep 60", background=True)


async def asked(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


def pid_in(events: RecordedEvents) -> int:
    found = re.match(r"\d+", events.of(ToolFinished)[0].output)
    assert found is not None
    return int(found[0])


async def test_a_job_outlives_its_turn_and_ends_with_the_session(playing):
    async with playing([SERVE, "It runs.", "Still."], mode="bypass") as (session, events, _):
        await session.send("start it")
        await session.send("and now?")
        pid = pid_in(events)
        assert is_alive(pid)
        text = (await asked(session, "/jobs")).text
        assert text.startswith("job-1  running for 0:0")
        assert text.endswith("\nStop one with /jobs stop ID.")
        assert session.status().jobs == 1
    assert await ends(pid)


async def test_a_job_ends_with_the_session_when_its_door_fails(open_session: Open):
    async def door(session: Session) -> None:
        async with session:
            await session.send("start it")
            raise RuntimeError("the frontend broke")

    async with OpenAIServer([SERVE, "It runs."]) as server:
        session, events = open_session(server, mode="bypass")
        with pytest.raises(RuntimeError, match="broke"):
            await door(session)
    assert await ends(pid_in(events))


async def test_a_job_outlives_a_cancelled_turn(playing):
    wait = call("run_shell", command="echo waits; sleep 60")
    async with playing([SERVE, wait], mode="bypass") as (session, events, _):
        turn = asyncio.create_task(session.send("start it"))
        assert await comes(lambda: "waits\n" in {e.text for e in events.of(ToolPrinted)})
        session.cancel()
        await turn
        assert is_alive(pid_in(events))
    assert await ends(pid_in(events))


async def test_the_person_stops_a_job(playing):
    async with playing([SERVE, "It runs."], mode="bypass") as (session, events, _):
        await session.send("start it")
        reply = await asked(session, "/jobs stop 1")
        assert await ends(pid_in(events))
    assert not reply.is_error
    assert reply.text.startswith("job-1  stopped after ")


@pytest.mark.parametrize("line", ["/jobs", "/ps", "/JOBS list"])
async def test_without_jobs_that_is_said(playing, line: str):
    async with playing([]) as (session, _, _):
        assert (await asked(session, line)).text == "There are no background jobs."


@pytest.mark.parametrize(
    ("line", "words"),
    [("/jobs stop", "Usage"), ("/jobs start x", "Usage"), ("/jobs stop 4", "no job '4'")],
)
async def test_what_makes_no_sense_is_an_error(playing, line: str, words: str):
    async with playing([]) as (session, _, _):
        reply = await asked(session, line)
    assert reply.is_error
    assert words in reply.text


async def test_a_long_output_of_a_typed_command_names_its_file(open_session: Open):
    async with OpenAIServer(["Long."]) as server:
        session, _ = open_session(server)
        async with session:
            await session.handle("!seq 100000")
        sent = server.requests[0].body["messages"][-1]["content"]
    assert re.search(r"The whole output is in \S+/outputs/\S+\.txt$", sent)
