"""In which order turns run, and what becomes of those that fail, are stopped, or are left by a process that was killed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.exc import DBAPIError

from chat_parts import chatting
from hosts import this_host
from ybs.core.errors import YbsError
from ybs.frontends.gateway.channel import ChatPlace, Incoming
from ybs.frontends.gateway.chats import Chats, key_of
from ybs.frontends.gateway.outbox import Outbox
from ybs.frontends.gateway.rates import DailyBudget
from ybs.frontends.gateway.store import GatewayStore, StoreError, inbox, ledger, sqlite_engine
from ybs.frontends.gateway.turns import GIVEN_UP, Turns
from ybs.frontends.serve.sessions import HostedSessions
from ybs.session.options import Options
from ybs.testing import ScriptedModel


class Opening:
    """Stands in for the sessions of chats: none can be opened, and that takes until it is let go on."""

    def __init__(self) -> None:
        self.begun, self.error = list[str](), YbsError("closed")
        self._go, self._changed = asyncio.Semaphore(0), asyncio.Condition()

    async def open(self, key: str) -> Any:
        async with self._changed:
            self.begun.append(key)
            self._changed.notify_all()
        await self._go.acquire()
        raise self.error

    def opened(self, _key: str) -> None:
        """Return that nothing is open."""

    async def let_go(self, key: str) -> None:
        """Leave a chat."""

    async def has_begun(self, count: int) -> list[str]:
        """Wait until so many turns have begun, and return their chats."""
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(lambda: len(self.begun) >= count)
        return self.begun

    def go_on(self, count: int = 1) -> None:
        for _ in range(count):
            self._go.release()


class Chatters:
    """People whose messages become turns."""

    def __init__(self, store: GatewayStore, at_once: int) -> None:
        self.store, self._at_once = store, at_once
        self.begin()

    def begin(self) -> None:
        """Begin as a new process does."""
        self.opening: Any = Opening()
        parts = (self.opening, Outbox(self.store, {}), DailyBudget(self.store, None))
        self.turns = Turns(self.store, *parts, at_once=self._at_once)

    async def write(self, chat: str, number: int) -> str:
        """Have a message become a turn; return the key of its chat."""
        place = ChatPlace("telegram", "bot", "private", chat)
        incoming = Incoming(
            id=f"{chat}{number}", place=place, person=chat, name=chat, at=float(number), is_own=True
        )
        key, body = key_of(place, chat), msgspec.json.encode(incoming)
        values = {"id": incoming.id, "key": key, "body": body, "at": number, "state": "new"}
        await self.store.change(self.store.insert(inbox).values(**values).on_conflict_do_nothing())
        await self.turns.enqueue(incoming, key)
        return key

    async def said(self, count: int) -> dict[str, str]:
        """Wait until the ledger has so many messages; return their texts by the turn."""
        query = select(ledger.c.id, ledger.c.body)
        async with asyncio.timeout(5):
            while len(rows := await self.store.rows(query)) < count:  # noqa: ASYNC110 - a thread writes them
                await asyncio.sleep(0.01)
        return {row.id: msgspec.json.decode(row.body)["plain"] for row in rows}


@asynccontextmanager
async def chatters(folder: Path, at_once: int = 9) -> AsyncGenerator[Chatters]:
    store = GatewayStore(sqlite_engine(folder / "state" / "gateway.db"))
    made = Chatters(store, at_once)
    try:
        yield made
    finally:
        await made.turns.close()
        store.close()


@pytest.mark.integration
async def test_turns_of_a_chat_run_one_after_the_other_and_those_of_others_beside_them(
    tmp_path: Path,
):
    async with chatters(tmp_path) as people:
        first = [await people.write("a", number) for number in (1, 2, 3)]
        other = await people.write("b", 4)
        assert await people.opening.has_begun(2) == [first[0], other]
        assert people.turns.count == 2
        people.opening.go_on(4)
        said = await people.said(4)
        assert [*said] in (
            [f"{id}:answer" for id in order]
            for order in (("a1", "b4", "a2", "a3"), ("b4", "a1", "a2", "a3"))
        )
        assert people.opening.begun.count(first[0]) == 3


@pytest.mark.integration
async def test_a_turn_that_another_worker_began_comes_before_a_new_one(tmp_path: Path):
    async with chatters(tmp_path) as people:
        place = ChatPlace("telegram", "bot", "private", "a")
        begun = Incoming(id="begun", place=place, person="a", name="a", at=9.0, is_own=True)
        key, body = key_of(place, "a"), msgspec.json.encode(begun)
        values = {"id": "begun", "key": key, "body": body, "at": 9.0, "state": "moved", "tries": 1}
        await people.store.change(people.store.insert(inbox).values(**values))
        await people.write("a", 1)  # by the clock it is older
        people.opening.go_on(2)
        assert [*await people.said(2)] == ["begun:answer", "a1:answer"]


@pytest.mark.integration
async def test_no_more_turns_run_at_once_than_allowed(tmp_path: Path):
    async with chatters(tmp_path, at_once=1) as people:
        keys = [await people.write(chat, 1) for chat in "abc"]
        await people.opening.has_begun(1)
        people.opening.go_on()
        await people.said(1)
        assert await people.opening.has_begun(2) == keys[:2]
        assert people.turns.count == 1


@pytest.mark.integration
@pytest.mark.parametrize(
    ("error", "words"),
    [(YbsError("closed"), "That did not work: closed"), (RuntimeError("secret"), "RuntimeError")],
)
async def test_a_turn_that_fails_says_so_and_holds_no_other_up(
    tmp_path: Path, error: Exception, words: str
):
    async with chatters(tmp_path) as people:
        people.opening.error = error
        await people.write("a", 1)
        await people.write("a", 2)
        people.opening.go_on(2)
        said = await people.said(2)
        assert all(words in each and "secret" not in each for each in said.values())
        assert people.turns.count == 0


@pytest.mark.integration
async def test_the_same_event_twice_is_one_turn(tmp_path: Path):
    async with chatters(tmp_path) as people:
        key = await people.write("a", 1)
        await people.write("a", 1)
        people.opening.go_on(2)
        await people.said(1)
        await people.write("a", 1)
        await people.turns.take_up()
        await people.write("b", 2)
        people.opening.go_on()
        await people.said(2)
        assert people.opening.begun.count(key) == 1


@pytest.mark.integration
async def test_what_waits_is_stopped_and_does_not_come_back(tmp_path: Path):
    async with chatters(tmp_path, at_once=1) as people:
        await people.write("a", 1)
        await people.opening.has_begun(1)
        key = await people.write("b", 2)
        assert await people.turns.stop(key)
        assert not await people.turns.stop(key)
        await people.turns.take_up()
        other = await people.write("c", 3)
        people.opening.go_on(2)
        await people.said(2)
        assert [*people.opening.begun][1:] == [other]


@pytest.mark.integration
async def test_turns_that_a_process_left_are_taken_up_in_order_three_times_at_most(tmp_path: Path):
    async with chatters(tmp_path) as people:
        first = await people.write("a", 1)
        await people.write("a", 2)
        for _ in range(3):
            await people.opening.has_begun(1)
            await people.turns.close()  # as a kill would
            people.begin()
            await people.turns.take_up()
        said = await people.said(1)
        assert said == {"a1:answer": GIVEN_UP.format(tries=3)}
        assert await people.opening.has_begun(1) == [first]
        people.opening.go_on()
        assert (await people.said(2))["a2:answer"] == "That did not work: closed"


@pytest.mark.integration
async def test_a_database_that_fails_often_in_one_life_has_no_turn_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ybs.frontends.gateway.turns._PAUSE_SECONDS", 0.01)
    async with chatters(tmp_path) as people:
        broken = DBAPIError("SELECT", (), Exception("gone"))
        people.opening.error = StoreError(create_engine("sqlite://"), broken)
        await people.write("a", 1)
        people.opening.go_on(5)
        await people.opening.has_begun(6)
        people.opening.error = YbsError("closed")
        people.opening.go_on()
        assert await people.said(1) == {"a1:answer": "That did not work: closed"}


class NothingKept:
    """Stands in for a shared database in which no transcript was kept."""

    async def bring(self, path: Path) -> None:
        """Bring none."""

    async def put(self, path: Path) -> None:
        """Keep none."""


def no_tools(_key: str, _place: ChatPlace) -> tuple[()]:
    """Return the tools that a chat has besides: none."""
    return ()


@pytest.mark.integration
async def test_a_turn_whose_transcript_is_lost_begins_anew_however_often_ybs_dies_before_that(
    tmp_path: Path, home: Path
):
    async with chatting(tmp_path, projects={"shop": str(tmp_path)}) as people:
        incoming = people.incoming("hello")
        await people.keep(incoming)
        key = key_of(incoming.place, incoming.person)
        lost = ""
        for _ in range(3):  # each as a new process does
            hosted = HostedSessions(this_host(), tmp_path / "open.json")
            parts: Any = {
                "tools": no_tools,
                "asking": people.asking,
                "kept": NothingKept(),
            }
            options = Options.of(home, {"host": this_host(), "model": ScriptedModel(())})
            async with hosted.hub:
                chats = Chats(people.store, hosted, options, people.settings, **parts)
                assert await chats.enter(incoming.place, incoming.person) == key
                opened = await chats.open(key)
                assert opened.session.journal.name != "session-lost"
                assert opened.lost == lost
                if not lost:
                    lost = "session-lost"
                    await chats.began(key, incoming.id, session=lost, turns=0)
                await chats.close(key)
        (row,) = await people.store.rows(select(inbox.c.session))
        assert row.session == "session-lost"
