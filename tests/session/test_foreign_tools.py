"""Tools that are handed in: checked, confirmed by their effect, offered as they come and go, in Python and in `--print`."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from scripted import OpenAIServer, ServerProcess
from ybs.core.errors import ToolError
from ybs.core.events import Emit, Noticed, ToolFinished
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Effect, Question, Toolbox, ToolOutput, ToolSpec
from ybs.frontends.headless.run import run_once
from ybs.session.options import Options
from ybs.testing import ScriptedToolbox, call


class Weather:
    """A tool whose name, schema and effect are known at run time only."""

    def __init__(self, name: str = "weather", effect: Effect = "read") -> None:
        self.name, self.effect = name, effect
        self.description = "Tells the weather."
        properties = {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}}
        schema = {"type": "object", "properties": properties, "required": ["city"]}
        self.parameters = Raw(msgspec.json.encode(schema))
        self.runs: list[Any] = []

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        self.runs.append(arguments)
        return ToolOutput(output=f"Sun in {arguments['city']}.")


class Changing(Toolbox):
    """A toolbox that offers another tool after each call, and notes when it is opened and closed."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.step = 1

    async def open(self, emit: Emit) -> None:
        self.log.append("open")

    async def aclose(self) -> None:
        self.log.append("close")

    def specs(self) -> Sequence[ToolSpec]:
        schema = Raw(b'{"type":"object","properties":{}}')
        return [ToolSpec(name=f"step_{self.step}", description="", parameters=schema)]

    def is_read_only(self, call: ToolCall) -> bool:
        return False

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        self.log.append(call.name)
        self.step += 1
        return ToolResult(call_id=call.id, name=call.name, output=f"{call.name} is done")


def names_in(body: Any) -> set[str]:
    return {tool["function"]["name"] for tool in body["tools"]}


def results_in(events: Any) -> list[ToolFinished]:
    return [event for event in events.events if isinstance(event, ToolFinished)]


async def test_a_tool_with_its_own_schema_is_offered_checked_and_run(open_session: Any):
    tool = Weather()
    script = [call("weather", city="Bonn", days="3"), call("weather", days=0), "Sunny."]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, tools=[tool])
        async with session:
            assert (await session.send("How is it?")).text == "Sunny."
    assert tool.runs == [{"city": "Bonn", "days": 3}]
    good, bad = results_in(events)
    assert good.output.startswith("Sun in Bonn.\n[note: 'days' had another type")
    assert not bad.success
    assert "weather" in names_in(server.requests[0].body)


async def test_a_tool_that_may_do_more_than_read_is_confirmed_with_its_arguments(open_session: Any):
    asked: list[Question] = []

    async def confirm(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=len(asked) > 1)

    tool = Weather(effect="write")
    script = [call("weather", city="Bonn"), call("weather", city="Bonn"), "Done."]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, tools=[tool])
        session.confirm = confirm
        async with session:
            await session.send("Make it sunny.")
    assert [each.preview.title for each in asked] == ["Call weather"] * 2
    assert '"city": "Bonn"' in asked[0].preview.body
    assert [each.is_refused for each in results_in(events)] == [True, False]
    assert tool.runs == [{"city": "Bonn"}]


@pytest.mark.integration
async def test_a_toolbox_may_change_its_tools_in_mid_session(open_session: Any):
    toolbox = Changing()
    script = [call("step_1"), call("step_2"), call("step_1"), "Done."]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, toolboxes=[toolbox], mode="bypass")
        async with session:
            await session.send("Go on.")
    offered = [
        names_in(request.body) & {"step_1", "step_2", "step_3"} for request in server.requests
    ]
    assert offered == [{"step_1"}, {"step_2"}, {"step_3"}, {"step_3"}]
    assert toolbox.log == ["open", "step_1", "step_2", "close"]
    assert "There is no tool 'step_1'" in results_in(events)[-1].output


