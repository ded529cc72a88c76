"""Real agents as sub-agents: ybs itself by examples/embedding/editor.py, and agents from npm, each with a scripted server for its model.

One of those from npm is installed with the slow tests; the others, a hundred megabytes each, with those that need the real thing.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conductor.acp.scenes import Scene
from conductor_cast import delegated
from hosts import this_host
from scripted import AnthropicServer, GoogleServer, OpenAIServer, ResponsesServer
from ybs.core.events import ToolStarted
from ybs.testing import call
from ybs.trust.decision import home_mark

pytestmark = pytest.mark.timeout(120)
EDITOR = Path(__file__).parents[3] / "examples" / "embedding" / "editor.py"


@pytest.fixture
def scene(project: Path) -> Scene:
    (project / "a").write_text("old\n")
    return Scene(project)


@pytest.mark.slow
async def test_ybs_is_a_sub_agent_of_ybs(scene: Scene, tmp_path: Path) -> None:
    script = [call("write_file", path="b", content="new\n"), call("delete_file", path="a"), "Done."]
    async with OpenAIServer(script) as server:
        settings = {
            "llm": {"provider": "openai", "model": "m", "endpoint": server.url},
            "safety": {"sandbox_enabled": False},  # the one around it is enough
        }
        # Its home is the one that stays for it in this project: its settings are put there before.
        name = f"acp-other-{home_mark(this_host(), scene.project)}"
        home = this_host().residents_folder / name / "temporary/home"
        (home / ".config/ybs").mkdir(parents=True)
        (home / ".config/ybs/config.json").write_text(json.dumps(settings))
        entry = {"command": [sys.executable, str(EDITOR)]}
        task = delegated({"task": "write b", "kind": "other"})
        said = await scene.play(agent=entry, task=task, mode="ask")
        asked = json.dumps(server.requests[0].body)
    assert "[other-1: done; " in said, said
    assert "Done." in said
    assert "You are a sub-agent" in asked
    titles = [each.preview.said for each in scene.asked]
    assert titles[:2] == ["Create b (+1 -0)", "Delete a"], (
        "the questions of the inner one reach the person"
    )
    assert {each.agent for each in scene.asked} == {"other-1"}
    assert [path.name for path in scene.project.iterdir()] == ["b"]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return what installs a program of npm; it skips where there is no npm, or where it reaches no registry."""

    def install(package: str, version: str, program: str) -> str:
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip(f"NO NPM on this machine: {program} is untested")
        folder = tmp_path_factory.mktemp(program)
        words = [npm, "install", "--global", "--prefix", str(folder), "--no-audit", "--no-fund"]
        words.append(f"{package}@{version}")
        try:
            done = subprocess.run(words, capture_output=True, timeout=100, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip(f"NO NPM REGISTRY answers: {program} is untested")
        if done.returncode:
            pytest.skip(f"NO NPM REGISTRY in reach: {program} is untested")
        return str(folder / "bin" / program)

    return install


def answering(*script: Any) -> Callable[[Any], Any]:
    """Return what plays a script where the agent has tools, and says what small requests beside it want to hear."""
    left = list(script)

    def answer(request: Any) -> Any:
        if not request.body.get("tools"):
            return '{"complexity_reasoning": "", "complexity_score": 1}'
        return left.pop(0) if left else "It is written."

    return answer


async def wrote_b(scene: Scene, entry: Any) -> None:
    """Have an agent write a file; see that it was asked about once or twice, with its name, and that it is there."""
    said = await scene.play(agent=entry, mode="ask")
    assert "[other-1: done; " in said, said
    assert "It is written." in said
    assert (scene.project / "b").read_text() == "new\n"
    assert {each.agent for each in scene.asked} == {"other-1"}
    assert scene.asked[0].call.name == "write_file"


@pytest.mark.real
@pytest.mark.timeout(240)
async def test_gemini_makes_a_file(scene: Scene, installed: Callable[..., str]) -> None:
    gemini = installed("@google/gemini-cli", "0.61.0", "gemini")
    answer = answering(call("write_file", file_path="b", content="new\n"))
    async with GoogleServer([answer] * 12) as server:
        env = {"GOOGLE_GEMINI_BASE_URL": server.url.removesuffix("/v1beta"), "GEMINI_API_KEY": "k"}
        await wrote_b(scene, {"preset": "gemini", "command": [gemini, "--acp"], "env": env})


@pytest.mark.real
@pytest.mark.timeout(240)
async def test_codex_asks_the_person(scene: Scene, installed: Callable[..., str]) -> None:
    codex = installed("@agentclientprotocol/codex-acp", "2.6.0", "codex-acp")
    patch = "*** Begin Patch\n*** Add File: b\n+new\n*** End Patch"
    answer = answering(call("exec_command", cmd=f"apply_patch <<'EOF'\n{patch}\nEOF"))
    async with ResponsesServer([answer] * 12) as server:
        provider = {"name": "scripted", "base_url": server.url, "wire_api": "responses"}
        provider["env_key"] = "OPENAI_API_KEY"
        config = {"model": "m", "model_provider": "s", "model_providers": {"s": provider}}
        env = {"OPENAI_API_KEY": "k", "CODEX_CONFIG": json.dumps(config)}
        await wrote_b(scene, {"preset": "codex", "command": [codex], "env": env})


@pytest.mark.real
@pytest.mark.timeout(240)
async def test_claude_code_writes_a_file(scene: Scene, installed: Callable[..., str]) -> None:
    claude = installed("@agentclientprotocol/claude-agent-acp", "0.101.0", "claude-agent-acp")
    answer = answering(call("Write", file_path="b", content="new\n"))
    async with AnthropicServer([answer] * 12) as server:
        env = {"ANTHROPIC_BASE_URL": server.url.removesuffix("/v1"), "ANTHROPIC_API_KEY": "k"}
        env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
        await wrote_b(scene, {"preset": "claude", "command": [claude], "env": env})


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_opencode_edits_its_copy_with_the_tools_of_its_own(scene, installed):
    opencode = installed("opencode-ai", "1.18.33", "opencode")
    script = ["It is written.", call("write", filePath="b", content="new\n")]

    def answer(request: Any) -> Any:
        has_tools = bool(request.body.get("tools"))
        return script.pop() if has_tools else "a title"

    async with OpenAIServer([answer] * 4) as server:
        options = {"baseURL": server.url, "apiKey": "none"}
        models = {"m": {"name": "m", "tool_call": True}}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
        config = {
            "provider": {"scripted": provider},
            "model": "scripted/m",
            "small_model": "scripted/m",
            "permission": {"edit": "ask"},
            "autoupdate": False,
            "share": "disabled",
        }
        entry = {
            "preset": "opencode",
            "command": [opencode, "acp"],
            "env": {"OPENCODE_CONFIG_CONTENT": json.dumps(config)},
        }
        said = await scene.play(agent=entry, mode="ask")
    assert "[other-1: done; " in said, said
    assert "It is written." in said
    assert (scene.project / "b").read_text() == "new\n"
    assert any(each.name in ("write_file", "edit_file") for each in scene.told(ToolStarted))
    (asked,) = scene.asked
    assert (asked.agent, asked.call.name) == ("other-1", "write_file")
    assert "+new" in asked.preview.body
    assert asked.grant == "write_file(**)"
