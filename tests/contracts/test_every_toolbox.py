"""What every Toolbox keeps: the local one, a composite, the wrappers, one of somebody else's, and the fake."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from ybs.config.schema import FirewallSettings, SafetySettings
from ybs.core.errors import ToolError
from ybs.core.events import Event
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect, Toolbox, ToolOutput
from ybs.guards.limits import TimedToolbox, TurnDeadline
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.toolbox import FirewallToolbox
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Policy
from ybs.testing import FakeTool, ScriptedToolbox
from ybs.tools.composite import CompositeToolbox
from ybs.tools.foreign import ForeignToolbox
from ybs.tools.toolbox import LocalToolbox

DEADLINE = TurnDeadline(60)


class Look(FakeTool):
    name: str = "look"


class Change(FakeTool):
    name: str = "change"
    effect: Effect = "write"


class Fails(FakeTool):
    name: str = "fails"

    def __init__(self) -> None:
        super().__init__(ToolError("no such thing"))


class Waits(FakeTool):
    name: str = "waits"

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        await asyncio.Event().wait()
        return ToolOutput(output="never")


def local(tools: Sequence[Any]) -> LocalToolbox:
    return LocalToolbox(tools, Gate(Policy(SafetySettings(mode="bypass"))))


def scripted() -> ScriptedToolbox:
    async def wait(_call: ToolCall, _emit: Any) -> str:
        await asyncio.Event().wait()
        return "never"

    behaviours: dict[str, Any] = {
        "look": "done",
        "change": "done",
        "fails": ToolError("no such thing"),
    }
    return ScriptedToolbox(behaviours | {"waits": wait}, writers={"change"})


def timed(inner: Toolbox) -> Toolbox:
    return TimedToolbox(inner, DEADLINE)


def make_local() -> Toolbox:
    return local([Look(), Change(), Fails(), Waits()])


MAKERS: dict[str, Callable[[], Toolbox]] = {
    "local": make_local,
    "composite": lambda: CompositeToolbox([local([Look(), Change()]), local([Fails(), Waits()])]),
    "foreign": lambda: ForeignToolbox(scripted(), local([])),
    "firewall": lambda: FirewallToolbox(
        make_local(), Firewall(FirewallSettings(), []), lambda _path: None
    ),
    "timed": lambda: timed(make_local()),
    "scripted": scripted,
}


@pytest.fixture(params=list(MAKERS))
async def toolbox(request: pytest.FixtureRequest) -> AsyncIterator[Toolbox]:
    """Give an open toolbox of each kind, with the same tools."""
    made = MAKERS[request.param]()
    await made.open(lambda _event: None)
    with DEADLINE.running():
        yield made


def call(name: str) -> ToolCall:
    return ToolCall(id="c1", name=name, arguments=Raw(b"{}"))


async def test_the_specs_are_those_of_its_tools_in_a_stable_order(toolbox: Toolbox):
    specs = toolbox.specs()
    assert [spec.name for spec in specs] == ["look", "change", "fails", "waits"]
    assert list(toolbox.specs()) == list(specs)
    for spec in specs:
        assert spec.description
        assert msgspec.json.decode(spec.parameters)["type"] == "object"


async def test_what_changes_nothing_is_told_apart_and_an_unknown_call_is_judged_too(toolbox):
    effects = {spec.name: spec.effect for spec in toolbox.specs()}
    for name, effect in effects.items():
        assert toolbox.is_read_only(call(name)) == (effect == "read")
    assert toolbox.is_read_only(call("nothing_like_it")) in (True, False)


async def test_a_call_is_answered_under_its_id(toolbox: Toolbox):
    result = await toolbox.run(call("look"), lambda _event: None)
    assert (result.call_id, result.name, result.output) == ("c1", "look", "done")
    assert not result.is_error


async def test_a_failure_is_a_result_and_is_not_raised(toolbox: Toolbox):
    failed = await toolbox.run(call("fails"), lambda _event: None)
    assert (failed.call_id, failed.is_error) == ("c1", True)
    assert "no such thing" in failed.output
    unknown = await toolbox.run(call("nothing_like_it"), lambda _event: None)
    assert (unknown.call_id, unknown.is_error) == ("c1", True)
    assert "nothing_like_it" in unknown.output


async def test_a_call_can_be_cancelled_and_the_toolbox_lives(toolbox: Toolbox):
    running = asyncio.create_task(toolbox.run(call("waits"), lambda _event: None))
    for _ in range(20):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await toolbox.run(call("look"), lambda _event: None)).output == "done"


async def test_it_closes_twice_and_opens_again(toolbox: Toolbox):
    await toolbox.aclose()
    await toolbox.aclose()
    events: list[Event] = []
    await toolbox.open(events.append)
    assert events == []
    assert (await toolbox.run(call("look"), events.append)).output == "done"
