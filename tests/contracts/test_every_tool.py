"""What every Tool keeps: each built-in one, the fake, and one that brings its own schema."""

import re
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Raw

from tools.skills.folders import OWN, skill
from ybs.agent.prompt_context import PromptContext
from ybs.agent.toolbox import own_tools
from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect, Preview, Tool, ToolOutput
from ybs.session.options import Options
from ybs.session.settings import environment_of, load_settings
from ybs.testing import FakeTool
from ybs.tools.builtin.delegate import Task
from ybs.tools.calls.arguments import decode
from ybs.tools.calls.forms import schema_problem
from ybs.tools.registry import NAMES, builtin_tools
from ybs.tools.toolbox import Previewed

pytestmark = pytest.mark.integration


class Foreign:
    """A tool that has the protocol's parts and nothing else."""

    name = "foreign"
    description = "Looks at something."
    effect: Effect = "read"
    parameters = Raw(b'{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}')

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        return ToolOutput(output=arguments["at"])


class Nobody:
    """Starts no sub-agents."""

    own_kinds = ""

    def kind_name(self, name: str) -> str:
        return name

    async def delegate(self, tasks: Sequence[Task], call_id: str) -> ToolOutput:
        return ToolOutput(output="")


@pytest.fixture
def tools(project: Path, home: Path) -> list[Tool]:
    skill(home / OWN, "x")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    options = Options.of(project, {})
    environment = environment_of(options, load_settings(options))
    context = PromptContext(environment)
    own = own_tools(environment, context, Nobody())
    built_in = builtin_tools(environment.config, environment.workspace)
    return [*built_in, *own, FakeTool(), Foreign()]


def test_every_built_in_tool_is_among_them(tools: list[Tool]):
    assert {*NAMES, "fake", "foreign"} == {tool.name for tool in tools}


def test_a_tool_is_described_as_providers_take_it(tools: list[Tool]):
    for tool in tools:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool.name)
        assert tool.description.strip(), tool.name
        assert tool.effect in get_args(Effect), tool.name
        assert schema_problem(tool.parameters) == "", tool.name


def test_arguments_that_do_not_fit_are_refused_and_what_is_required_is_enough(tools: list[Tool]):
    for tool in tools:
        schema = msgspec.json.decode(tool.parameters)
        required = least(schema)
        decoded = decode(tool, of(tool, required))
        assert decoded.notes == (), tool.name
        for name in required:
            with pytest.raises(ToolError, match=name):
                decode(tool, of(tool, {n: v for n, v in required.items() if n != name}))


def test_a_preview_is_one_or_a_tool_error(tools: list[Tool]):
    previewed: set[str] = set()
    for tool in tools:
        schema = msgspec.json.decode(tool.parameters)
        value = decode(tool, of(tool, least(schema))).value
        if not isinstance(tool, Previewed):
            assert isinstance(tool, Foreign)
            continue
        with suppress(ToolError):  # a path or an action that does not exist
            shown = tool.preview(value)
            assert isinstance(shown, Preview)
            assert shown.title, tool.name
            previewed.add(tool.name)
    assert previewed >= {"write_file", "run_shell", "set_thought", "fake"}


def least(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the least that a tool takes: of what is required a text each, or an empty list."""
    values: dict[str, Any] = {"string": "x", "array": []}
    required = schema.get("required", ())
    return {name: values[schema["properties"][name]["type"]] for name in required}


def of(tool: Tool, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(id="1", name=tool.name, arguments=Raw(msgspec.json.encode(arguments)))
