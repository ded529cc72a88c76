"""Make the tools of an agent: the built-in ones, and those by which a model looks around and notes things down."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ybs.agent.environment import ToolEnvironment
from ybs.agent.prompt_context import PromptContext
from ybs.config.schema import Config
from ybs.core.envelope import MAIN
from ybs.core.events import Emit, Event, ToolStarted
from ybs.core.hooks import CallHook
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Tool, Toolbox, ToolSpec
from ybs.core.wrapper import ToolboxWrapper
from ybs.security.paths.roots import Roots
from ybs.tools.builtin.ask_user import AskUser
from ybs.tools.registry import builtin_tools, is_enabled
from ybs.tools.toolbox import LocalToolbox

if TYPE_CHECKING:
    from ybs.tools.builtin.delegate import Delegates


class ToolSet(Struct, frozen=True, kw_only=True):
    """What an agent has beside the tools of every agent: its `own` built-in ones and `foreign` ones.

    `is_short`: they are told in the short form, for small models; `unoffered` names those that its model is not told of by itself.
    """

    own: Sequence[Tool] = ()
    foreign: Sequence[Tool] = ()
    is_short: bool = False
    unoffered: Collection[str] = ()


NO_MORE: Final = ToolSet()


def make_toolbox(
    environment: ToolEnvironment,
    tools: ToolSet = NO_MORE,
    hooks: Sequence[CallHook] = (),
    agent: str = MAIN,
) -> LocalToolbox:
    """Make the tools of an agent of that name."""
    config = environment.config
    own = [tool for tool in tools.own if is_enabled(config, tool)]
    toolbox = empty_toolbox(environment, hooks, agent)
    builtin = builtin_tools(
        config,
        environment.workspace,
        is_short=tools.is_short,
        keeps_unread=environment.may_have("read_file"),
    )
    builtin = environment.mcp.replaced(builtin) if environment.has_mcp() else builtin
    toolbox.offer(
        [tool for tool in (*builtin, *own) if environment.may_have(tool.name)],
        foreign=[tool for tool in tools.foreign if environment.may_have(tool.name)],
        is_short=tools.is_short,
        unoffered=tools.unoffered,
    )
    return toolbox


def own_tools(
    environment: ToolEnvironment,
    context: PromptContext,
    agents: "Delegates | None" = None,
    agent: str = MAIN,
) -> Iterator[Tool]:
    """Make the tools by which a model looks around, notes things down, asks the person and, where there are any, loads skills and starts `agents`."""
    agents = agents if environment.config.agents.offer != "never" else None
    yield from context.tools()
    yield AskUser(environment.workspace, lambda: environment.gate.confirm, agent)
    if environment.has_skills() and environment.skills.offered:
        from ybs.tools.builtin.skill import SkillTool

        yield SkillTool(environment.workspace, environment.skills, environment.open_skill, agents)
    if agents is not None:
        from ybs.tools.builtin.delegate import DelegateTool

        yield DelegateTool(environment.workspace, agents)


def with_foreign(
    own: LocalToolbox,
    toolboxes: Sequence[Toolbox],
    environment: ToolEnvironment,
    hooks: Sequence[CallHook],
    agent: str = MAIN,
) -> Toolbox:
    """Return an agent's own tools, programs of the person's, MCP servers and other toolboxes as one; all calls are checked in the same way."""
    has_external = environment.has_external_tools()
    if not (toolboxes or has_external or environment.has_mcp()):
        return own
    from ybs.tools.composite import CompositeToolbox, DeferredToolbox
    from ybs.tools.foreign import ForeignToolbox

    others: list[Toolbox] = []
    if has_external:
        from ybs.tools.external.catalogue import ExternalToolbox

        local = empty_toolbox(environment, hooks, agent)
        others.append(ExternalToolbox(environment.external_tools, local, is_short=own.is_short))
    if environment.has_mcp():
        from ybs.tools.mcp.servers import McpToolbox

        local = empty_toolbox(environment, hooks, agent)
        others.append(McpToolbox(environment.mcp, local, is_short=own.is_short))
    is_lent = agent != MAIN
    if is_lent:
        others = [Lent(each) for each in others]
    for each in toolboxes:
        local = empty_toolbox(environment, hooks, agent)
        others.append(ForeignToolbox(Lent(each) if is_lent else each, local))
    if environment.only_tools is not None:
        others = [Filtered(each, environment.may_have) for each in others]
    return CompositeToolbox([own, DeferredToolbox(others)])


def empty_toolbox(
    environment: ToolEnvironment, hooks: Sequence[CallHook], agent: str = MAIN
) -> LocalToolbox:
    """Make a toolbox that checks its calls as those of a session are, and offers nothing yet. `hooks` are the agent's own, before those of all."""
    config = environment.config
    return LocalToolbox(
        (),
        environment.gate.of_agent(agent),
        max_output_chars=environment.workspace.max_output_chars,
        dry_run=environment.permissions.is_dry_run,
        limits=call_limits(config),
        hooks=environment.around(hooks),
    )


async def programs_of(environment: ToolEnvironment) -> Sequence[Tool]:
    """Ask the programs of the person's that serve as tools what they are, and return those that can be used."""
    if not environment.has_external_tools():
        return ()
    from ybs.tools.external.catalogue import DESCRIBE_SECONDS

    catalogue = environment.external_tools
    try:
        await catalogue.load(DESCRIBE_SECONDS)
    finally:
        await catalogue.aclose()
    return catalogue.usable


def call_limits(config: Config) -> dict[str, float]:
    """Return the seconds that a call may take, of the tools for which they are set.

    run_shell ends by itself: its time is that of one command, and a call may name another.
    """
    return {
        name: tool.timeout_seconds
        for name, tool in config.tools.builtin.items()
        if tool.timeout_seconds is not None and name != "run_shell"
    }


def describing(emit: Emit, toolbox: Toolbox, roots: Roots) -> Emit:
    """Return an `emit` that says of each call of the toolbox what it is, when it begins."""

    def tell(event: Event) -> None:
        if isinstance(event, ToolStarted):
            from ybs.tools.calls.describing import described  # not before the first call

            event = described(event, toolbox, roots)
        emit(event)

    return tell


class _Passing(ToolboxWrapper):
    """A toolbox around another one, which runs the calls as they are."""

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        """Run one call."""
        return await self._toolbox.run(call, emit)


class Lent(_Passing):
    """A toolbox in the hands of a sub-agent: the main agent has opened it, and closes it."""

    async def open(self, emit: Emit) -> None:
        """Leave it as it is."""

    async def aclose(self) -> None:
        """Leave it as it is."""


class Filtered(_Passing):
    """A toolbox of which only some tools may be had, by name."""

    def __init__(self, toolbox: Toolbox, may_have: Callable[[str], bool]) -> None:
        super().__init__(toolbox)
        self._may_have = may_have

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools that may be had; of the others no call is run, as nobody knows them here."""
        return [spec for spec in self._toolbox.specs() if self._may_have(spec.name)]
