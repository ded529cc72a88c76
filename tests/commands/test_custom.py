"""Commands of the person's own: Markdown files that are sent with their arguments."""

from pathlib import Path

import pytest

from hosts import this_host
from trusting import give_trust, put
from ybs.commands.open import SlashCommands
from ybs.commands.registry import command_at, commands_of, run_command, runs_beside_a_turn
from ybs.core.messages import UserMessage
from ybs.session.reply import Outcome, Reply
from ybs.session.session import Session
from ybs.testing import ScriptedModel

OWN = ".config/ybs/commands"


def opened(project: Path, answers: int = 1) -> tuple[Session, ScriptedModel]:
    model = ScriptedModel(["Yes."] * answers)
    return Session.open(project, host=this_host(), model=model, commands=SlashCommands()), model


def last_words(model: ScriptedModel) -> str:
    said = [each for each in model.requests[-1].messages if isinstance(each, UserMessage)]
    return said[-1].words


async def test_one_is_sent_with_its_arguments(project: Path, home: Path):
    put(home, f"{OWN}/review.md", "---\ndescription: \"Review it\"\nargument-hint: FILE\n---\nReview $1 for $2.\nAll: $ARGUMENTS $10")  # fmt: skip
    session, model = opened(project)
    async with session:
        outcome = await session.handle("/review cart.py errors now")
        assert isinstance(outcome, Outcome)
        assert "Review cart.py for errors.\nAll: cart.py errors now $10" in last_words(model)
        command = command_at("/review", session)
        assert command is not None
        assert (command.summary, command.arguments) == ("Review it", "FILE")
        assert not runs_beside_a_turn("/review x", session)
        shown = await run_command(session, "/help")
        assert "/review FILE" in [row.cells[0] for table in shown.tables for row in table.rows]


async def test_arguments_without_a_place_stand_behind(project: Path, home: Path):
    put(home, ".claude/commands/sub/explain.md", "# Explain\n\nExplain this.")
    session, model = opened(project, 2)
    async with session:
        await session.handle("/explain the cart")
        assert last_words(model).endswith("Explain this.\n\nthe cart")
        await session.handle("/expl")  # the beginning of its name is enough
        assert last_words(model).endswith("Explain this.")
        assert [each.summary for each in commands_of(session) if each.names == ("explain",)] == [
            "Explain"
        ]


@pytest.mark.integration
async def test_files_and_commands_in_the_words_are_put_in(project: Path, home: Path):
    put(project, "a.txt", "content of a")
    put(home, f"{OWN}/look.md", "See @a.txt and !`echo ran; touch b.txt`.")
    session, model = opened(project)
    async with session:
        if session.environment.sandbox.backend.name == "none":
            pytest.skip(f"NOT TESTED: {session.environment.sandbox.backend.why}")
        await session.handle("/look")
        assert "content of a" in str(model.requests[-1].messages[-1])
        assert "Output:\nran" in last_words(model)


@pytest.mark.integration
async def test_those_of_a_project_wait_for_trust_and_none_takes_a_name_away(project: Path, home: Path):  # fmt: skip
    put(project, ".ybs/commands/deploy.md", "of the project")
    put(project, ".claude/commands/probe.md", "of the project too")
    put(home, f"{OWN}/deploy.md", "my own")
    put(home, f"{OWN}/undo.md", "not this")
    put(home, f"{OWN}/no name.txt", "no")
    session, model = opened(project, 2)
    async with session:
        reply = await session.handle("/probe")
        assert isinstance(reply, Reply)
        assert reply.text.startswith("Unknown command: /probe.")
        undone = await session.handle("/undo")
        assert isinstance(undone, Reply)
    give_trust(project)
    session, model = opened(project, 2)
    async with session:
        await session.handle("/probe")
        assert last_words(model).endswith("of the project too")
        await session.handle("/deploy")
        assert last_words(model).endswith("my own")


async def test_a_new_one_is_there_after_a_reload(project: Path, home: Path):
    session, model = opened(project)
    async with session:
        assert command_at("/later", session) is None
        put(home, f"{OWN}/later.md", "Do it later.")
        await run_command(session, "/reload-tools")
        await session.handle("/later")
        assert last_words(model).endswith("Do it later.")
