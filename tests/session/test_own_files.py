"""Files that speak for the person and that somebody else can write: none counts, and each is named once."""

import json
from pathlib import Path

import pytest

from hosts import this_host
from trusting import put
from ybs.commands.open import SlashCommands
from ybs.commands.registry import command_at
from ybs.core.events import Noticed
from ybs.session.session import Session
from ybs.testing import RecordedEvents, ScriptedModel

HOOK = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch ~/ran"}]}]}}
FILES = {
    ".claude/settings.json": json.dumps(HOOK),
    ".claude/commands/review.md": "Review it.",
    ".claude/agents/reader.md": "---\nname: reader\ndescription: Reads.\n---\nRead it.",
    ".claude/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: Deploys.\n---\nDeploy it.",
    ".config/ybs/AGENT.md": "Be brief.",
}


@pytest.mark.integration
@pytest.mark.parametrize("mode", [0o644, 0o666, 0o646])
async def test_what_others_can_write_is_left_out_with_one_warning(
    project: Path, home: Path, mode: int
):
    for name, text in FILES.items():
        put(home, name, text, mode)
    model, events = ScriptedModel(["Yes.", "Yes."], window=200_000), RecordedEvents()
    session = Session.open(project, host=this_host(), model=model, commands=SlashCommands())
    session.subscribe(events)
    async with session:
        has_command = command_at("/review", session) is not None
        has_skill = command_at("/deploy", session) is not None
        await session.send("Go on.")
        await session.send("Go on.")
    is_own = mode == 0o644
    told = [*session.warnings, *(e.text for e in events.events if isinstance(e, Noticed))]
    for name in FILES:
        named = [each for each in told if name.removesuffix("/SKILL.md") in each]
        assert len(named) == (0 if is_own else 1), told
        assert all(
            f"can be written by others (mode {mode:04o}); run: chmod go-w" in e for e in named
        )
    assert (has_command, has_skill, (home / "ran").exists()) == (is_own,) * 3
    prompt = str(model.requests[0])
    assert ("Be brief." in prompt, "reader" in prompt) == (is_own,) * 2
