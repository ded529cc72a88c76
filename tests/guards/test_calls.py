"""A model that asks for thousands of calls in one answer gets some of them, quickly, and is told."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scripted import OpenAIServer
from timing import takes_at_most
from ybs.core.batches import batches
from ybs.core.conversation import with_own_ids
from ybs.core.errors import ModelError
from ybs.core.events import Noticed, ToolFinished
from ybs.core.messages import AssistantMessage, Text, ToolCall
from ybs.core.ports import Request
from ybs.guards.limits import MOST_CALLS, CallLimit, bounded
from ybs.providers.wire.assemble import Assembly
from ybs.session.session import Session
from ybs.testing import (
    RecordedEvents,
    ScriptedAnswer,
    ScriptedModel,
    call,
)

pytestmark = pytest.mark.integration

#: What one answer held that took 86 seconds.
MANY = 16_000
#: As many as a scripted server writes in a moment.
FEWER = 2_000


def calls(count: int, *, same_id: bool = False) -> tuple[ToolCall, ...]:
    return tuple(
        replace(call("read_file", path=f"f{number}"), id="1" if same_id else f"c{number}")
        for number in range(count)
    )


def test_the_work_grows_with_the_number_of_calls_and_not_with_its_square():
    many = calls(MANY)
    with takes_at_most(3):  # it was more than a minute
        (batch,) = batches(many, lambda _call: True)
        assert [len(group) for group in batch] == [1] * MANY
        assert len(list(batches(many, lambda _call: False))) == MANY
        message = AssistantMessage(content=calls(MANY, same_id=True))
        assert len({each.id for each in with_own_ids(message).calls}) == MANY


def test_text_around_the_calls_that_are_left_out_stays():
    parts = (Text(text="a"), *calls(MOST_CALLS + 1), Text(text="b"))
    kept = bounded(AssistantMessage(content=parts))
    assert (kept.text, len(kept.calls)) == ("ab", MOST_CALLS)
    whole = AssistantMessage(content=parts[:3])
    assert bounded(whole) == whole


async def test_a_limit_that_was_not_reached_says_nothing():
    limit = CallLimit()
    model = limit.bounding(ScriptedModel([ScriptedAnswer(parts=calls(MOST_CALLS))]))
    events = [event async for event in model.stream(Request("", ()))]
    assert not any(isinstance(event, Noticed) for event in events)
    assert limit.asked == 0


@pytest.mark.parametrize("mode", ["bypass", "deny"])
async def test_of_an_answer_with_thousands_of_calls_some_are_run_and_the_model_is_told(
    project: Path, mode: Any
):
    many = ScriptedAnswer(parts=(Text(text="all of it"), *calls(FEWER)), chunk_size=100)
    async with OpenAIServer([many, "I see."]) as server:
        endpoint = {"provider": "openai", "endpoint": server.url, "model": "m", "mode": mode}
        session = Session.open(project, **endpoint, sandbox=False)
        recorded = RecordedEvents()
        session.subscribe(recorded)
        async with asyncio.timeout(8), session:
            outcome = await session.send("go")
    assert outcome.text == "I see."
    finished = [event for event in recorded.events if isinstance(event, ToolFinished)]
    assert len(finished) == MOST_CALLS
    notes = [event.text for event in recorded.events if isinstance(event, Noticed)]
    assert "The model asked for 2,000 calls in one answer; only the first 100 are run." in notes
    told = server.requests[-1].body["messages"]
    assert len([each for each in told if each["role"] == "tool"]) == MOST_CALLS
    assert told[-1]["content"].startswith("Your last answer asked for 2,000 calls.")


def test_pieces_of_thousands_of_calls_are_joined_in_time_that_grows_with_their_number():
    assembly = Assembly("m", "openai", max_tokens=1_000_000)
    with takes_at_most(4):  # it was a minute
        for number in range(MANY):
            assembly.add_call_delta(number, id=f"c{number}", name="read_file", arguments='{"path":')
            assembly.add_call_delta(number, arguments=f'"f{number}"}}')
            assembly.add_call_delta(arguments=" ")
        assert len(assembly.message().calls) == MANY


def test_calls_without_arguments_count_as_something_that_was_streamed():
    assembly = Assembly("m", "openai", max_tokens=1)

    def stream() -> None:
        for number in range(1_000_000):
            assembly.add_call_delta(number, id=f"call_{number}", name="read_file")

    with pytest.raises(ModelError, match="did not stop"):
        stream()
