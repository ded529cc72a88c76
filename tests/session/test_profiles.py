"""Profiles: named sets of settings, tools, skills and a prompt, at the start and in a running chat."""

import json
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from tools.skills.folders import OWN, skill
from trusting import give_trust, put
from ybs.commands.open import SlashCommands
from ybs.commands.registry import run_command
from ybs.core.errors import ConfigError
from ybs.session.session import Session
from ybs.testing import ScriptedModel

PROFILES: dict[str, Any] = {
    "review": {
        "safety": {"mode": "plan"},
        "tools": {"builtin": {"write_file": {"enabled": False}}},
        "skills": {"only": ["good"]},
        "context": {"system_prompt_file": "~/prompts/review.md"},
    },
    "odd": {"safety": {"mode": "nonsense"}},
}


def opened(project: Path, answers: int, **options: Any) -> tuple[Session, ScriptedModel]:
    model = ScriptedModel(["Yes."] * answers)
    session = Session.open(project, host=this_host(), model=model, commands=SlashCommands(), **options)  # fmt: skip
    return session, model


@pytest.fixture
def profiles(home: Path) -> None:
    put(home, ".config/ybs/config.json", json.dumps({"profiles": PROFILES}), 0o600)
    put(home, "prompts/review.md", "You review.\n")
    for name in ("good", "other"):
        skill(home / OWN, name)


def check_review(session: Session, model: ScriptedModel) -> None:
    request = model.requests[-1]
    tools = {each.name: each.description for each in request.tools}
    assert request.system == "You review."
    assert "write_file" not in tools
    assert tools["skill"].endswith("\n- good: Does it.")
    assert session.mode == "plan"


@pytest.mark.usefixtures("profiles")
async def test_one_is_chosen_at_the_start(project: Path):
    session, model = opened(project, 1, profile="review")
    async with session:
        await session.send("hello")
        check_review(session, model)


@pytest.mark.integration
@pytest.mark.usefixtures("profiles")
async def test_one_is_chosen_in_a_running_chat(project: Path):
    session, model = opened(project, 3)
    async with session:
        reply = await run_command(session, "/profile")
        assert reply.menu is not None
        assert [(each.label, each.is_current) for each in reply.menu.items] == [("review", False), ("odd", False)]  # fmt: skip
        assert reply.menu.items[0].detail == "safety, tools, skills, context"
        await session.send("first words")
        before = session.journal.name
        reply = await run_command(session, "/profile review")
        assert reply.text == (
            f"Profile review: in-process scripted, mode plan.\nYou continue in a copy; {before} stays as it is."
        )
        await session.send("hello")
        check_review(session, model)
        assert "first words" in str(model.requests[-1].messages)
        reply = await run_command(session, "/profile")
        assert reply.menu is not None
        assert [each.is_current for each in reply.menu.items] == [True, False]
        unknown = await run_command(session, "/profile fast")
        assert unknown.is_error
        assert "there is no such profile" in unknown.text
        assert session.loaded.profile == "review"


async def test_without_any_that_is_said(project: Path):
    session, _ = opened(project, 0)
    async with session:
        assert (await run_command(session, "/profile")).text.startswith("There are no profiles.")


@pytest.mark.usefixtures("profiles")
async def test_a_conversation_that_is_not_saved_is_not_lost(project: Path):
    session, _ = opened(project, 1, incognito=True)
    async with session:
        await session.send("hello")
        reply = await run_command(session, "/profile review")
        assert reply.is_error
        assert "is not saved" in reply.text
        assert session.loaded.profile == ""


@pytest.mark.integration
async def test_a_trusted_project_says_its_prompt_and_skills_and_has_no_profiles(project: Path):
    theirs: dict[str, Any] = {
        "safety": {"mode": "bypass", "blocked_commands": ["curl"]},
        "llm": {"api_key": "k", "temperature": 0.5},
        "context": {"system_prompt_file": "./prompts/own.md"},
        "skills": {"only": ["x"], "search_paths": ["/"]},
    }
    put(project, ".ybs.json", json.dumps({**theirs, "profiles": {"theirs": theirs}}))
    put(project, "prompts/own.md", "Do it our way.")
    give_trust(project)
    with pytest.raises(ConfigError, match="there is no such profile"):
        opened(project, 0, profile="theirs")
    session, model = opened(project, 1)
    async with session:
        await session.send("hello")
        config = session.config
        assert (session.mode, config.llm.api_key, config.llm.temperature) == ("ask", None, 0.5)
        assert config.skills.only == ("x",)
        assert "/" not in config.skills.search_paths
        assert "curl" in config.safety.blocked_commands
        assert model.requests[-1].system == "Do it our way."
        warnings = "\n".join(session.warnings)
        assert "ignored, because a project's file may not set it: " in warnings
        for key in ("safety.mode", "llm.api_key", "skills.search_paths", "profiles"):
            assert key in warnings


@pytest.mark.integration
def test_the_prompt_of_a_trusted_project_is_no_file_that_the_person_blocks(project, home):
    put(home, ".ybs.json", '{"safety": {"sandbox_blocked_paths": ["./private"]}}')
    put(project, "private/key.md", "words")
    for named in ("private/key.md", "./private/key.md", "~/.ssh/id", "/etc/hosts"):
        put(project, ".ybs.json", json.dumps({"context": {"system_prompt_file": named}}))
        give_trust(project)
        with pytest.raises(ConfigError, match=f"{named} is not a file of this project, or is"):
            opened(project, 0)


@pytest.mark.usefixtures("profiles")
async def test_another_profile_trusts_no_more_than_the_run_began_with(project: Path):
    """A command of the model has written it since."""
    session, _ = opened(project, 0, trust=True)
    async with session:
        assert session.environment.trusts_project
        entry = {"mcpServers": {"s": {"command": "./srv"}}}
        put(project, ".mcp.json", json.dumps(entry))
        await run_command(session, "/profile review")
        assert session.loaded.profile == "review"
        assert not session.config.mcpServers
        assert not session.environment.trusts_project
