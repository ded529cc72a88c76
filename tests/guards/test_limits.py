"""Limits of a turn: steps, money, time, and the dry run."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack

import pytest

from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.events import AssistantSaid, Event, Noticed, TextStreamed, TurnFinished
from ybs.core.messages import AssistantMessage, Text, ToolCall, Usage, UserMessage
from ybs.core.ports import Guard, Model, Request, Toolbox
from ybs.core.remedies import Remedy
from ybs.guards.limits import DryRun, Limits, TimedModel, TimedToolbox, TurnDeadline
from ybs.testing import RecordedEvents, ScriptedModel, ScriptedToolbox

#: Makes a deadline.
Begin = Callable[[float], TurnDeadline]


def call(number: int, cost: float | None = None) -> AssistantMessage:
    return AssistantMessage(
        content=(ToolCall(id=f"call_{number}", name="look"),), usage=Usage(cost_usd=cost)
    )


async def run(model: Model, tools: Toolbox, *guards: Guard) -> tuple[TurnFinished, Conversation]:
    conversation = Conversation("system")
    agent = Agent(model, tools, lambda _event: None, conversation, guards)
    return await agent.run(UserMessage.of("go")), conversation


async def test_the_step_limit_ends_the_turn_and_says_which_setting_it_was():
    tools = ScriptedToolbox({"look": "seen"})
    finished, _ = await run(ScriptedModel(map(call, range(9))), tools, Limits(max_steps=3))
    assert (finished.reason, finished.steps) == ("limit", 3)
    assert finished.message == "Stopped after 3 steps, the limit for one turn."
    assert finished.remedies == (Remedy("raise_step_limit"),)
    assert len(tools.calls) == 3


async def test_the_cost_limit_counts_what_the_session_spent_before():
    limits = Limits(max_steps=99, max_cost_usd=1.0)
    limits.spent_usd = lambda: 0.5
    script = [call(n, cost=0.2) for n in range(9)]
    finished, _ = await run(ScriptedModel(script), ScriptedToolbox({"look": "seen"}), limits)
    assert (finished.reason, finished.steps) == ("limit", 3)
    assert "$1.10 of $1.00" in finished.message


async def test_an_unknown_price_cannot_reach_the_cost_limit_and_the_person_is_told_once():
    limits, events = Limits(max_steps=99, max_cost_usd=0.01), RecordedEvents()
    model = ScriptedModel([call(0), call(1), "done"])
    tools = ScriptedToolbox({"look": "seen"})
    agent = Agent(model, tools, events, Conversation("system"), [limits])
    assert (await agent.run(UserMessage.of("go"))).reason == "done"
    assert ["price of this model is not known" in e.text for e in events.of(Noticed)] == [True]


class EndlessModel(Model):
    """Says one word and then waits for ever."""

    name, window = "endless", 1000

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        yield TextStreamed(text="well")
        await asyncio.Event().wait()


@pytest.fixture
def begun() -> Iterator[Begin]:
    """Make a deadline whose turn begins now."""
    with ExitStack() as turns:

        def begin(seconds: float) -> TurnDeadline:
            deadline = TurnDeadline(seconds)
            turns.enter_context(deadline.running())
            return deadline

        yield begin


async def test_a_model_that_never_stops_is_cut_off_and_its_words_are_kept(begun: Begin):
    model = TimedModel(EndlessModel(), begun(0.01))
    assert (model.name, model.window) == ("endless", 1000)
    finished, conversation = await run(model, ScriptedToolbox())
    assert finished.reason == "limit"
    assert "0.01 s, the time limit" in finished.message
    assert conversation.messages[-1] == AssistantMessage(
        content=(Text(text="well"),), stop_reason="cut_off", model="endless"
    )


async def test_a_timed_model_passes_everything_on(begun: Begin):
    model = TimedModel(ScriptedModel(["hello"]), begun(60))
    events = [event async for event in model.stream(Request("", ()))]
    assert isinstance(events[-1], AssistantSaid)
    assert events[-1].content == "hello"


async def test_a_tool_that_outlasts_the_turn_is_stopped_with_an_answer(begun: Begin):
    async def wait(_call: ToolCall, _emit: object) -> str:
        await asyncio.Event().wait()
        return "never"

    deadline = begun(0.01)
    tools = TimedToolbox(ScriptedToolbox({"look": wait}, writers=["look"]), deadline)
    assert [spec.name for spec in tools.specs()] == ["look"]
    assert not tools.is_read_only(ToolCall(id="1", name="look"))
    finished, conversation = await run(
        TimedModel(ScriptedModel([call(0), "more"]), deadline), tools
    )
    assert finished.reason == "limit"
    assert conversation.messages[-1].is_error


@pytest.mark.integration
async def test_the_clock_stands_still_while_the_person_thinks(begun: Begin):
    deadline = begun(0.05)

    async def ask(_call: ToolCall, _emit: object) -> str:
        with deadline.paused():
            await asyncio.sleep(0.1)  # longer than the turn may take
        return "allowed"

    tools = TimedToolbox(ScriptedToolbox({"look": ask}, writers=["look"]), deadline)
    finished, _ = await run(TimedModel(ScriptedModel([call(0), "done"]), deadline), tools)
    assert finished.reason == "done"


@pytest.mark.integration
async def test_the_clock_goes_on_after_the_answer(begun: Begin):
    deadline = begun(0.05)

    async def ask(_call: ToolCall, _emit: object) -> str:
        with deadline.paused():
            await asyncio.sleep(0)
        await asyncio.Event().wait()
        return "never"

    tools = TimedToolbox(ScriptedToolbox({"look": ask}, writers=["look"]), deadline)
    finished, _ = await run(TimedModel(ScriptedModel([call(0), "more"]), deadline), tools)
    assert finished.reason == "limit"


@pytest.mark.integration
async def test_what_begins_while_the_clock_stands_still_is_not_hurried(begun: Begin):
    deadline = begun(0.02)
    model = ScriptedModel(["done"])
    with deadline.paused():
        async with deadline.timeout():
            await asyncio.sleep(0.05)  # longer than the turn may take
        finished, _ = await run(TimedModel(model, deadline), ScriptedToolbox({}), deadline)
    assert finished.reason == "done"


@pytest.mark.integration
async def test_pauses_that_overlap_count_once(begun: Begin):
    deadline = begun(0.5)
    with ExitStack() as later:
        with deadline.paused():
            later.enter_context(deadline.paused())
            await asyncio.sleep(0.1)
        async with deadline.timeout() as timeout:
            assert timeout.when() is None
    async with deadline.timeout() as timeout:
        ends_at = timeout.when()
        assert ends_at is not None
        assert ends_at - asyncio.get_running_loop().time() <= 0.5


async def test_a_dry_run_ends_after_the_first_step():
    finished, _ = await run(
        ScriptedModel([call(0), call(1)]), ScriptedToolbox({"look": "not executed"}), DryRun()
    )
    assert (finished.reason, finished.steps) == ("dry_run", 1)
