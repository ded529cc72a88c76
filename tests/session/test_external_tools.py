"""The person's own tools in whole sessions: a model calls them, `/reload-tools` finds new ones, `ybs tools` lists them."""

import json
import sys
from pathlib import Path

import pytest

from hosts import this_host
from tools.external.programs import FOLDER, install
from trusting import put
from ybs.commands.registry import run_command
from ybs.core.events import ToolFinished
from ybs.session.session import Session
from ybs.testing import ScriptedModel, call

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]


async def test_a_model_calls_one_that_was_put_there_in_mid_session(project: Path, home: Path):
    model = ScriptedModel(["Nothing yet.", call("greet", who="you"), "Done."])
    async with Session.open(project, host=this_host(), model=model) as session:
        finished: list[ToolFinished] = []
        session.subscribe(lambda e: finished.append(e.event) if isinstance(e.event, ToolFinished) else None)  # fmt: skip
        await session.send("hello")
        assert "greet" not in [each.name for each in model.requests[-1].tools]
        install(home, "greet", "cat", {"description": "Greet."})
        put(home, f"{FOLDER}/broken", "#!/bin/sh\nexit 3", 0o755)
        reply = await run_command(session, "/reload-tools")
        assert reply.tables[0].rows[0].cells[:2] == ("greet", "Greet.")
        assert reply.notes == (
            "1 external tool.",
            "~/.config/ybs/tools/broken cannot be used: it answers --schema with exit code 3",
        )
        await session.send("greet me")
        assert "greet" in [each.name for each in model.requests[-1].tools]
        assert [(each.result.name, each.result.output) for each in finished] == [
            ("greet", '{"who":"you"}')
        ]


async def test_where_there_are_none_that_is_said(project: Path):
    async with Session.open(project, host=this_host(), model=ScriptedModel([])) as session:
        reply = await run_command(session, "/reload-tools")
        assert reply.notes[0].startswith("No external tools in ~/.config/ybs/tools, ")


def test_the_settings_name_one_too(project: Path, home: Path, capsys: pytest.CaptureFixture[str]):
    from ybs.frontends.subcommands.tools import call_tool, check_tools, list_tools
    from ybs.session.options import Options

    put(home, "bin/say", '#!/bin/sh\necho "$1"\n', 0o755)
    entry = {
        "name": "say",
        "path": "~/bin/say",
        "description": "Say it.",
        "parameters": {"word": {"type": "string", "required": True}},
    }
    put(home, ".config/ybs/config.json", json.dumps({"tools": {"external": [entry]}}), 0o600)
    options = Options(host=this_host(), folder=project)
    assert list_tools(options, is_json=True) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["source"] for each in listed if each["name"] == "say"] == ["~/bin/say"]
    assert call_tool(options, "say", '{"word": "yes"}', is_yes=False, confirm=None) == 0
    assert json.loads(capsys.readouterr().out)["output"] == '{"word":"yes"}'
    assert call_tool(options, "say", "{}", is_yes=False, confirm=None) == 2
    capsys.readouterr()
    put(home, f"{FOLDER}/broken", "#!/bin/sh\nexit 3", 0o755)
    assert check_tools(options, is_json=False) == 1
    out, errors = capsys.readouterr()
    assert "ok  say  ~/bin/say  only reads the project" in out
    assert "tools/broken: it answers --schema with exit code 3" in errors


async def test_fifty_of_them_cost_a_request_little(project: Path, home: Path):
    model = ScriptedModel(["Yes.", call("find_tool", query="number 33"), call("tool_33", path="x"), "Done."])  # fmt: skip
    schema = {
        "path": {"type": "string", "required": True, "description": "relative to the project"}
    }
    for number in range(50):
        described = {"description": f"Does the work of number {number}.", "parameters": schema}
        install(home, f"tool_{number}", "cat", described)
    async with Session.open(project, host=this_host(), model=model) as session:
        await session.environment.external_tools.load(60)
        await session.send("hello")
        own = len(model.requests[-1].tools) - 1
        sent = sum(len(each.name + each.description) + len(bytes(each.parameters)) for each in model.requests[-1].tools[own:])  # fmt: skip
        assert [each.name for each in model.requests[-1].tools[own:]] == ["find_tool"]
        assert sent / 3 < 1_500  # characters of a token, at worst
        outcome = await session.send("do it")
        assert outcome.finished.reason == "done"
        assert model.requests[-1].messages[-1].output == '{"path":"x"}'  # pyright: ignore[reportAttributeAccessIssue]
