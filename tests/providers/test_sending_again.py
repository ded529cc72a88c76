"""Streams that break and servers that cannot answer now: sent again for about a minute, visibly, and nothing is done or said twice."""

from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace
from raw_http import chunk, http, sse, unending

from rows import every_row
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.errors import ModelError, ProviderDown
from ybs.core.events import AssistantSaid, Event, RequestRetried, TextStreamed
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.http.client import HttpClient, Patience
from ybs.providers.http.failures import Site
from ybs.providers.remote import RemoteModel, Retry
from ybs.providers.wire.adapter import RequestOptions
from ybs.providers.wire.openai import OpenAIAdapter
from ybs.testing import ScriptedToolbox

HELLO = http(sse(chunk({"content": "Hello"}), chunk({}, "stop")))
HALF = unending(sse(chunk({"content": "Hel"}), done=False))
CALL = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}
CALLED = sse(chunk({"tool_calls": [CALL]}), chunk({}, "tool_calls"))
HALF_CALLED = unending(sse(chunk({"content": "I look."}), chunk({"tool_calls": [CALL]}), done=False))  # fmt: skip
REQUEST = Request("", [UserMessage.of("hi")])


class Clock:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds


def model_at(url: str, clock: Clock, **retry: Any) -> RemoteModel:
    site = Site(provider="p", endpoint=url, host="h:1", model="m")
    client = HttpClient(site, patience=Patience(first=5, later=5))
    kept = replace(Retry(**retry), sleep=clock.sleep, now=clock.now)
    return RemoteModel(OpenAIAdapter(), client, RequestOptions(model="m"), retry=kept)


async def run(url: str, clock: Clock, *prompts: str) -> tuple[list[Event], Agent]:
    events: list[Event] = []
    model, tools = model_at(url, clock), ScriptedToolbox({"look": "seen"})
    agent = Agent(model, tools, events.append, Conversation())
    for prompt in prompts:
        await agent.run(UserMessage.of(prompt))
    await model.aclose()
    return events, agent


def texts(agent: Agent) -> list[str]:
    return [getattr(each, "text", "") for each in agent.conversation.messages]


async def test_an_answer_that_breaks_off_is_asked_for_anew_and_its_text_is_not_sent_back(serve):
    server, clock = await serve(HALF, HALF, HELLO), Clock()
    events, agent = await run(server.url, clock, "one")
    assert texts(agent) == ["one", "Hello"]
    assert [event.text for event in events if isinstance(event, TextStreamed)] == ["Hel", "Hel", "Hello"]  # fmt: skip
    assert ["broke off" in e.message for e in events if isinstance(e, RequestRetried)] == [True] * 2
    assert [asked.body["messages"] for asked in server.asked] == [
        [{"role": "user", "content": "one"}]
    ] * 3
    assert [e.content for e in events if isinstance(e, AssistantSaid)] == ["Hello"]


async def test_a_call_that_was_whole_before_the_break_runs_once(serve):
    server, clock = await serve(HALF_CALLED, http(CALLED), HELLO), Clock()
    _, agent = await run(server.url, clock, "one")
    assert [call.name for call in agent.toolbox.calls] == ["look"]
    assert len(server.asked) == 3


async def test_where_no_answer_becomes_whole_the_text_of_the_last_one_is_kept_and_marked(serve):
    busy = http("", status="503 Service Unavailable")
    server, clock = await serve(HALF, busy), Clock()
    events, agent = await run(server.url, clock, "one")
    assert texts(agent) == ["one", "Hel"]
    assert agent.conversation.messages[-1].stop_reason == "cut_off"
    assert [e.content for e in events if isinstance(e, AssistantSaid)] == ["Hel"]


async def test_a_broken_half_goes_before_the_next_words_once(serve):
    busy = http("", status="400 Bad")
    server, clock = await serve(HALF, busy, HELLO), Clock()
    _, agent = await run(server.url, clock, "one", "two")
    assert texts(agent) == ["one", "Hel", "two", "Hello"]


@every_row("status", ["503 Busy", "500 Error", "529 Overloaded", "429 Too Many", "502 Bad Gateway"])
async def test_a_server_that_cannot_answer_is_asked_for_about_a_minute(status: str, serve):
    clock = Clock()
    model = model_at((await serve(http("", status=status))).url, clock)
    with pytest.raises(ModelError) as caught:
        await taken(model)
    assert caught.value.temporary
    assert 30 <= sum(clock.pauses) <= 65
    assert len(clock.pauses) in (5, 6)
    await model.aclose()


async def test_a_server_that_asks_for_a_minute_gets_one_and_no_second(serve):
    clock = Clock()
    slow = http("", status="429 Too Many", retry_after="60")
    model = model_at((await serve(slow)).url, clock)
    with pytest.raises(ModelError):
        await taken(model)
    assert clock.pauses == [60]
    await model.aclose()


async def test_an_answer_that_gets_further_has_its_minute_anew(serve):
    clock = Clock()
    slow = http("", status="429 Too Many", retry_after="60")
    model = model_at((await serve(slow, HALF, slow, HELLO)).url, clock, base_ms=0)
    assert (await taken(model))[-1] == AssistantSaid(content="Hello", model="m")
    assert clock.pauses == [60, 0, 60]
    await model.aclose()


async def test_nobody_there_is_waited_for(unused_tcp_port: int):
    clock = Clock()
    model = model_at(f"http://127.0.0.1:{unused_tcp_port}", clock)
    with pytest.raises(ProviderDown, match="connection refused"):
        await taken(model)
    assert 30 <= sum(clock.pauses) <= 65


async def test_a_server_that_always_breaks_off_is_not_asked_for_ever(serve):
    server, clock = await serve(HALF), Clock()
    model = model_at(server.url, clock, attempts=3)
    with pytest.raises(ProviderDown):
        await taken(model)
    assert len(server.asked) == 4
    await model.aclose()


async def test_what_will_not_pass_is_not_sent_again_in_the_middle_either(serve):
    refused = {"error": {"type": "authentication_error", "message": "the key was revoked"}}
    server = await serve(http(sse(chunk({"content": "Hel"}), refused)))
    model = model_at(server.url, Clock())
    with pytest.raises(ModelError):
        await taken(model)
    assert len(server.asked) == 1
    await model.aclose()


async def taken(model: RemoteModel) -> list[Event]:
    async with aclosing(model.stream(REQUEST)) as events:
        return [event async for event in events]
