"""The real loop with the real toolbox: what runs side by side, what in order, and what only once."""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from msgspec import Raw, Struct

from ybs.config.schema import SafetySettings
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.messages import ToolCall, ToolResult, UserMessage
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.schema import schema_of
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Policy
from ybs.testing import ScriptedModel, answer
from ybs.tools.toolbox import LocalToolbox


class Arguments(Struct):
    key: str = ""


class Recorded:
    """A tool that notes when it begins and ends; `meet` makes calls wait for each other."""

    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = Arguments
    name: str = "look"
    parameters = schema_of(Arguments)
    description = "Look."

    def __init__(self, log: list[str], meet: asyncio.Barrier | None = None) -> None:
        self.log, self.meet = log, meet

    def preview(self, arguments: Arguments) -> Preview:
        return Preview(title=self.name)

    async def run(self, arguments: Arguments, print_live: Callable[[str], None]) -> ToolOutput:
        self.log.append(f"+{self.name}{arguments.key}")
        if self.meet is not None:
            await self.meet.wait()
        await asyncio.sleep(0)
        self.log.append(f"-{self.name}{arguments.key}")
        if arguments.key == "bad":
            raise SystemExit(1)
        return ToolOutput(output=f"{self.name} {arguments.key}")


class Change(Recorded):
    effect: Effect = "edit"
    name: str = "change"


async def results(calls: list[tuple[str, str]], *tools: Any) -> list[ToolResult]:
    """Have the model ask for calls (name, key) in one message and return their results in order."""
    made = [
        ToolCall(id=str(at), name=name, arguments=Raw(msgspec.json.encode({"key": key})))
        for at, (name, key) in enumerate(calls)
    ]
    model = ScriptedModel([answer("", *made), answer("done")])
    box = LocalToolbox(tools, Gate(Policy(SafetySettings(mode="bypass"))))
    conversation = Conversation()
    finished = await Agent(model, box, lambda event: None, conversation).run(UserMessage.of("go"))
    assert finished.reason == "done"
    found = [message for message in conversation.messages if isinstance(message, ToolResult)]
    assert [result.call_id for result in found] == [str(at) for at in range(len(calls))]
    return found


async def test_readers_run_side_by_side():
    log: list[str] = []
    tool = Recorded(log, asyncio.Barrier(3))  # each waits until all three have begun
    found = await results([("look", "a"), ("look", "b"), ("look", "c")], tool)
    assert [result.output for result in found] == ["look a", "look b", "look c"]
    assert sorted(log[:3]) == ["+looka", "+lookb", "+lookc"]


async def test_writers_run_in_order_and_readers_wait_for_them():
    log: list[str] = []
    calls = [("change", "a"), ("look", "b"), ("change", "c"), ("change", "d")]
    await results(calls, Recorded(log), Change(log))
    assert log == [f"{sign}{name}{key}" for name, key in calls for sign in "+-"]


async def test_identical_calls_run_once():
    log: list[str] = []
    found = await results([("look", "a"), ("look", "b"), ("look", "a")], Recorded(log))
    assert sorted(log) == ["+looka", "+lookb", "-looka", "-lookb"]
    assert [result.output for result in found] == ["look a", "look b", "look a"]
    log.clear()
    await results([("change", "a"), ("change", "a")], Change(log))
    assert log == ["+changea", "-changea"]


async def test_a_call_that_fails_takes_no_other_one_with_it():
    found = await results(
        [("look", "a"), ("look", "bad"), ("nothing", ""), ("Look", "c")], Recorded([])
    )
    assert [result.is_error for result in found] == [False, True, True, False]
    assert found[3].output.startswith("look c")
