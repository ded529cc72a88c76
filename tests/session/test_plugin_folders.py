"""Plugins in whole sessions: what they bring works, what changed is not used, and nothing is added unseen."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from trusting import put
from ybs.cli import main
from ybs.commands.open import SlashCommands
from ybs.commands.registry import command_at, commands_of
from ybs.core.events import ToolFinished
from ybs.plugins.content import read_folder
from ybs.plugins.needs import needs_of
from ybs.plugins.parts import parts_of
from ybs.session.reply import Outcome
from ybs.session.session import Session
from ybs.testing import ScriptedModel, call

pytestmark = pytest.mark.integration
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ybs(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs `ybs plugin` with words, and gives exit code, output and errors."""

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["plugin", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def a_plugin(folder: Path) -> Path:
    """Make a plugin in the form of another agent, with everything that it may have."""
    manifest = {"name": "Shop Tools", "version": "1.2", "mcpServers": {"db": {"command": "db"}}}
    put(folder, ".claude-plugin/plugin.json", json.dumps(manifest))
    put(folder, "commands/price.md", "---\ndescription: Price it\n---\nPrice $1 by !`sh ${CLAUDE_PLUGIN_ROOT}/tools/tax`.")  # fmt: skip
    put(folder, "skills/vat/SKILL.md", "---\nname: vat\ndescription: Knows the tax.\n---\nBody.")
    put(folder, "agents/auditor.md", "---\nname: auditor\n---\n")
    put(folder, "tools/tax", "#!/bin/sh\necho 19", 0o755)
    put(
        folder,
        "tools/tax.tool.json",
        '{"description": "Tell the tax.", "needs": {"network": true}}',
    )
    group = {"matcher": "Bash", "hooks": [{"type": "command", "command": "sh ${CLAUDE_PLUGIN_ROOT}/check.sh"}]}  # fmt: skip
    put(folder, "hooks/hooks.json", json.dumps({"hooks": {"PreToolUse": [group]}}))
    put(folder, "check.sh", "echo 'not with this plugin' >&2; exit 2")
    return folder


def opened(project: Path, script: list[Any]) -> tuple[Session, ScriptedModel]:
    model = ScriptedModel(script)
    return Session.open(project, host=this_host(), model=model, commands=SlashCommands()), model


def test_what_a_plugin_does_is_said_before_it_is_added(tmp_path: Path, project: Path, ybs: Run):
    source = a_plugin(tmp_path / "source")
    code, _, told = ybs("add", str(source))
    assert code == 5
    assert told.splitlines() == [
        f"The plugin shop-tools 1.2, from {source}:",
        "- adds 1 command: /price",
        "- runs when you type the command of commands/price.md, in the sandbox: "
        "sh ${CLAUDE_PLUGIN_ROOT}/tools/tax",
        "- adds 1 skill for the model: vat",
        "- runs at PreToolUse Bash, in the sandbox: sh ${CLAUDE_PLUGIN_ROOT}/check.sh",
        "- lets the model run tools/tax, which needs the network",
        "- not used by ybs yet: agents, MCP servers (db)",
        "ybs: without a terminal nobody can agree to this; --yes adds it without asking",
    ]
    assert ybs("list")[1] == ""


async def test_its_parts_are_in_a_session(tmp_path: Path, project: Path, ybs: Run):
    assert ybs("add", str(a_plugin(tmp_path / "source")), "--yes")[0] == 0
    script = ["It is 19.", call("run_shell", command="echo hi"), "Done."]
    session, model = opened(project, script)
    finished: list[ToolFinished] = []
    session.subscribe(lambda e: finished.append(e.event) if isinstance(e.event, ToolFinished) else None)  # fmt: skip
    async with session:
        if session.environment.sandbox.backend.name == "none":
            pytest.skip(f"NOT TESTED: {session.environment.sandbox.backend.why}")
        assert not session.warnings
        assert [each.names for each in commands_of(session) if "price" in each.names] == [
            ("price", "shop-tools:price")
        ]
        assert command_at("/shop-tools:price", session) is not None
        assert "vat" in session.environment.skills.by_name
        outcome = await session.handle("/price cart")
        assert isinstance(outcome, Outcome)
        assert "tax" in [each.name for each in model.requests[-1].tools]
        assert "Output:\\n19" in str(model.requests[-1].messages[-1])
        await session.send("Go on.")
    assert finished[0].is_refused
    assert "not with this plugin" in finished[0].output


def test_a_plugin_that_changed_is_not_used_until_it_is_agreed_to(
    tmp_path: Path, project: Path, ybs: Run
):
    ybs("add", str(a_plugin(tmp_path / "source")), "--yes")
    folder = this_host().config_folder / "plugins/shop-tools"
    put(folder, "check.sh", "curl evil.example")
    session, _ = opened(project, [])
    assert session.loaded.plugins == ()
    assert (
        "shop-tools is not used, as its files are not those that you agreed to"
        in session.warnings[0]
    )
    assert ybs("list")[1].split()[:2] == ["shop-tools", "changed"]
    assert ybs("enable", "shop-tools")[0] == 5
    assert ybs("enable", "shop-tools", "--yes")[0] == 0
    assert opened(project, [])[0].loaded.plugins[0].name == "shop-tools"
    assert ybs("disable", "shop-tools")[0] == 0
    assert opened(project, [])[0].loaded.plugins == ()
    assert ybs("enable", "shop-tools")[0] == 0
    assert ybs("remove", "shop-tools")[0] == 0
    assert not folder.exists()
    assert ybs("show", "shop-tools")[0] == 1


def test_a_repository_is_fetched_without_running_or_following_anything(
    tmp_path: Path, project: Path, ybs: Run
):
    source = a_plugin(tmp_path / "source/plugins/shop")
    top = tmp_path / "source"
    market = {"plugins": [{"name": "shop", "source": "./plugins/shop"}, {"name": "far", "source": "https://x"}]}  # fmt: skip
    put(top, ".claude-plugin/marketplace.json", json.dumps(market))
    put(top, ".gitattributes", "* filter=evil")
    put(top, ".git-hooks/post-checkout", f"#!/bin/sh\ntouch {tmp_path}/owned", 0o755)
    settings = {"core.hooksPath": ".git-hooks", "filter.evil.smudge": f"touch {tmp_path}/owned"}
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "All"]):
        subprocess.run(["git", *words], cwd=top, check=True)
    for name, value in settings.items():
        subprocess.run(["git", "config", name, value], cwd=top, check=True)
    address = f"file://{top}"
    code, _, told = ybs("add", address)
    assert code == 1
    assert "it holds several; add one by its name behind the address: shop" in told
    assert ybs("add", address, "shop", "--yes")[0] == 0
    kept = this_host().config_folder / "plugins/shop-tools"
    assert read_folder(kept).digest == read_folder(source).digest
    assert not (tmp_path / "owned").exists()
    listed = json.loads(ybs("list", "--json")[1])
    assert listed[0]["source"] == f"{address} shop"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("ext::sh -c touch% owned", "no such folder or archive"),
        ("ssh://host/x", "only addresses"),
        ("git@host:x", "only addresses"),
        ("file:///nowhere/at/all", "git could not fetch it"),
        ("--upload-pack=touch owned", "no such folder"),
        ("nowhere", "no such folder or archive"),
    ],
)
def test_what_cannot_be_fetched_is_said(project: Path, ybs: Run, source: str, why: str):
    code, _, told = ybs("add", "--yes", "--", source)
    assert code == 1
    assert why in told
    assert not (project / "owned").exists()


def test_parts_outside_of_a_plugin_are_ignored_and_named(tmp_path: Path):
    manifest = {"name": "x", "commands": ["../../out.md", "./more"], "hooks": "/etc/hooks.json"}
    put(tmp_path, ".claude-plugin/plugin.json", json.dumps(manifest))
    put(tmp_path, "more/go.md", "Go.")
    put(tmp_path, "hooks/hooks.json", "[]")
    content = read_folder(tmp_path)
    parts = parts_of(content)
    assert parts.commands == ("more/go.md",)
    told = "\n".join(needs_of(content, parts))
    for said in (
        "../../out.md lies outside",
        "/etc/hooks.json lies outside",
        "hooks/hooks.json is not",
    ):
        assert said in told
