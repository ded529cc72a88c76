"""Ids of tool calls in a whole session: none comes twice in its file, whatever the conversation still holds."""

from collections.abc import Callable

import pytest
from msgspec import Raw
from msgspec.structs import replace

from scripted import OpenAIServer
from ybs.agent.build import AgentSpec, BuiltAgent
from ybs.agent.environment import ToolEnvironment
from ybs.core.events import Emit, ToolStarted
from ybs.core.messages import ToolCall
from ybs.session.session import Session
from ybs.testing import RecordedEvents

Open = Callable[..., tuple[Session, RecordedEvents]]
LIST = ToolCall(id="call_a", name="list_files", arguments=Raw(b'{"path": "."}'))
ANSWERS = [LIST, "listed"]


def ids_of(events: RecordedEvents) -> list[str]:
    return [event.id for event in events.of(ToolStarted)]


@pytest.mark.integration
async def test_a_call_that_was_rewound_keeps_its_id_for_itself(playing):
    async with playing([*ANSWERS, *ANSWERS]) as (session, events, _):
        await session.send("look")
        await session.history.undo()
        await session.send("look again")
    assert ids_of(events) == ["call_a", "call_a_2"]


@pytest.mark.integration
async def test_a_resumed_session_gives_no_id_of_an_earlier_call(open_session: Open):
    async with OpenAIServer([*ANSWERS, "fine", *ANSWERS, *ANSWERS]) as server:
        session, _ = open_session(server)
        async with session:
            await session.send("look")
            await session.history.undo()
            await session.send("hello")
            name = session.journal.name
        again, events = open_session(server, resume=name)
        async with again:
            await again.send("look again")
            await again.start_anew(is_incognito=False)
            await again.send("look")
    assert ids_of(events) == ["call_a_2", "call_a"]


async def test_the_calls_of_an_agent_with_a_name_begin_with_it(playing, monkeypatch):
    def build(spec: AgentSpec, environment: ToolEnvironment, emit: Emit) -> BuiltAgent:
        return BuiltAgent(replace(spec, name="explore-1"), environment, emit)

    monkeypatch.setattr("ybs.session.main_agent.BuiltAgent", build)
    async with playing(ANSWERS) as (session, events, _):
        await session.send("look")
    assert ids_of(events) == ["explore-1-call_a"]
