"""A toolbox on the test's project, and a way to call its tools."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw, Struct
from msgspec.structs import replace

from hosts import this_host
from ybs.config.schema import Config, Mode
from ybs.core.events import Event
from ybs.core.hooks import CallHook
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Confirm
from ybs.security.paths.roots import Roots
from ybs.security.policy.confirm import Gate, nobody
from ybs.security.policy.policy import Policy
from ybs.tools.registry import builtin_tools
from ybs.tools.toolbox import LocalToolbox
from ybs.tools.workspace import Workspace


class Answered(Struct):
    """A result with its display decoded, and the events on the way to it."""

    result: ToolResult
    display: Any
    events: list[Event]

    @property
    def output(self) -> str:
        return self.result.output


class Bench:
    """A toolbox with everything it stands on."""

    def __init__(
        self,
        folder: Path,
        *,
        mode: Mode = "bypass",
        confirm: Confirm = nobody,
        max_output_chars: int = 10_000,
        dry_run: bool = False,
        is_short: bool = False,
        config: Config | None = None,
        hooks: Sequence[CallHook] = (),
    ) -> None:
        config = config or Config()
        self.safety = replace(config.safety, mode=mode)
        roots = Roots(
            this_host(),
            folder,
            self.safety.sandbox_allowed_paths,
            self.safety.sandbox_blocked_paths,
        )
        self.workspace = Workspace(roots, max_output_chars=max_output_chars)
        self.gate = Gate(Policy(self.safety), confirm)
        self.tools = builtin_tools(config, self.workspace, is_short=is_short, keeps_unread=True)
        self.toolbox = LocalToolbox(
            self.tools, self.gate, max_output_chars=max_output_chars, dry_run=dry_run, hooks=hooks
        )
        self.toolbox.offer(self.tools, is_short=is_short)

    async def call(self, name: str, /, **arguments: Any) -> Answered:
        """Call a tool as a model would."""
        return await self.send(
            ToolCall(id="1", name=name, arguments=Raw(msgspec.json.encode(arguments)))
        )

    async def send(self, call: ToolCall) -> Answered:
        """Send a call as it is."""
        events: list[Event] = []
        result = await self.toolbox.run(call, events.append)
        return Answered(result, msgspec.json.decode(result.display), events)

    async def ok(self, name: str, /, **arguments: Any) -> Answered:
        """Call a tool that must succeed."""
        answered = await self.call(name, **arguments)
        assert not answered.result.is_error, answered.output
        return answered

    async def fails(self, name: str, /, **arguments: Any) -> str:
        """Call a tool that must fail, by itself and not by the mode or a rule; return what the model reads."""
        answered = await self.call(name, **arguments)
        assert answered.result.is_error, answered.output
        assert answered.result.summary != "refused"
        assert answered.display["success"] is False
        return answered.output


MakeBench = Callable[..., Bench]


@pytest.fixture
def bench(make_bench: MakeBench) -> Bench:
    return make_bench()


@pytest.fixture
def make_bench(project: Path) -> Iterator[MakeBench]:
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        made.append(Bench(project, **options))
        return made[-1]

    yield make
    for one in made:
        one.workspace.shells.close_watch()
