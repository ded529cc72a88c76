"""The tool that shows the map."""

from pathlib import Path

import pytest

from hosts import this_host
from ybs.core.errors import Refused, ToolError
from ybs.core.schema import schema_of
from ybs.security.paths.roots import Roots
from ybs.tools.builtin.repo_map import RepoMapArguments, RepoMapTool
from ybs.tools.workspace import Workspace


async def ask(query: str) -> str:
    if query == "nothing":
        raise ToolError("There is no map: its process ended.")
    return f"src/app.py\nsrc/{query}.py"


def tool(folder: Path, allowed: tuple[Path, ...] | None = None) -> RepoMapTool:
    return RepoMapTool(Workspace(Roots(this_host(), folder, allowed or (folder,))), ask)


async def test_the_map_is_the_output_and_why_there_is_none_the_error(project: Path) -> None:
    made = await tool(project).run(RepoMapArguments(query="ship"), print)
    assert (made.output, made.summary) == ("src/app.py\nsrc/ship.py", "2 lines")
    with pytest.raises(ToolError, match="no map"):
        await tool(project).run(RepoMapArguments(query="nothing"), print)


def test_it_takes_a_query_alone_and_says_little_of_itself(project: Path) -> None:
    schema = b'{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}'
    assert bytes(schema_of(RepoMapArguments)) == schema
    made = tool(project)
    assert len(made.description) <= 45
    assert made.effect == "read"
    assert made.preview(RepoMapArguments(query="ship")).title == "Map ship"
    assert made.subject(RepoMapArguments(query="ship")).paths == (".",)


def test_a_folder_that_tools_may_not_read_is_not_mapped(project: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        tool(project, (tmp_path / "other",)).subject(RepoMapArguments(query="ship"))
