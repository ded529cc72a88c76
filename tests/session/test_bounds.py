"""What was made stricter in a session bounds its copies."""

import json
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from trusting import put
from ybs.commands.open import SlashCommands
from ybs.commands.registry import run_command
from ybs.session.bounds import in_force
from ybs.session.session import Session
from ybs.testing import ScriptedModel

SAFETY: dict[str, Any] = {"deny": ["delete_file"], "sandbox_network": True}
PROFILES: dict[str, Any] = {
    "alike": {},
    "other": {"safety": {"mode": "auto", "allow": ["read_file"], "deny": []}},
}


@pytest.fixture
def settings(home: Path) -> None:
    config = {"safety": SAFETY, "profiles": PROFILES}
    put(home, ".config/ybs/config.json", json.dumps(config), 0o600)


async def stricter(project: Path) -> Session:
    """Return a session in which the person has made stricter what it began with."""
    session = Session.open(
        project,
        host=this_host(),
        model=ScriptedModel(["Yes."] * 2),
        commands=SlashCommands(),
        sandbox=False,
        allow=["run_shell(touch *)"],
    )
    await session.send("hello")
    lines = ("permissions remove 1", "permissions deny write_file", "mode ask edits")
    for line in (*lines, "sandbox on", "sandbox network off"):
        assert not (await run_command(session, f"/{line}")).is_error
    return session


@pytest.mark.integration
@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("line", ["/fork", "/profile alike"])
async def test_a_copy_keeps_what_was_made_stricter(project: Path, line: str):
    async with await stricter(project) as session:
        before, environment = in_force(session.environment), session.environment
        assert before.allow == ()
        assert before.sandbox_enabled
        assert not (await run_command(session, line)).is_error
        assert session.environment is not environment
        after = in_force(session.environment)
        assert {*after.deny} == {*before.deny} == {"write_file", "delete_file"}
        assert (after.allow, after.sandbox_enabled, after.sandbox_network) == ((), True, False)
        assert (after.mode, after.ask_before_edits) == ("ask", True)


@pytest.mark.integration
@pytest.mark.usefixtures("settings")
async def test_another_profile_counts_where_it_says_something_else(project: Path):
    async with await stricter(project) as session:
        await run_command(session, "/profile other")
        after = in_force(session.environment)
        assert (after.mode, after.allow, after.deny) == ("auto", ("read_file",), ("write_file",))
        assert (after.sandbox_enabled, after.sandbox_network) == (True, False)


@pytest.mark.usefixtures("settings")
async def test_a_new_conversation_begins_as_the_session_did(project: Path):
    async with await stricter(project) as session:
        await run_command(session, "/new")
        after = in_force(session.environment)
        assert (after.allow, after.deny) == (("run_shell(touch *)",), ("delete_file",))
        assert not after.sandbox_enabled
