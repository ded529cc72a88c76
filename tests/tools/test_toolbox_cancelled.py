"""A call that is cancelled: it ends with what its tool left behind, or passes the cancellation on."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest
from msgspec import Struct

from ybs.config.schema import SafetySettings
from ybs.core.hooks import CallHook
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.schema import schema_of
from ybs.security.policy.case import Subject
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Policy
from ybs.tools.calls.live import LiveOutput
from ybs.tools.calls.read_only import ReadOnlyRun
from ybs.tools.toolbox import LocalToolbox


class NoArguments(Struct):
    pass


class Slow:
    """A tool that never ends; when it is cancelled it leaves some words behind, if it has any."""

    name: str = "run_shell"
    effect: Effect = "execute"
    arguments: ClassVar[type[Struct]] = NoArguments
    parameters = schema_of(NoArguments)
    description = "Slow."

    def __init__(self, left: str) -> None:
        self.left, self.begun, self.ways = left, asyncio.Event(), list[str]()

    def preview(self, arguments: Any) -> Preview:
        return Preview(title="slow")

    def subject(self, arguments: Any) -> Subject:
        return Subject(command="ls")

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        self.ways.append("run")
        return await self._hang(print_live)

    async def run_read_only(self, arguments: Any, print_live: Callable[[str], None]) -> ReadOnlyRun:
        self.ways.append("run_read_only")
        return ReadOnlyRun(output=await self._hang(print_live))

    async def _hang(self, print_live: Callable[[str], None]) -> ToolOutput:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self.left and isinstance(print_live, LiveOutput):
                print_live.left = ToolOutput(output=self.left, is_error=True)
            raise
        raise AssertionError


async def cancelled(tool: Slow, mode: Any) -> ToolResult:
    gate = Gate(Policy(SafetySettings(mode=mode), find_sandbox=lambda: "full"))
    task = asyncio.ensure_future(
        LocalToolbox([tool], gate).run(ToolCall(id="1", name="run_shell"), lambda _event: None)
    )
    async with asyncio.timeout(5):
        await tool.begun.wait()
        task.cancel()
        return await task


WAYS = pytest.mark.parametrize(("mode", "way"), [("bypass", "run"), ("ask", "run_read_only")])


@WAYS
async def test_what_a_cancelled_tool_left_is_its_result(mode: str, way: str):
    tool = Slow("half of it")
    result = await cancelled(tool, mode)
    assert (result.output, result.is_error, result.call_id) == ("half of it", True, "1")
    assert tool.ways == [way]


@WAYS
async def test_without_any_the_cancellation_passes(mode: str, way: str):
    tool = Slow("")
    with pytest.raises(asyncio.CancelledError):
        await cancelled(tool, mode)
    assert tool.ways == [way]


@pytest.mark.parametrize("mode", ["bypass", "auto"])
async def test_a_tool_that_has_just_come_to_its_end_is_told_of_as_it_ended(mode: Any):
    class Quick(Slow):
        """A tool that is done when the cancellation comes, in one step of the loop."""

        async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
            task.cancel()
            return ToolOutput(output="all of it")

    gate = Gate(Policy(SafetySettings(mode=mode), find_sandbox=lambda: "full"))
    running = LocalToolbox([Quick("")], gate).run(
        ToolCall(id="1", name="run_shell"), lambda _: None
    )
    task = asyncio.ensure_future(running)
    result = await task
    assert (result.output, result.is_error) == ("all of it", False)


async def test_a_call_that_is_cancelled_while_hooks_look_at_what_it_left_has_its_result():
    class Done(Slow):
        async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
            return ToolOutput(output="all of it")

    class Looking(CallHook):
        looked = False

        async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
            task.cancel()
            await asyncio.sleep(0)
            self.looked = True

    gate, hook = Gate(Policy(SafetySettings(mode="bypass"), find_sandbox=lambda: "full")), Looking()
    running = LocalToolbox([Done("")], gate, hooks=[hook]).run(
        ToolCall(id="1", name="run_shell"), lambda _: None
    )
    task = asyncio.ensure_future(running)
    result = await task
    assert (result.output, result.is_error, hook.looked) == ("all of it", False, True)


async def test_a_call_that_was_cancelled_before_does_not_run_its_tool():
    tool = Slow("half of it")
    gate = Gate(Policy(SafetySettings(mode="bypass"), find_sandbox=lambda: "full"))

    async def run() -> ToolResult:
        cancelling = asyncio.current_task()
        assert cancelling is not None
        cancelling.cancel()
        return await LocalToolbox([tool], gate).run(
            ToolCall(id="1", name="run_shell"), lambda _event: None
        )

    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(run())
    assert tool.ways == []
