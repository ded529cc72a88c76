"""`ybs acp` with clients that others wrote: the TypeScript SDK's and acpx. npm brings them, and the published schema."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from msgspec import Raw

from scripted import OpenAIServer
from ybs.core.messages import ToolCall
from ybs.testing import call
from ybs.testing.script import ScriptedAnswer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
FOLDER = Path(sys.prefix) / "npm"
CLIENT = Path(__file__).parent / "npm" / "client.mjs"
ACP = (sys.executable, "-m", "ybs", "acp")


@pytest.fixture(autouse=True)
def npm() -> None:
    if which("npm") is None or which("node") is None:
        pytest.skip("NOT TESTED: npm is not installed")
    assert (FOLDER / "node_modules").is_dir(), "make .venv/.done/programs installs the clients"


def settle(home: Path, server: OpenAIServer, **more: Any) -> None:
    folder = home / ".config" / "ybs"
    folder.mkdir(parents=True)
    model = {"provider": "openai", "model": "m", "endpoint": server.url}
    (folder / "config.json").write_text(json.dumps({"llm": model, **more}))


def run(*words: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "NPM_FOLDER": str(FOLDER), **variables}
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=90)


async def test_the_typescript_client_calls_every_method_and_all_fits_the_schema(
    clients: Any, project: Path, home: Path
):
    (project / "a.txt").write_text("saved\n")
    several = ScriptedAnswer(
        parts=tuple(
            ToolCall(id="", name=name, arguments=Raw(json.dumps(given).encode()))
            for name, given in (
                ("edit_file", {"path": "a.txt", "old_text": "typed", "new_text": "new"}),
                ("ask_user", {"question": "Which?", "options": ["red", "blue"]}),
                ("todo", {"steps": "[x] one\n[ ] two"}),
                ("run_shell", {"command": "echo hello"}),
                ("read_file", {"path": "none"}),
            )
        )
    )
    slow = call("run_shell", command="sleep 30")
    async with OpenAIServer([several, "Done.", slow, "Here.", "More."]) as server:
        settle(home, server)
        done = await asyncio.to_thread(run, "node", str(CLIENT), str(project), *ACP, folder=project)
    assert done.stderr == ""
    assert done.returncode == 0
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    clients.check_all(messages)
    sent = {message["method"] for _, message in messages if "method" in message}
    assert sent == {*clients.NAMES, *clients.NOTIFICATIONS}
    kinds = {m["params"]["update"]["sessionUpdate"] for _, m in messages if m.get("method") == "session/update"}  # fmt: skip
    assert kinds == {
        *("agent_message_chunk", "user_message_chunk", "tool_call", "tool_call_update", "plan"),
        *("available_commands_update", "config_option_update", "current_mode_update"),
        *("session_info_update", "usage_update"),
    } - ({"current_mode_update"} - kinds)  # fmt: skip
    assert (project / "a.txt").read_text() == "new\n"
    assert clients.PUBLISHED.exists()


async def test_acpx_approves_and_denies(project: Path, home: Path):
    (project / "a").write_text("text")
    acpx = str(FOLDER / "node_modules/.bin/acpx")
    delete = call("delete_file", path="a")
    agent = " ".join(ACP)
    words = (acpx, "--agent", agent, "--cwd", str(project), "--format", "json")
    async with OpenAIServer([delete, "It stays.", delete, "It is gone."]) as server:
        settle(home, server)
        denied = await asyncio.to_thread(
            run, *words, "--deny-all", "exec", "delete it", folder=project
        )
        assert (project / "a").exists(), denied.stderr
        allowed = await asyncio.to_thread(
            run, *words, "--approve-all", "exec", "delete it", folder=project
        )
    assert not (project / "a").exists(), allowed.stderr
    assert allowed.returncode == 0
    assert "It stays." in _said(denied.stdout)
    assert "It is gone." in _said(allowed.stdout)


def _said(output: str) -> str:
    """Return the words of an answer in the messages that acpx prints."""
    messages = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    updates = [each.get("params", {}).get("update", {}) for each in messages]
    chunks = [
        each["content"] for each in updates if each.get("sessionUpdate") == "agent_message_chunk"
    ]
    return "".join(each.get("text", "") for each in chunks)
