"""Real agents as sub-agents: ybs itself by examples/embedding/editor.py, and opencode from npm, each with a scripted server for its model."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conductor.acp.scenes import Scene
from conductor_cast import delegated
from scripted import OpenAIServer
from ybs.core.events import ToolStarted
from ybs.testing import call

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
EDITOR = Path(__file__).parents[3] / "examples" / "embedding" / "editor.py"
#: The name of the package on npm, and its version.
OPENCODE = ("opencode-ai", "1.18.33")


@pytest.fixture
def scene(project: Path) -> Scene:
    (project / "a").write_text("old\n")
    return Scene(project)


async def test_ybs_is_a_sub_agent_of_ybs(scene: Scene, tmp_path: Path) -> None:
    script = [call("write_file", path="b", content="new\n"), call("delete_file", path="a"), "Done."]
    async with OpenAIServer(script) as server:
        settings = {
            "llm": {"provider": "openai", "model": "m", "endpoint": server.url},
            "safety": {"sandbox_enabled": False},  # the one around it is enough
        }
        # Its home is the one that stays for it: its settings are put there before.
        home = Path.home() / ".local/state/ybs/residents/acp-other/temporary/home"
        (home / ".config/ybs").mkdir(parents=True)
        (home / ".config/ybs/config.json").write_text(json.dumps(settings))
        entry = {"command": [sys.executable, str(EDITOR)]}
        task = delegated({"task": "write b", "kind": "other"})
        said = await scene.play(agent=entry, task=task, mode="ask")
        asked = json.dumps(server.requests[0].body)
    assert "[other-1: done; " in said, said
    assert "Done." in said
    assert "You are a sub-agent" in asked
    titles = [each.preview.title for each in scene.asked]
    assert titles[:2] == ["Create b (+1 -0)", "Delete a"], (
        "the questions of the inner one reach the person"
    )
    assert {each.agent for each in scene.asked} == {"other-1"}
    assert [path.name for path in scene.project.iterdir()] == ["b"]


@pytest.fixture(scope="session")
def opencode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install opencode; skip where there is no npm, or where it reaches no registry."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("NO NPM on this machine: opencode is untested")
    folder = tmp_path_factory.mktemp("opencode")
    package = "@".join(OPENCODE)
    words = [
        npm,
        "install",
        "--global",
        "--prefix",
        str(folder),
        "--no-audit",
        "--no-fund",
        package,
    ]
    try:
        done = subprocess.run(words, capture_output=True, timeout=100, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("NO NPM REGISTRY answers: opencode is untested")
    if done.returncode:
        pytest.skip("NO NPM REGISTRY in reach: opencode is untested")
    return folder / "bin" / "opencode"


@pytest.mark.timeout(240)
async def test_opencode_edits_its_copy_with_the_tools_of_its_own(
    scene: Scene, opencode: Path
) -> None:
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
            "command": [str(opencode), "acp"],
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
