"""/agents: what sub-agents do and have done is listed and shown, and they are stopped, in the midst of a turn too."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from conductor_cast import Cast, delegated, opened
from replies import shown
from ybs.commands.open import SlashCommands
from ybs.commands.registry import runs_beside_a_turn
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
        assert 'list_files {"path":"."}' in watched
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
