"""The tools' side: a scripted toolbox, a fake tool, a scripted person, recorded events."""

import asyncio

import pytest
from msgspec import Raw

from rows import every_row
from ybs.core.errors import Refused, ToolError
from ybs.core.events import Emit, TextStreamed, ToolPrinted
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Preview, Question, Tool, Toolbox, ToolOutput
from ybs.core.schema import schema_of
from ybs.testing import FakeTool, RecordedEvents, ScriptedConfirm, ScriptedToolbox, ScriptOver
from ybs.testing.toolbox import FakeArguments

CALL = ToolCall(id="c1", name="look")


async def test_an_unknown_tool_is_an_error_for_the_model():
    result = await ScriptedToolbox().run(CALL, RecordedEvents())
    assert (result.output, result.is_error) == ("there is no tool 'look'", True)


@every_row(("error", "is_refused"), [(ToolError("no"), False), (Refused("no"), True)])
async def test_errors_are_results_whether_given_or_raised(error: ToolError, *, is_refused: bool):
    def fail(call: ToolCall, emit: Emit) -> str:
        raise error

    expected = ToolResult(
        call_id="c1", name="look", output="no", is_error=True, is_refused=is_refused
    )
    for behaviour in (error, fail):
        assert await ScriptedToolbox({"look": behaviour}).run(CALL, RecordedEvents()) == expected


async def test_a_behaviour_may_be_a_text_a_result_a_function_or_a_coroutine():
    whole = ToolResult(call_id="", name="look", output="whole", summary="s")

    async def later(call: ToolCall, emit: Emit) -> str:
        await asyncio.sleep(0)
        emit(ToolPrinted(id=call.id, text="."))
        return "later"

    toolbox = ScriptedToolbox(
        {"a": "text", "b": whole, "c": lambda call, _: call.id, "d": later}, writers={"d"}
    )
    events = RecordedEvents()
    calls = [ToolCall(id=f"c{name}", name=name) for name in "abcd"]
    results = [await toolbox.run(call, events) for call in calls]
    assert [(r.call_id, r.output) for r in results] == [
        *(("ca", "text"), ("cb", "whole"), ("cc", "cc"), ("cd", "later"))
    ]
    assert toolbox.calls == calls
    assert events.names == ["ToolPrinted"]
    assert [toolbox.is_read_only(call) for call in calls] == [True, True, True, False]
    assert [spec.name for spec in toolbox.specs()] == ["a", "b", "c", "d"]
    assert toolbox.specs()[0].parameters == Raw(b'{"type":"object","properties":{}}')


def test_the_fakes_satisfy_the_ports():
    toolbox: Toolbox = ScriptedToolbox()
    tool: Tool = FakeTool()
    assert (toolbox.specs(), tool.name) == ([], "fake")
    assert b'"text"' in bytes(schema_of(tool.arguments))


async def test_a_fake_tool_remembers_prints_and_answers_or_fails():
    printed: list[str] = []
    tool = FakeTool(ToolOutput(output="out"))
    arguments = FakeArguments(text="hi")
    assert tool.description == "A fake tool called fake."
    assert tool.preview(arguments) == Preview(title="fake FakeArguments(text='hi')")
    assert await tool.run(arguments, printed.append) == ToolOutput(output="out")
    assert (tool.runs, printed) == ([arguments], ["fake runs\n"])
    with pytest.raises(ToolError, match="no"):
        await FakeTool(ToolError("no")).run(arguments, printed.append)


async def test_a_scripted_person_answers_in_order_and_is_not_asked_too_often():
    question = Question(call=CALL, effect="read", preview=Preview(title="look at it"))
    confirm = ScriptedConfirm([True, False, Answer(is_allowed=False, reason="not now")])
    answers = [await confirm(question) for _ in range(3)]
    assert [(a.is_allowed, a.reason) for a in answers] == [
        *((True, ""), (False, ""), (False, "not now"))
    ]
    with pytest.raises(ScriptOver, match="look at it"):
        await confirm(question)
    assert len(confirm.questions) == 4


def test_recorded_events_are_found_by_kind():
    events = RecordedEvents()
    events(TextStreamed(text="a"))
    events(ToolPrinted(id="c1", text="x"))
    events(TextStreamed(text="b"))
    assert events.text == "ab"
    assert events.of(ToolPrinted) == [ToolPrinted(id="c1", text="x")]
    assert events.names == ["TextStreamed", "ToolPrinted", "TextStreamed"]
