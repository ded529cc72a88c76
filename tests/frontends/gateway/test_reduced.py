"""What a session of a chat may do: less than one at a terminal, whatever the settings allow there."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from chat_parts import GUEST, OWNER, Ledger
from hosts import this_host
from ybs.config.schema import GatewaySettings
from ybs.frontends.gateway.asking import ChatQuestions
from ybs.frontends.gateway.channel import ChatPlace, Incoming
from ybs.frontends.gateway.chats import Chats
from ybs.frontends.gateway.people import ChannelPolicy, People
from ybs.frontends.gateway.store import GatewayStore, sqlite_engine
from ybs.frontends.serve.sessions import HostedSessions
from ybs.session.options import Options
from ybs.session.questions import NO
from ybs.session.session import Session
from ybs.testing import ScriptedModel, call

pytestmark = pytest.mark.integration
#: What a person has allowed themselves.
LAX = {
    "mode": "bypass",
    "allow": ["run_shell(touch *)", "write_file(*)"],
    "outside_sandbox": ["touch *"],
    "sandbox_network": True,
}


@asynccontextmanager
async def chats_of(
    tmp_path: Path,
    home: Path,
    *script: Any,
    who: str = GUEST,
    has_sandbox: bool = True,
    **options: Any,
) -> AsyncGenerator[tuple[Chats, str]]:
    """Return the chats of a gateway, and the key of a guest's private one."""
    file = home / ".config" / "ybs" / "config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        json.dumps({"version": "1.0", "safety": {**LAX, "sandbox_enabled": has_sandbox}})
    )
    given = {"host": this_host(), "model": ScriptedModel(script), "allow": ("run_shell(touch *)",)}
    store = GatewayStore(sqlite_engine(tmp_path / "state" / "gateway.db"))
    people = People(store, {"telegram": ChannelPolicy(owners=frozenset((OWNER,)))})
    place = ChatPlace("telegram", "bot", "private", who)
    await people.admit(Incoming(id="1", place=place, person=who, name="", at=0.0))
    try:
        hosted = HostedSessions(this_host(), tmp_path / "open.json")
        async with hosted.hub:
            chats = Chats(
                store,
                hosted,
                Options.of(home, {**given, **options}),
                GatewaySettings(),
                tools=lambda _key, _place: (),
                asking=ChatQuestions(Ledger(), people),
            )
            key = await chats.enter(place, who)
            yield chats, key
            await chats.close(key)
    finally:
        store.close()


@asynccontextmanager
async def chat(tmp_path: Path, home: Path, *script: Any, **options: Any) -> AsyncGenerator[Session]:
    """Open the session of a guest's private chat."""
    async with chats_of(tmp_path, home, *script, **options) as (chats, key):
        yield await chats.session(key)


async def test_nothing_that_was_allowed_at_a_terminal_is_allowed_in_a_chat(
    tmp_path: Path, home: Path
):
    async with chat(tmp_path, home, mode="bypass") as session:
        assert session.mode == "ask"
        safety = session.config.safety
        assert (safety.allow, safety.outside_sandbox, safety.sandbox_network) == ((), (), False)
        assert session.folder.parent.name == "ybs-chats"


@pytest.mark.parametrize(
    ("mode", "anew"), [("plan", "plan"), ("deny", "deny"), ("accept-edits", "ask"), ("auto", "ask")]
)
async def test_a_chat_keeps_the_mode_that_was_chosen_there(
    tmp_path: Path, home: Path, mode: str, anew: str
):
    async with chats_of(tmp_path, home, who=OWNER) as (chats, key):
        await chats.session(key)
        await chats.noted(key, mode=mode)
        await chats.close_idle(0)
        assert chats.opened(key) is None
        assert (await chats.session(key)).mode == mode
        await chats.begin_anew(key)
        assert (await chats.session(key)).mode == anew
    async with chats_of(tmp_path, home, who=OWNER) as (chats, key):
        assert (await chats.session(key)).mode == anew
        await chats.noted(key, mode=mode)
        await chats.bind(key, "")
        assert (await chats.session(key)).mode == anew


async def test_a_command_that_needs_no_question_at_a_terminal_is_asked_about_in_a_chat(
    tmp_path: Path, home: Path
):
    async with chat(tmp_path, home, call("run_shell", command="touch made"), "done") as session:
        asked = asyncio.Event()
        session.subscribe(lambda _: asked.set() if session.questions.open else None, follows=True)
        turn = asyncio.create_task(session.send("go"))
        await asyncio.wait_for(asked.wait(), 10)
        session.questions.answer(session.questions.open[0].id, NO)
        await turn
        assert not (session.folder / "made").exists()


async def test_without_a_sandbox_a_chat_has_no_tool_that_runs_programs(tmp_path: Path, home: Path):
    script = (call("run_shell", command="id"), "done")
    async with chat(tmp_path, home, *script, has_sandbox=False) as session:
        assert session.environment.sandbox.state == "off"
        await session.send("go")
        assert "uid=" not in str(session.conversation.messages)


@pytest.mark.parametrize("who", [OWNER, GUEST])
async def test_what_the_owner_wrote_about_themselves_is_told_in_their_own_chat_alone(
    tmp_path: Path, home: Path, who: str
):
    own = home / ".config" / "ybs"
    (own / "memories").mkdir(parents=True)
    (own / "memories" / "2026-11-01-tea.md").write_text("# Likes Barry's tea\n")
    (own / "HUMAN.md").write_text("I am Ada, born in Thurles.")
    async with chat(tmp_path, home, "done", who=who) as session:
        (session.folder / "AGENTS.md").write_text("Write in Irish.")
        await session.send("hello")
        system = session.conversation.system
        assert "Write in Irish." in system
        assert [word in system for word in ("Thurles", "Barry")] == [who == OWNER] * 2
