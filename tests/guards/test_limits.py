"""Limits of a turn: steps, money, time, and the dry run."""

import asyncio
from collections.abc import AsyncGenerator

from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.events import AssistantSaid, Event, TextStreamed, TurnFinished
from ybs.core.messages import AssistantMessage, Text, ToolCall, Usage, UserMessage
from ybs.core.ports import Guard, Model, Request, Toolbox
from ybs.guards.limits import Deadline, DryRun, Limits, TimedModel, TimedToolbox
from ybs.testing import ScriptedModel, ScriptedToolbox


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
    assert "agent.max_iterations" in finished.message
    assert len(tools.calls) == 3


async def test_the_cost_limit_counts_what_the_session_spent_before():
    limits = Limits(max_steps=99, max_cost_usd=1.0, spent_usd=lambda: 0.5)
    script = [call(n, cost=0.2) for n in range(9)]
    finished, _ = await run(ScriptedModel(script), ScriptedToolbox({"look": "seen"}), limits)
    assert (finished.reason, finished.steps) == ("limit", 3)
    assert "$1.10 of $1.00" in finished.message


async def test_an_unknown_price_never_reaches_the_cost_limit():
    limits = Limits(max_steps=99, max_cost_usd=0.01)
    finished, _ = await run(
        ScriptedModel([call(0), "done"]), ScriptedToolbox({"look": "seen"}), limits
    )
    assert finished.reason == "done"


async def test_the_time_limit_stops_before_the_next_request():
    finished, _ = await run(
        ScriptedModel(["never said"]), ScriptedToolbox(), Limits(max_steps=9, max_seconds=0)
    )
    assert (finished.reason, finished.steps) == ("limit", 0)
    assert "time limit" in finished.message


class EndlessModel(Model):
    """Says one word and then waits for ever."""

    name, window = "endless", 1000

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        yield TextStreamed(text="well")
        await asyncio.Event().wait()


async def test_a_model_that_never_stops_is_cut_off_and_its_words_are_kept():
    model = TimedModel(EndlessModel(), Deadline(0.01))
    assert (model.name, model.window) == ("endless", 1000)
    finished, conversation = await run(model, ScriptedToolbox())
    assert finished.reason == "limit"
    assert conversation.messages[-1] == AssistantMessage(
        content=(Text(text="well"),), stop_reason="cut_off", model="endless"
    )


async def test_a_timed_model_passes_everything_on():
    model = TimedModel(ScriptedModel(["hello"]), Deadline(60))
    events = [event async for event in model.stream(Request("", ()))]
    assert isinstance(events[-1], AssistantSaid)
    assert events[-1].content == "hello"


async def test_a_tool_that_outlasts_the_turn_is_stopped_with_an_answer():
    async def wait(_call: ToolCall, _emit: object) -> str:
        await asyncio.Event().wait()
        return "never"

    deadline = Deadline(0.01)
    tools = TimedToolbox(ScriptedToolbox({"look": wait}, writers=["look"]), deadline)
    assert [spec.name for spec in tools.specs()] == ["look"]
    assert not tools.is_read_only(ToolCall(id="1", name="look"))
    finished, conversation = await run(
        ScriptedModel([call(0)]), tools, Limits(max_steps=9, max_seconds=0.01)
    )
    assert finished.reason == "limit"
    assert conversation.messages[-1].is_error


async def test_a_deadline_begins_again_with_each_turn():
    deadline = Deadline(60)
    before = deadline.left_seconds()
    deadline.begin()
    assert 0 < before <= deadline.left_seconds() <= 60


async def test_a_dry_run_ends_after_the_first_step():
    finished, _ = await run(
        ScriptedModel([call(0), call(1)]), ScriptedToolbox({"look": "not executed"}), DryRun()
    )
    assert (finished.reason, finished.steps) == ("dry_run", 1)
