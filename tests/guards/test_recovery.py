"""Recovery: errors in a row, empty messages, cut answers."""

from compacted import Shrinking
from rows import every_row
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.errors import Refused, ToolError
from ybs.core.events import Event, Noticed, TurnFinished, UserSaid
from ybs.core.messages import AssistantMessage, Text, Thinking, ToolCall, UserMessage
from ybs.guards.recovery import CUT_OFF, EMPTY, PIVOT, SILENT, Recovery
from ybs.testing import ScriptedModel, ScriptedToolbox, answer, call, thought


async def run(model: ScriptedModel, tools: ScriptedToolbox) -> tuple[TurnFinished, list[Event]]:
    events: list[Event] = []
    agent = Agent(model, tools, events.append, Conversation("system"), [Recovery()])
    return await agent.run(UserMessage.of("go")), events


def said(events: list[Event]) -> list[str]:
    return [e.content for e in events if isinstance(e, UserSaid) and e.origin == "guard"]


def calls(number: int) -> list[ToolCall]:
    return [ToolCall(id=f"call_{n}", name="fail") for n in range(number)]


async def test_three_errors_in_a_row_bring_a_demand_for_another_way():
    finished, events = await run(
        ScriptedModel([*calls(4), "I give up"]), ScriptedToolbox({"fail": ToolError("no")})
    )
    assert finished.reason == "done"
    assert said(events) == [PIVOT.format(count=3)]


async def test_twelve_errors_in_a_row_end_the_turn():
    finished, events = await run(
        ScriptedModel(calls(20)), ScriptedToolbox({"fail": ToolError("no")})
    )
    assert finished.reason == "loop"
    assert finished.steps == 12
    assert len(said(events)) == 3


async def test_errors_are_counted_across_compactions():
    tools, events = ScriptedToolbox({"fail": ToolError("no")}), list[Event]()
    guards = [Recovery(), Shrinking()]
    agent = Agent(ScriptedModel(calls(20)), tools, events.append, Conversation("system"), guards)
    finished = await agent.run(UserMessage.of("go"))
    assert (finished.reason, finished.steps, len(said(events))) == ("loop", 12, 3)


async def test_a_call_that_works_resets_the_count():
    good = ToolCall(id="good", name="work")
    script = [*calls(2), good, *(ToolCall(id=f"more_{n}", name="fail") for n in range(2)), "done"]
    _, events = await run(
        ScriptedModel(script), ScriptedToolbox({"fail": ToolError("no"), "work": "fine"})
    )
    assert said(events) == []


async def test_fifty_failed_calls_in_one_message_are_one_failed_step():
    fifty = answer(*(call("fail", n=n) for n in range(50)))
    finished, events = await run(
        ScriptedModel([fifty, "I see"]), ScriptedToolbox({"fail": ToolError("no")})
    )
    assert finished.reason == "done"
    assert said(events) == []


async def test_several_errors_a_step_still_bring_the_demand_in_time():
    step = [answer(*(call("fail", n=n) for n in range(4))) for _ in range(3)]
    _, events = await run(
        ScriptedModel([*step, "I give up"]), ScriptedToolbox({"fail": ToolError("no")})
    )
    assert said(events) == [PIVOT.format(count=3)]


async def test_a_model_whose_calls_are_all_refused_does_not_go_on_for_ever():
    finished, _ = await run(
        ScriptedModel(calls(30)), ScriptedToolbox({"fail": Refused("the person said no")})
    )
    assert finished.reason == "loop"
    assert "failed or was refused" in finished.message


@every_row("silent", [thought("hm"), " \n"])
async def test_thinking_or_white_space_alone_is_no_answer(silent: Thinking | str):
    finished, events = await run(ScriptedModel([answer(silent), "here I am"]), ScriptedToolbox())
    assert finished.reason == "done"
    assert said(events) == [EMPTY]


async def test_a_model_that_says_nothing_is_woken_once():
    empty = AssistantMessage(content=())
    finished, events = await run(ScriptedModel([empty, "here I am"]), ScriptedToolbox())
    assert finished.reason == "done"
    assert said(events) == [EMPTY]


async def test_a_model_that_says_nothing_twice_has_failed():
    empty = AssistantMessage(content=())
    finished, _ = await run(ScriptedModel([empty, empty]), ScriptedToolbox())
    assert (finished.reason, finished.message) == ("error", SILENT)


async def test_an_answer_cut_by_the_token_limit_is_told_to_the_person():
    cut = AssistantMessage(content=(Text(text="half a"),), stop_reason="length")
    _, events = await run(ScriptedModel([cut]), ScriptedToolbox())
    assert Noticed(level="warning", text=CUT_OFF) in events
