"""A group that the platform has given another id goes on there."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from chat_parts import GUEST, OWNER, STRANGER, Chatting, chatting
from hosts import this_host
from ybs.frontends.gateway.channel import ChatPlace
from ybs.frontends.gateway.chats import Chats, key_of
from ybs.frontends.gateway.outbox import Outbox
from ybs.frontends.gateway.store import chats, inbox, ledger
from ybs.frontends.serve.sessions import HostedSessions
from ybs.session.options import Options

pytestmark = pytest.mark.integration

OLD, NEW, OTHER = "-100", "-1009", "-1001"


def chats_of(chat: Chatting, folder: Path) -> Chats:
    options = Options.of(folder, {"host": this_host()})
    hosted = HostedSessions(this_host(), folder / "open.json")
    parts: Any = {"tools": lambda *_: (), "asking": chat.asking}
    return Chats(chat.store, hosted, options, chat.settings, **parts)


async def test_sessions_projects_and_what_waits_move_along(tmp_path: Path) -> None:
    async with chatting(tmp_path, projects={"shop": str(tmp_path)}) as chat:
        moving = chats_of(chat, tmp_path)
        old, other = chat.place(GUEST, OLD), chat.place(GUEST, OTHER)
        for place in (old, other):
            await moving.enter(place, GUEST)
            await moving.bind(key_of(place, GUEST), "shop")
            await moving.noted(key_of(place, GUEST), session=f"session of {place.chat}")
            await Outbox(chat.store, {}).post(place, "hello", id=place.chat)
        await moving.enter(chat.place(GUEST, NEW), GUEST)
        waiting = chat.incoming("later", GUEST, OLD)
        await chat.keep(waiting)
        await chat.store.change(inbox.update().values(key=key_of(old, GUEST), state="waiting"))
        for _ in range(2):  # a kill may have come between
            await moving.move(old, NEW)
        rows = {row.key: row for row in await chat.store.rows(select(chats))}
        there = key_of(chat.place(GUEST, NEW), GUEST)
        assert rows.keys() == {there, key_of(other, GUEST)}
        assert (rows[there].project, rows[there].session) == ("shop", f"session of {OLD}")
        assert [row.key for row in await chat.store.rows(select(inbox))] == [there]
        sent = await chat.store.rows(select(ledger.c.place).order_by(ledger.c.number))
        places = [msgspec.json.decode(row.place, type=ChatPlace).chat for row in sent]
        assert places == [NEW, OTHER]


async def test_who_may_speak_in_the_group_may_speak_there_and_nowhere_else(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        assert await chat.write("/help", STRANGER, NEW) == ""
        await chats_of(chat, tmp_path).move(chat.place(OWNER, OLD), NEW)
        assert "/new" in await chat.write("/help", STRANGER, NEW)
        assert await chat.write("/help", STRANGER, OTHER) == ""


async def test_only_the_platform_says_that_a_group_has_moved(tmp_path: Path) -> None:
    async with chatting(tmp_path) as chat:
        moved = list[tuple[ChatPlace, str]]()

        async def move(place: ChatPlace, to: str) -> None:
            moved.append((place, to))

        chat.chats.move = move
        await chat.write("moved_to -1009", STRANGER, OLD)
        assert moved == []
        incoming = chat.incoming("", STRANGER, OLD, moved_to=NEW, is_addressed=False)
        await chat.take(incoming)
        assert moved == [(incoming.place, NEW)]
        assert await chat.state(incoming) == "done"
