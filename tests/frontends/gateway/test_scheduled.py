"""Commands that the gateway runs by the clock."""

import asyncio
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from trusting import put
from ybs.commands.open import SlashCommands
from ybs.frontends.gateway.scheduled import ScheduledRuns
from ybs.learning.schedule import Rhythm, Scheduled, keep, scheduled_in
from ybs.session.options import Options
from ybs.testing import ScriptedModel, call
from ybs.trust.place import place_of
from ybs.trust.project_rules import ProjectRules

pytestmark = pytest.mark.integration

Told = list[tuple[str, str]]


@pytest.fixture
def folder() -> Path:
    return this_host().state_folder / "scheduled"


def due(project: Path, **rest: Any) -> Scheduled:
    """Return a command that was to run a minute ago, and was agreed to before that."""
    at = datetime.now() - timedelta(minutes=1)
    values = {
        "rhythm": Rhythm(days=1, hour=at.hour, minute=at.minute),
        "since": at.timestamp() - 3_600,
        "place": place_of(this_host(), project) if project.exists() else "",
    }
    return Scheduled(**{"name": "notes", "folder": str(project), "mode": "plan", **values, **rest})


async def ran(project: Path, *script: Any, until: int = 1) -> Told:
    """Run what is due, and return what is told."""
    host, told, is_told = this_host(), Told(), asyncio.Event()
    commands = host.config_folder / "commands"
    commands.mkdir(parents=True, exist_ok=True)
    (commands / "notes.md").write_text("Write the notes.")
    options = Options.of(
        project, {"model": ScriptedModel(script), "sandbox": False, "commands": SlashCommands()}
    )

    async def tell(run: str, text: str) -> None:
        told.append((run, text))
        if len(told) >= until:
            is_told.set()

    running = asyncio.create_task(ScheduledRuns(options, tell).run())
    async with asyncio.timeout(10):
        await is_told.wait()
    await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return told


async def test_what_is_due_runs_once_and_its_answer_is_told_and_kept(project: Path, folder: Path):
    keep(folder, due(project))
    ((run, text),) = await ran(project, "All is noted.")
    assert run.startswith("notes:")
    assert "**/notes**" in text
    assert "All is noted." in text
    assert (folder / "notes.md").read_text() == "All is noted."
    (now,) = scheduled_in(folder)
    assert now.begun == now.ended > 0
    assert now.due(datetime.now()) == 0


async def test_it_has_exactly_the_rights_that_were_given(project: Path, folder: Path):
    steps = [call("write_file", path="a.txt", content="x"), "I tried."]
    keep(folder, due(project))
    assert "I tried." in (await ran(project, *steps))[0][1]
    assert not (project / "a.txt").exists()
    keep(folder, due(project, mode="ask", allow=("write_file",)))
    await ran(project, *steps)
    assert (project / "a.txt").read_text() == "x"


async def test_nothing_that_was_allowed_at_a_terminal_is_allowed_by_the_clock(
    project: Path, folder: Path, home: Path
):
    answer = '{"hookSpecificOutput": {"permissionDecision": "allow"}}'
    hook = {"type": "command", "command": f"echo '{answer}'"}
    settings = {
        "safety": {"allow": ["run_shell(touch *)"], "require_confirmation": [], "mode": "bypass"},
        "hooks": {"PreToolUse": [{"hooks": [hook]}]},
    }
    put(home, ".config/ybs/config.json", json.dumps(settings), 0o600)
    rules = ProjectRules(this_host(), project)
    rules.add("allow", "run_shell(touch *)")
    keep(folder, due(project, mode="ask"))
    await ran(project, call("run_shell", command="touch made"), "I tried.")
    assert not (project / "made").exists()


async def test_it_does_not_run_where_incognito_is_wanted(project: Path, folder: Path, home: Path):
    put(home, ".config/ybs/config.json", '{"incognito": {"enabled": true}}', 0o600)
    keep(folder, due(project))
    assert "incognito.enabled" in (await ran(project, "Never said."))[0][1]


async def test_a_run_that_was_cut_short_is_told_and_not_begun_again(project: Path, folder: Path):
    keep(folder, due(project, begun=datetime.now().timestamp()))
    told = await ran(project)
    assert "cut short" in told[0][1]
    (now,) = scheduled_in(folder)
    assert now.begun == now.ended


async def test_what_cannot_run_says_why(project: Path, folder: Path):
    keep(folder, due(project, name="nothing"))
    assert "/nothing" in (await ran(project))[0][1]
    keep(folder, due(project / "gone"))
    told = await ran(project, until=1)
    assert "Not run: what lies at" in told[0][1]


def put_another(project: Path) -> None:
    project.rename(project.with_name("kept"))
    project.mkdir()


async def test_it_runs_in_no_other_folder_that_lies_at_its_path_later(project: Path, folder: Path):
    keep(folder, due(project, mode="ask", allow=("write_file",)))
    put_another(project)
    ((_, text),) = await ran(project, call("write_file", path="a.txt", content="x"), "Done.")
    assert "Not run: what lies at" in text
    assert not (project / "a.txt").exists()
