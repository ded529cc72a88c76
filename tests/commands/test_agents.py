"""/agents: what sub-agents do and have done is listed and shown, and they are stopped, in the midst of a turn too."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from conductor_cast import Cast, delegated, opened
from replies import shown
from ybs.commands.open import SlashCommands
from ybs.commands.registry import runs_beside_a_turn
from ybs.conductor.budget import Used
from ybs.conductor.result import Progress
from ybs.core.events import AssistantSaid, TurnFinished
from ybs.core.messages import Usage
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.testing import call

pytestmark = pytest.mark.integration
TASKS = delegated(
    {"task": "one: who calls it?", "kind": "explore"}, {"task": "two", "kind": "explore"}
)


async def said(session: Session, line: str, *, columns: int = 100) -> str:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return shown(reply, columns=columns)


def test_what_one_used_is_what_its_end_says() -> None:
    progress, used = Progress(), Usage(input_tokens=10, output_tokens=5)
    progress.add(AssistantSaid(content="Found.", usage=used))
    assert progress.spent == Used(steps=1, tokens=15)
    progress.add(TurnFinished(reason="done", steps=3, usage=used + used))
    assert progress.spent == Used(steps=3, tokens=30)


def summarized(file: Path) -> None:
    """Have each sub-agent of a transcript use more than its answers did, as though a summary had been made within its turn."""
    text = file.read_text()
    end = '"steps":1,"usage":{"input_tokens":10,"output_tokens":5}'
    assert text.count(end) == 2
    file.write_text(text.replace(end, '"steps":4,"usage":{"input_tokens":1010,"output_tokens":5}'))


async def test_after_a_resume_the_list_counts_what_the_end_says(project: Path) -> None:
    cast = Cast([TASKS, "done"], **{"one:": ["Found."], "two": ["Nothing calls it."]})
    session, _ = opened(project, cast.model, commands=SlashCommands())
    async with session:
        await session.send("go")
        name, path = session.journal.name, session.journal.path
    summarized(Path(path))
    again, _ = opened(project, cast.model, commands=SlashCommands(), resume=name)
    async with again:
        row = next(
            line for line in (await said(again, "/agents")).splitlines() if "explore-2" in line
        )
    assert row.split()[1:3] == ["4", "1.0k"]


async def test_they_are_listed_watched_and_stopped_while_a_turn_runs(project: Path) -> None:
    waiting = asyncio.Event()

    async def waits(_: Any) -> str:
        waiting.set()
        await asyncio.Event().wait()
        return ""

    cast = Cast(
        [TASKS, "done"],
        **{"one:": [call("list_files", path="."), waits], "two": ["Nothing calls it."]},
    )
    session, _ = opened(project, cast.model, commands=SlashCommands())
    async with session:
        assert "No sub-agent has worked" in await said(session, "/agents")
        assert runs_beside_a_turn("/agents stop explore-1", session)
        turn = asyncio.create_task(session.send("go"))
        await waiting.wait()
        listed = await said(session, "/agents")
        assert "explore-1" in listed
        assert "waits for scripted" in listed
        assert "who calls it?" in listed
        watched = await said(session, "/agents explore-1")
        assert "Task: one: who calls it?" in watched
        assert "List ." in watched
        assert "is no sub-agent 'explore-9'" in await said(session, "/agents explore-9")
        assert "no sub-agent 'explore-9' that works" in await said(
            session, "/agents stop explore-9"
        )
        assert "Stopped explore-1." in await said(session, "/agents stop explore-1")
        await turn
        listed = await said(session, "/agents")
        assert "not done: it was stopped" in listed
        assert "done" in listed.splitlines()[-2]
        assert "No sub-agent works." in await said(session, "/agents stop")
        assert "Nothing calls it." in await said(session, "/agents explore-2")
        name = session.journal.name
    again, _ = opened(project, cast.model, commands=SlashCommands(), resume=name)
    async with again:
        listed = await said(again, "/agents", columns=40)
        assert "explore-2" in listed
        assert "Nothing calls it." in await said(again, "/agents explore-2")
