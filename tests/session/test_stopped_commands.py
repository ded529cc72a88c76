"""A command that is stopped, by the turn's time or by the person: what it had printed is not lost."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from opened import events_to
from scripted import OpenAIServer
from ybs.core.events import (
    Event,
    RequestStarted,
    ToolFinished,
    ToolPrinted,
    ToolStarted,
    TurnFinished,
)
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call

pytestmark = pytest.mark.integration

Open = Callable[..., tuple[Session, RecordedEvents]]
#: Says something on both streams, then does not end.
LONG = "echo first; echo second >&2; sleep 60"


def told(server: OpenAIServer) -> str:
    """Return what the model was told of the first call, in the last request."""
    messages = server.requests[-1].body["messages"]
    return next(each["content"] for each in messages if each["role"] == "tool")


async def test_at_the_end_of_its_time_a_turn_keeps_the_output_and_asks_no_more(open_session: Open):
    async with OpenAIServer([call("run_shell", command=LONG), "never read"]) as server:
        session, events = open_session(server, timeout=1.0, mode="bypass")
        async with session, asyncio.timeout(8):
            outcome = await session.send("go")
        assert len(server.requests) == 1
    assert (outcome.finished.reason, outcome.finished.steps) == ("limit", 1)
    assert outcome.finished.message == "Stopped after 1 s, the time limit of a turn."
    assert len(events.of(RequestStarted)) == 1
    (finished,) = events.of(ToolFinished)
    assert finished.output.startswith("first\n")
    assert finished.output.endswith("[Stopped after 1 s, the time limit of a turn.]")
    assert not finished.success


async def test_of_a_cancelled_command_the_model_hears_what_it_had_printed(
    open_session: Open, project: Path
):
    script = [call("run_shell", command=f"{LONG}; touch made"), "I see."]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, mode="bypass")

        def stop(event: Event) -> None:
            if isinstance(event, ToolPrinted) and "first" in event.text:
                session.cancel()

        session.subscribe(events_to(stop))
        async with session, asyncio.timeout(8):
            assert (await session.send("go")).finished.reason == "interrupted"
            name = session.journal.path
            await session.send("what did it say?")
        said = told(server)
    assert said.startswith("first\n")
    assert "cancelled after" in said
    assert "It may have done part of its work" in said
    assert not (project / "made").exists()
    assert [each.reason for each in events.of(TurnFinished)] == ["interrupted", "done"]
    assert name is not None
    assert '"first' in await asyncio.to_thread(Path(name).read_text)


async def test_of_one_that_had_printed_nothing_it_hears_that_it_was_cancelled(open_session: Open):
    async with OpenAIServer([call("run_shell", command="sleep 60"), "I see."]) as server:
        session, _ = open_session(server, mode="bypass")
        async with session, asyncio.timeout(8):
            session.subscribe(
                lambda envelope: (
                    isinstance(envelope.event, ToolStarted)
                    and asyncio.get_running_loop().call_later(0.3, session.cancel)
                )
            )
            await session.send("go")
            await session.send("and?")
        assert told(server).startswith("Cancelled before it finished.")
