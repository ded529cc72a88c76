"""Ids of tool calls: unique in a session, whoever asks, and the same ones in each run."""

import re

from msgspec import Raw
from msgspec.structs import replace

from rows import every_row
from ybs.core.agent import Agent
from ybs.core.call_ids import CallIds
from ybs.core.conversation import Conversation
from ybs.core.events import AssistantSaid, ToolCallStreamed, ToolFinished, ToolStarted
from ybs.core.messages import Text, ToolCall, UserMessage
from ybs.core.ports import Request
from ybs.providers.wire.adapter import RequestOptions
from ybs.providers.wire.anthropic import AnthropicAdapter
from ybs.providers.wire.openai import OpenAIAdapter
from ybs.providers.wire.quirks import Quirks
from ybs.testing import RecordedEvents, ScriptedModel, ScriptedToolbox
from ybs.testing.script import ScriptedAnswer

CALL = ToolCall(id="call_1", name="look", arguments=Raw(b"{}"))


def agent_of(ids: CallIds, name: str, answers: int = 1) -> tuple[Agent, RecordedEvents]:
    script = [ScriptedAnswer(parts=(Text(text="Wait."), CALL, replace(CALL, id="other")))] * answers
    events = RecordedEvents()
    model = ids.naming(ScriptedModel([*script, "done"]), name)
    return Agent(model, ScriptedToolbox(), events, Conversation()), events


def ids_of(events: RecordedEvents) -> list[str]:
    return [event.id for event in events.of(ToolStarted)]


async def test_agents_whose_providers_give_the_same_ids_have_other_ones():
    ids = CallIds()
    main, told = agent_of(ids, "main", answers=2)
    other, told_by_other = agent_of(ids, "explore-1")
    await main.run(UserMessage.of("go"))
    await other.run(UserMessage.of("go"))
    assert ids_of(told) == ["call_1", "other", "call_1_2", "other_2"]
    assert ids_of(told_by_other) == ["explore-1-call_1", "explore-1-other"]


async def test_pieces_message_call_and_result_have_one_id():
    ids = CallIds()
    ids.reserve(["x-call_1"])
    agent, told = agent_of(ids, "x")
    await agent.run(UserMessage.of("go"))
    wanted = ["x-call_1_2", "x-other"]
    assert list(dict.fromkeys(each.id for each in told.of(ToolCallStreamed))) == wanted
    assert [call.id for call in told.of(AssistantSaid)[0].message.calls] == wanted
    assert ids_of(told) == [each.id for each in told.of(ToolFinished)] == wanted


async def test_ids_of_earlier_parts_of_a_session_are_not_given_again():
    ids = CallIds()
    ids.reserve(["call_1", "other"])
    agent, told = agent_of(ids, "main")
    await agent.run(UserMessage.of("go"))
    assert ids_of(told) == ["call_1_2", "other_2"]


async def test_two_calls_of_one_answer_that_share_an_id_come_apart():
    ids = CallIds()
    events = RecordedEvents()
    model = ids.naming(ScriptedModel([ScriptedAnswer(parts=(CALL, CALL)), "done"]))
    agent = Agent(model, ScriptedToolbox(), events, Conversation())
    await agent.run(UserMessage.of("go"))
    assert ids_of(events) == ["call_1", "call_1_2"]


@every_row(
    ("adapter", "quirks", "form"),
    [
        (OpenAIAdapter(), Quirks(), r".{1,40}"),
        (OpenAIAdapter(), Quirks(call_id_chars=9), r"[A-Za-z0-9]{9}"),
        (AnthropicAdapter(), Quirks(), r"[A-Za-z0-9_-]+"),
    ],
)
async def test_a_provider_gets_ids_of_the_form_that_it_demands(adapter, quirks, form):
    name = "explore.the-whole-repository-and-tell-me-1"
    agent, _ = agent_of(CallIds(), name)
    await agent.run(UserMessage.of("go"))
    request = Request("", agent.conversation.messages)
    body = repr(adapter.encode(request, RequestOptions(model="m", quirks=quirks)))
    asked = re.findall(r"'id': '([^']*)'", body)
    answered = re.findall(r"'(?:tool_call_id|tool_use_id)': '([^']*)'", body)
    assert len(set(asked)) == 2
    assert asked == answered
    assert all(re.fullmatch(form, each) for each in asked)
