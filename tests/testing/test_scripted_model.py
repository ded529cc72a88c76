"""ScriptedModel: what it plays, and how it fails."""

import asyncio
from contextlib import aclosing

import pytest

from ybs.core.errors import ProviderDown, RateLimited
from ybs.core.events import (
    AssistantSaid,
    Event,
    TextStreamed,
    ThinkingStreamed,
    ToolCallStreamed,
)
from ybs.core.messages import AssistantMessage, Text, UserMessage
from ybs.core.ports import Request
from ybs.testing import (
    Failing,
    ScriptedModel,
    ScriptOver,
    answer,
    broken_call,
    call,
    thought,
)

REQUEST = Request("system", [UserMessage.of("hello")])


async def collect(model: ScriptedModel, request: Request = REQUEST) -> list[Event]:
    async with aclosing(model.stream(request)) as events:
        return [event async for event in events]


async def test_a_script_that_is_over_says_which_request_was_too_many():
    model = ScriptedModel(["one"], name="m")
    await collect(model)
    with pytest.raises(ScriptOver, match=r"'m' has 1 answers; request 2 came.*hello"):
        await collect(model)
    assert model.left == 0


async def test_an_error_is_raised_before_any_output():
    model = ScriptedModel([RateLimited("slow down", retry_after_seconds=2), "then this"])
    with pytest.raises(RateLimited):
        await collect(model)
    assert (await collect(model))[0] == TextStreamed(text="then thi")


async def test_a_failing_answer_streams_its_pieces_and_never_ends():
    model = ScriptedModel([Failing("half", ProviderDown("broke"))])
    async with aclosing(model.stream(REQUEST)) as events:
        assert await anext(events) == TextStreamed(text="half")
        with pytest.raises(ProviderDown, match="broke"):
            await anext(events)


async def test_parts_are_streamed_in_order_and_in_pieces():
    script = answer(thought("hmm"), "hello", call("look", a=1), chunk_size=4)
    events = await collect(ScriptedModel([script]))
    assert events == [
        ThinkingStreamed(text="hmm"),
        TextStreamed(text="hell"),
        TextStreamed(text="o"),
        ToolCallStreamed(id="call_1_1", name="look", text='{"a"'),
        ToolCallStreamed(id="call_1_1", name="look", text=":1}"),
        AssistantSaid.of(script.message("scripted", 1)),
    ]


async def test_broken_arguments_are_streamed_as_they_are():
    events = await collect(ScriptedModel([broken_call("look", "{]")]))
    assert events[0] == ToolCallStreamed(id="call_1_1", name="look", text="{]")


async def test_a_whole_message_is_played_as_it_is():
    said = AssistantMessage(content=(Text(text="hi"),), stop_reason="cut_off", model="scripted")
    assert (await collect(ScriptedModel([said])))[-1] == AssistantSaid.of(said)


async def test_a_function_sees_the_request_and_a_coroutine_may_wait():
    gate = asyncio.Event()

    async def wait(request: Request) -> str:
        await gate.wait()
        return f"waited for {len(request.messages)}"

    model = ScriptedModel([lambda request: request.system, wait])
    assert (await collect(model))[-1] == AssistantSaid.of(answer("system").message("scripted"))
    late = asyncio.create_task(collect(model))
    await asyncio.sleep(0)
    assert not late.done()
    gate.set()
    said = (await late)[-1]
    assert isinstance(said, AssistantSaid)
    assert said.content == "waited for 1"


async def test_requests_are_recorded_as_they_were():
    messages = [UserMessage.of("one")]
    model = ScriptedModel(["a", "b", "c"])
    await collect(model, Request("", messages))
    messages.append(UserMessage.of("two"))
    await collect(model, Request("", messages))
    assert [len(request.messages) for request in model.requests] == [1, 2]
    assert model.left == 1


async def test_others_run_between_two_pieces():
    other: list[str] = []

    async def run_beside() -> None:
        other.append("ran")

    async with aclosing(ScriptedModel(["a long enough text"]).stream(REQUEST)) as events:
        await anext(events)
        task = asyncio.create_task(run_beside())
        await anext(events)
        assert other == ["ran"]
        await task
