"""Which tools another agent is offered."""

from collections.abc import Sequence
from typing import Final

from ybs.agent.environment import ToolEnvironment
from ybs.agent.prompt_context import PromptContext
from ybs.agent.toolbox import empty_toolbox, own_tools
from ybs.core.hooks import CallHook
from ybs.core.ports import Tool
from ybs.core.wording import listed
from ybs.frontends.headless.prompt import UsageError
from ybs.tools.registry import builtin_tools, is_enabled
from ybs.tools.toolbox import LocalToolbox

#: By these a model talks to the person of ybs and keeps notes. Another agent has its own, and gets them only by name.
ONLY_BY_NAME: Final = frozenset(
    {"ask_user", "todo", "set_thought", "memorize", "update_identity", "skill"}
)


def served_toolbox(
    environment: ToolEnvironment,
    context: PromptContext,
    foreign: Sequence[Tool],
    names: Sequence[str],
    hooks: Sequence[CallHook],
) -> LocalToolbox:
    """Return the tools of these names, or without names those that are of use to another agent. Raises UsageError."""
    config = environment.config
    known = [*builtin_tools(config, environment.workspace), *own_tools(environment, context)]
    own = [tool for tool in known if is_enabled(config, tool)]
    there = {tool.name for tool in (*own, *foreign)}
    if missing := [name for name in names if name not in there]:
        raise UsageError(
            f"--tools: there is no tool {missing[0]!r} that is on; there are {listed(sorted(there))}"
        )
    chosen = set(names) or there - ONLY_BY_NAME
    toolbox = empty_toolbox(environment, hooks)
    toolbox.offer(
        [tool for tool in own if tool.name in chosen],
        foreign=[tool for tool in foreign if tool.name in chosen],
    )
    return toolbox
