"""A tool of somebody else that does what a test says, and a toolbox that holds it."""

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from ybs.config.schema import SafetySettings
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.core.schema import schema_of
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Policy
from ybs.tools.toolbox import LocalToolbox

Print = Callable[[str], None]
FINE = ToolOutput(output="fine")


class NoArguments(Struct):
    pass


class Odd:
    """A tool of somebody else: it does what the test says."""

    name: str = "odd"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = NoArguments
    parameters = schema_of(NoArguments)
    description = "Odd."

    def __init__(self, act: Callable[[Print], Awaitable[Any]]) -> None:
        self.act = act
        self.is_done = False

    def preview(self, arguments: Any) -> Preview:
        return Preview(title="odd")

    async def run(self, arguments: Any, print_live: Print) -> Any:
        try:
            return await self.act(print_live)
        finally:
            self.is_done = True


class OddWriter(Odd):
    effect: Effect = "write"


def box(tool: Any, *, limit: float = 5.0, **options: Any) -> LocalToolbox:
    return LocalToolbox([tool], Gate(Policy(SafetySettings())), limits={"odd": limit}, **options)


async def result_of(tool: Any, emit: Any = lambda event: None, **options: Any) -> ToolResult:
    return await box(tool, **options).run(ToolCall(id="7", name="odd"), emit)


async def failure_of(act: Callable[[Print], Awaitable[Any]], **options: Any) -> str:
    result = await result_of(Odd(act), **options)
    assert result.is_error
    assert not result.is_refused
    assert msgspec.json.decode(result.display)["success"] is False
    return result.output
