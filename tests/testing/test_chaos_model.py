"""ChaosModel: each fault does what it says, and a seed repeats them."""

from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from scripted import ChaosModel
from scripted.chaos import Fault
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.errors import ProviderDown
from ybs.core.events import AssistantSaid, Event, TextStreamed, TurnFinished
from ybs.core.messages import AssistantMessage, ToolResult, UserMessage
from ybs.core.ports import Request
from ybs.testing import RecordedEvents, ScriptedModel, ScriptedToolbox, answer, call

REQUEST = Request("", [UserMessage.of("hello")])
TEXT = "a text of several pieces, long enough for every fault to strike in its middle"


class Waits:
    """Takes the place of a sleep and remembers how long it would have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def make(fault: Fault, waits: Waits | None = None) -> ChaosModel:
    inner = ScriptedModel([TEXT, TEXT], name="inner", window=99)
    return ChaosModel(inner, seed=1, rate=1, faults=(fault,), sleep=waits or Waits())


async def collect(model: ChaosModel) -> tuple[list[Event], ProviderDown | None]:
    events: list[Event] = []
    try:
        async with aclosing(model.stream(REQUEST)) as stream:
            async for event in stream:
                events.append(event)  # noqa: PERF401 - what came before the error is the point
    except ProviderDown as error:
        return events, error
    return events, None


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextStreamed))


async def test_an_error_before_output_leaves_nothing():
    events, error = await collect(make("error_before"))
    assert events == []
    assert error is not None


async def test_an_error_after_output_comes_in_the_middle():
    events, error = await collect(make("error_after"))
    assert error is not None
    assert 0 < len(text_of(events)) < len(TEXT)
    assert not any(isinstance(event, AssistantSaid) for event in events)


async def test_an_error_after_output_comes_at_the_end_of_a_short_answer():
    model = ChaosModel(ScriptedModel(["a"] * 9), seed=1, rate=1, faults=("error_after",))
    ends = [await collect(model) for _ in range(9)]
    assert all(error for _, error in ends)
    assert all(text_of(events) == "a" for events, _ in ends)


async def test_a_cut_off_answer_ends_early_and_says_so():
    events, error = await collect(make("cut_off"))
    assert error is None
    said = events[-1]
    assert isinstance(said, AssistantSaid)
    assert (said.content, said.stop_reason) == (text_of(events), "cut_off")
    assert 0 < len(said.content) < len(TEXT)


async def test_a_duplicated_piece_is_streamed_twice_but_the_message_is_whole():
    events, _ = await collect(make("duplicate"))
    assert len(text_of(events)) > len(TEXT)
    said = events[-1]
    assert isinstance(said, AssistantSaid)
    assert said.content == TEXT


async def test_an_empty_message_says_nothing():
    events, _ = await collect(make("empty"))
    assert len(events) == 1
    assert isinstance(events[0], AssistantSaid)
    assert events[0].message.content == ()


async def test_a_delay_is_waited_through_the_given_sleep():
    waits = Waits()
    events, _ = await collect(make("delay", waits))
    assert text_of(events) == TEXT
    assert len(waits.seconds) == 1
    assert 0 <= waits.seconds[0] <= 30


async def test_without_faults_nothing_is_changed_and_the_names_are_the_wrapped_ones():
    model = ChaosModel(ScriptedModel([TEXT], name="inner", window=99), seed=1, rate=0)
    events, _ = await collect(model)
    assert text_of(events) == TEXT
    assert (model.name, model.window, model.log) == ("inner", 99, [None])


async def faults_of(seed: int) -> list[Fault | None]:
    model = ChaosModel(ScriptedModel([TEXT] * 40), seed=seed, rate=0.5, sleep=Waits())
    for _ in range(40):
        await collect(model)
    return model.log


async def test_the_same_seed_does_the_same_and_another_does_not():
    first = await faults_of(7)
    assert first == await faults_of(7)
    assert first != await faults_of(8)
    assert len(set(first)) == 7  # all six, and none


@pytest.mark.integration
@given(st.integers(min_value=0, max_value=10**6))
async def test_whatever_goes_wrong_the_turn_ends_and_the_history_stays_valid(seed: int):
    script = [answer("Let me look.", call("look", n=n)) for n in range(4)]
    model = ChaosModel(ScriptedModel([*script, "done"]), seed=seed, rate=0.5, sleep=Waits())
    events, conversation = RecordedEvents(), Conversation()
    agent = Agent(model, ScriptedToolbox({"look": "seen"}), events, conversation)
    await agent.run(UserMessage.of("go"))
    assert len(events.of(TurnFinished)) == 1
    asked = [
        c.id for m in conversation.messages if isinstance(m, AssistantMessage) for c in m.calls
    ]
    answered = [m.call_id for m in conversation.messages if isinstance(m, ToolResult)]
    assert answered == asked


@every_row("fault", ["error_before", "error_after", "cut_off", "empty"])
async def test_the_second_request_is_judged_anew(fault: Fault):
    model = make(fault)
    await collect(model)
    await collect(model)
    assert model.log == [fault, fault]
