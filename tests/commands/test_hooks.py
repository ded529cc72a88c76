"""/hooks and `ybs hooks`: what runs when, and what is wrong."""

import json

import pytest

from hosts import this_host
from replies import shown
from trusting import put
from ybs.cli import main
from ybs.commands.registry import run_command
from ybs.session.session import Session
from ybs.testing import ScriptedModel

HOOKS = {
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check me"}]}],
    "Stop": [{"from": "plugin", "root": "/p", "hooks": [{"type": "command", "command": "end"}]}],
    "Never": [],
}


@pytest.mark.integration
async def test_they_are_listed_with_what_is_wrong(project, home, capsys):
    async with Session.open(project, host=this_host(), model=ScriptedModel([])) as session:
        assert "There are no hooks" in shown(await run_command(session, "/hooks"))
    assert main(["hooks"]) == 0
    assert "no hooks" in capsys.readouterr().err
    put(home, ".config/ybs/config.json", json.dumps({"hooks": HOOKS}))
    async with Session.open(project, host=this_host(), model=ScriptedModel([])) as session:
        said = shown(await run_command(session, "/hooks"), columns=120)
    for each in (
        "Bash",
        "yours",
        "check me",
        "a plugin's, in the sandbox",
        "2 hooks.",
        "no such event",
    ):
        assert each in said
    assert main(["hooks", "check"]) == 1
    printed = capsys.readouterr()
    assert "check me" in printed.out
    assert "hooks.Never: there is no such event" in printed.err
    assert main(["hooks", "list", "--json"]) == 1
    listed = json.loads(capsys.readouterr().out)
    assert [each["event"] for each in listed["hooks"]] == ["PreToolUse", "Stop"]
