"""examples/embedding/editor.py, driven by the client of the protocol's official SDK over its standard input and output."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, Client, RequestPermissionResponse, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, ToolCallUpdate

from scripted import OpenAIServer
from ybs.testing import call

pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).parents[2] / "examples" / "embedding" / "editor.py"


class Editor(Client):
    """It keeps what it was told, and answers as it is told to; without an answer the question stays open."""

    def __init__(self, choice: str | None) -> None:
        self.choice = choice
        self.told: dict[str, list[Any]] = {}
        self.asked = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.told.setdefault(session_id, []).append(update)

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.told.setdefault(session_id, []).append(tool_call)
        self.asked.set()
        if self.choice is None:
            await asyncio.sleep(60)
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        chosen = AllowedOutcome(outcome="selected", option_id=self.choice)
        return RequestPermissionResponse(outcome=chosen)

    def text(self, session_id: str) -> str:
        """Return the answer as it came."""
        chunks = [each for each in self.told[session_id] if hasattr(each, "content")]
        return "".join(each.content.text for each in chunks if hasattr(each.content, "text"))


@asynccontextmanager
async def edited(server: OpenAIServer, home: Path, editor: Editor) -> AsyncIterator[Any]:
    model = {"provider": "openai", "model": "m", "endpoint": server.url}
    settings = {"llm": model, "safety": {"sandbox_enabled": False}}
    folder = home / ".config" / "ybs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    async with spawn_agent_process(editor, sys.executable, str(EXAMPLE)) as (agent, _process):
        await agent.initialize(protocol_version=PROTOCOL_VERSION)
        yield agent


async def test_two_sessions_are_held_and_questions_go_over_the_wire(project: Path, home: Path):
    (project / "a").write_text("text")
    editor = Editor("yes")
    script = [call("delete_file", path="a"), "It is gone.", "Hello too."]
    async with OpenAIServer(script) as server, edited(server, home, editor) as agent:
        one = (await agent.new_session(cwd=str(project), mcp_servers=[])).session_id
        other = (await agent.new_session(cwd=str(project), mcp_servers=[])).session_id
        done = await agent.prompt(session_id=one, prompt=[text_block("delete it")])
        assert done.stop_reason == "end_turn"
        assert (await agent.prompt(session_id=other, prompt=[text_block("hi")])).stop_reason
    assert one != other
    assert (editor.text(one), editor.text(other)) == ("It is gone.", "Hello too.")
    titles = [each.title for each in editor.told[one] if getattr(each, "title", None)]
    assert titles == ["Delete a", "Delete a"]  # as it began, and as it was asked about
    assert not (project / "a").exists()


async def test_a_turn_is_cancelled_while_its_question_is_open(project: Path, home: Path):
    (project / "a").write_text("text")
    editor = Editor(None)
    async with (
        OpenAIServer([call("delete_file", path="a")]) as server,
        edited(server, home, editor) as agent,
    ):
        session = (await agent.new_session(cwd=str(project), mcp_servers=[])).session_id
        prompt = agent.prompt(session_id=session, prompt=[text_block("delete it")])
        turn = asyncio.create_task(prompt)
        await asyncio.wait_for(editor.asked.wait(), 20)
        await agent.cancel(session_id=session)
        assert (await asyncio.wait_for(turn, 5)).stop_reason == "cancelled"
    assert (project / "a").exists()
