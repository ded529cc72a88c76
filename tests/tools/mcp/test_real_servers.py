"""Servers that people use, started by the lines of their READMEs, in the sandbox. They are fetched from the registries."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from hosts import this_host
from ybs.agent.environment import ToolEnvironment
from ybs.agent.toolbox import make_toolbox, with_foreign
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Question
from ybs.session.options import Options
from ybs.session.settings import environment_of, load_settings

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
Call = Callable[..., Any]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


@asynccontextmanager
async def serving(
    project: Path, command: Sequence[str], /, **settings: Any
) -> AsyncGenerator[tuple[ToolEnvironment, Call]]:
    """Start a server in an environment, and give what calls its tools."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"NOT TESTED: {command[0]} is not installed")
    if os.path.exists(CERTIFICATES):  # noqa: ASYNC240,PTH110 - the suite hides them, for speed
        settings["env"] = {"SSL_CERT_FILE": str(CERTIFICATES), **settings.get("env", {})}
    entry = {"command": command[0], "args": [*command[1:]], "start_seconds": 240, **settings}
    file = this_host().user_config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode({"mcpServers": {"real": entry}}))
    options = Options(host=this_host(), folder=project)

    async def confirm(_question: Question) -> Answer:
        return Answer(is_allowed=True)

    environment = environment_of(options, load_settings(options), confirm)
    toolbox = with_foreign(make_toolbox(environment), (), environment, ())
    connection = environment.mcp.connections["real"]
    try:
        await connection.settled()
        assert connection.problem == ""
        await toolbox.open(lambda _event: None)

        async def call(name: str, **given: Any) -> ToolResult:
            arguments = Raw(msgspec.json.encode(given))
            asked = ToolCall(id="1", name=f"mcp__real__{name}", arguments=arguments)
            return await toolbox.run(asked, lambda _event: None)

        yield environment, call
    finally:
        await toolbox.aclose()
        await environment.aclose()


async def test_filesystem(project: Path):
    (project / "a.txt").write_text("one\n")
    command = ("npx", "-y", "@modelcontextprotocol/server-filesystem", str(project))
    async with serving(project, command) as (_, call):
        assert (await call("read_text_file", path=str(project / "a.txt"))).output.strip() == "one"
        wrote = await call("write_file", path=str(project / "b.txt"), content="two")
        assert wrote.is_error  # the project is there to read
        assert not (project / "b.txt").exists()
    async with serving(project, command, project="write") as (_, call):
        wrote = await call("write_file", path=str(project / "b.txt"), content="two")
        assert (wrote.is_error, (project / "b.txt").read_text()) == (False, "two")


async def test_everything(project: Path):
    command = ("npx", "-y", "@modelcontextprotocol/server-everything")
    async with serving(project, command) as (environment, call):
        assert (await call("get-sum", a=1, b=2)).output == "The sum of 1 and 2 is 3."
        assert (await call("get-tiny-image")).images[0].media_type == "image/png"
        offer = environment.mcp.connections["real"].offer
        assert {"simple-prompt", "args-prompt"} <= {prompt.name for prompt in offer.prompts}
        link = await environment.mcp.connections["real"].link()
        assert (await link.read(offer.resources[0].uri)).output != ""
        assert "HOME" in (await call("get-env")).output


async def test_memory(project: Path):
    command = ("npx", "-y", "@modelcontextprotocol/server-memory")
    async with serving(project, command, env={"MEMORY_FILE_PATH": "/tmp/home/memory.json"}) as (
        _,
        call,
    ):
        entity = {"name": "ybs", "entityType": "program", "observations": ["calm"]}
        assert not (await call("create_entities", entities=[entity])).is_error
    async with serving(project, command, env={"MEMORY_FILE_PATH": "/tmp/home/memory.json"}) as (
        _,
        call,
    ):
        assert "calm" in (await call("read_graph")).output


async def test_git(project: Path):
    command = ("uvx", "mcp-server-git", "--repository", str(project))
    await asyncio.to_thread(subprocess.run, ("git", "init", "-q", str(project)), check=True)
    (project / "a.txt").write_text("one\n")
    async with serving(project, command) as (_, call):
        assert "a.txt" in (await call("git_status", repo_path=str(project))).output


async def test_time(project: Path):
    async with serving(project, ("uvx", "mcp-server-time")) as (environment, call):
        said = await call("get_current_time", timezone="Europe/Oslo")
        assert "Europe/Oslo" in said.output
        assert environment.mcp.connections["real"].version == "2026-07-28"