@pytest.mark.integration
async def test_another_model_closes_a_toolbox_and_opens_it_again(open_session: Any):
    toolbox = Changing()
    async with OpenAIServer([call("step_1"), "Done.", call("step_2"), "Done."]) as server:
        session, _ = open_session(server, toolboxes=[toolbox], mode="bypass")
        async with session:
            await session.send("Go.")
            await session.switch_model(provider=None, model="other")
            await session.send("Go.")
    assert toolbox.log == ["open", "step_1", "close", "open", "step_2", "close"]


@pytest.mark.integration
async def test_a_toolbox_is_confirmed_too_and_cannot_speak_for_the_session(open_session: Any):
    def act(_: ToolCall, emit: Emit) -> str:
        emit(ToolFinished(id="x", success=True, output="made up"))
        emit(Noticed(level="info", text="from the toolbox"))
        return "done"

    toolbox = ScriptedToolbox({"act": act, "look": "seen"}, writers={"act"})
    script = [call("act"), call("look"), "Refused.", call("act"), "Done."]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, toolboxes=[toolbox])
        async with session:
            await session.send("Go.")
            assert [each.name for each in toolbox.calls] == ["look"]
            session.mode = "bypass"
            await session.send("Go.")
    assert [each.is_refused for each in results_in(events)] == [True, False, False]
    assert [each.output for each in results_in(events)][1:] == ["seen", "done"]
    assert Noticed(level="info", text="from the toolbox") in events.events


async def test_names_that_are_taken_and_toolboxes_that_fail_are_reported_and_the_rest_works(
    open_session: Any,
):
    class Broken(ScriptedToolbox):
        async def open(self, emit: Emit) -> None:
            raise ToolError("the server does not answer")

    tools = [Weather(), Weather(), Weather("run_shell"), Weather("a b")]
    boxes = [Broken({"lost": "x"}), ScriptedToolbox({"weather": "rain", "tide": "high"})]
    script = [call("weather", city="Bonn"), call("tide"), "Done."]
    async with OpenAIServer(script) as server:
        session, events = open_session(server, tools=tools, toolboxes=boxes)
        async with session:
            await session.send("Go.")
    notices = [event.text for event in events.events if isinstance(event, Noticed)]
    for words in (
        "'weather' cannot be used: there is another one",
        "'run_shell' cannot be used: ybs has one",
        "'a b' cannot be used: a name has",
        "the server does not answer",
        "two tools called weather",
    ):
        assert sum(words in text for text in notices) == 1, (words, notices)
    assert [each.output for each in results_in(events)] == ["Sun in Bonn.", "high"]
    assert "lost" not in names_in(server.requests[0].body)


@pytest.mark.integration
def test_a_run_without_a_terminal_takes_them_too(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    tool, toolbox = Weather(), Changing()
    script = [call("weather", city="Bonn"), call("step_1"), "Sunny."]
    with ServerProcess("openai", script, tmp_path) as server:
        settings = {"provider": "openai", "endpoint": server.url, "model": "m", "mode": "bypass"}
        given = {"tools": [tool], "toolboxes": [toolbox], "sandbox": False, "allow": ("step_1",)}
        options = Options.of(project, {**settings, **given})
        assert run_once(options, prompt="How is it?") == 0
    assert capsys.readouterr().out == "Sunny.\n"
    assert tool.runs == [{"city": "Bonn"}]
    assert toolbox.log == ["open", "step_1", "close"]


def test_a_composite_works_without_being_opened():
    from ybs.tools.composite import CompositeToolbox

    boxes = [
        ScriptedToolbox({"a": "one"}),
        ScriptedToolbox({"a": "two", "b": "three"}, writers={"b"}),
    ]
    both = CompositeToolbox(boxes)

    async def outputs() -> list[str]:
        calls = [ToolCall(id="1", name=name) for name in ("a", "b", "c")]
        return [(await both.run(each, lambda _: None)).output for each in calls]

    first, second, third = asyncio.run(outputs())
    assert (first, second) == ("one", "three")
    assert third.startswith("There is no tool 'c'")
    assert [spec.name for spec in both.specs()] == ["a", "b"]
    assert both.specs() is both.specs()
    assert [both.is_read_only(ToolCall(id="1", name=name)) for name in "abc"] == [
        True,
        False,
        False,
    ]
