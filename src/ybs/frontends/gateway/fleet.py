"""Turns shared by the gateways of one database: which of them a chat is worked for by, and what they tell each other, in rows.

The leader has the channels, lets people in and delivers messages. It gives each chat to a worker, itself among them, and hands that one
all that comes from the chat: words, commands, answers, presses of buttons. The worker has the session, its turns and its questions, and
puts what is to be said into the ledger. It keeps the chat as long as it has the session open. When a worker is gone, the leader gives its
chats to others, who go on with the turns from the transcripts.
"""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, delete, func, insert, select, update

from ybs.core.decoding import from_json
from ybs.frontends.gateway.channel import ChatPlace, Incoming, MaybeSentError, chat_of
from ybs.frontends.gateway.lease import GONE, DatabaseLease
from ybs.frontends.gateway.store import IN_ORDER, GatewayStore, chats, inbox, questions, workers

if TYPE_CHECKING:
    from sqlalchemy import Row

    from ybs.frontends.gateway.outbox import Outbox

#: How often a gateway looks for rows that others have written for it.
LOOK_SECONDS: Final = 0.1
_TYPING_SECONDS: Final = 4.0
#: So long a worker waits for the leader to begin to show something, and to end.
_TAKEN_SECONDS, _SHOWN_SECONDS = 1.0, 10.0
_TURNS: Final = ("waiting", "moved")
_gone: Final = inbox.c.worker.not_in(select(workers.c.number))


class Fleet:
    """What one gateway knows of the others: those of the same protocol take each other's chats."""

    def __init__(self, store: GatewayStore, lease: DatabaseLease) -> None:
        self._store, self._lease = store, lease
        self.number = lease.number

    @property
    def leads(self) -> bool:
        """Whether this gateway has the channels."""
        return self._lease.leads

    @property
    def is_old(self) -> bool:
        """Whether this gateway is to end, since the leader is of another version."""
        return self._lease.is_old

    async def projects(self) -> set[str]:
        """Return the names of the projects that some gateway has."""
        rows = await self._store.rows(select(workers.c.projects))
        return {name for row in rows for name in json.loads(row.projects)}

    # The leader

    async def hand(
        self, incoming: Incoming, key: str, *, role: str, wanted: int, waits: bool
    ) -> int:
        """Give an event to a worker; return its number, 0 where none can take it yet.

        It is the one that is `wanted` (of a button or a question), or the one that has the chat. `waits`: this is for a worker that has
        the chat's project; a command is answered here where there is none. Raises StoreError.
        """

        def work(connection: Connection) -> int:
            if wanted in connection.scalars(select(workers.c.number)).all():
                worker = wanted
            else:
                worker = self._worker_of(connection, key)
                worker = max(worker, 0) if waits else abs(worker) or self.number
            if worker:
                is_new = (inbox.c.id == incoming.id) & (inbox.c.state == "new")
                values = {"state": "given", "worker": worker, "role": role}
                connection.execute(update(inbox).where(is_new).values(**values))
            return worker

        return await self._store.do(work)

    def _worker_of(self, connection: Connection, key: str) -> int:
        """Return the worker that has a chat, or give it, with its turns, to the one with the fewest that has its project.

        0: there is none; below 0: it is with one of another version, which lets go of it when its turns have ended.
        """
        is_it = chats.c.key == key
        row = connection.execute(select(chats).where(is_it).with_for_update()).first()
        if row is None:
            connection.execute(insert(chats).values(key=key, used_at=time.time()))
        has = func.count(chats.c.key)
        counted = select(workers, has).outerjoin(chats, chats.c.worker == workers.c.number)
        found = connection.execute(counted.group_by(workers.c.number).order_by(has)).all()
        if row is not None and (its := [each for each in found if each.number == row.worker]):
            return row.worker if its[0].protocol == self._lease.protocol else -row.worker
        project = row.project if row is not None else ""
        for each in found:
            is_able = not project or project in json.loads(each.projects)
            if is_able and each.protocol == self._lease.protocol:
                connection.execute(update(chats).where(is_it).values(worker=each.number))
                is_its = (inbox.c.key == key) & inbox.c.state.in_(_TURNS)
                moved = {"state": "moved", "worker": each.number}
                connection.execute(update(inbox).where(is_its).values(**moved))
                return each.number
        return 0

    async def reap(self) -> None:
        """Strike out the workers that are dead, and give what they had to others. Raises StoreError."""
        await self._store.do(self._reap)

    def _reap(self, connection: Connection) -> None:
        for number in connection.scalars(GONE).all():
            connection.execute(delete(workers).where(workers.c.number == number))
        is_given, is_turn = inbox.c.state == "given", inbox.c.state.in_(_TURNS)
        connection.execute(update(inbox).where(is_given & _gone).values(state="new", worker=0))
        connection.execute(update(inbox).where(is_turn & _gone).values(state="moved", worker=0))
        for table in (chats, questions):
            is_lost = (table.c.worker != 0) & table.c.worker.not_in(select(workers.c.number))
            lost = delete(questions) if table is questions else update(chats).values(worker=0)
            connection.execute(lost.where(is_lost))
        is_free = is_turn & (inbox.c.worker == 0)
        for key in connection.scalars(select(inbox.c.key).where(is_free).distinct()).all():
            self._worker_of(connection, key)

    async def show(self, outbox: "Outbox", do: Callable[[Coroutine[Any, Any, Any]], None]) -> None:
        """Show what there is to show of turns on other machines, until cancelled; `do` runs what need not be waited for."""
        typed = 0.0
        await self._store.change(update(inbox).where(inbox.c.showing == 1).values(showing=0))
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            is_elsewhere = inbox.c.worker.not_in((0, self.number)) & (inbox.c.tries > 0)
            is_running = (inbox.c.state == "waiting") & (is_elsewhere | (inbox.c.live != ""))
            rows = await self._store.rows(select(inbox).where(is_running))
            for row in rows:
                if row.live:
                    do(self._show(outbox, row))
            if time.monotonic() - typed > _TYPING_SECONDS:
                typed = time.monotonic()
                for row in rows:
                    do(outbox.show_typing(_place_of(row)))

    async def _show(self, outbox: "Outbox", row: "Row[Any]") -> None:
        is_it = inbox.c.id == row.id
        taken = update(inbox).where(is_it & (inbox.c.live == row.live)).values(live="", showing=1)
        if not await self._store.change(taken):
            return
        now: dict[str, Any] = {"showing": 0}
        try:
            now["message"] = await outbox.progress(_place_of(row), row.live, message=row.message)
        except MaybeSentError:
            now["showing"] = 2
        await self._store.change(update(inbox).where(is_it).values(**now))

    # A worker

    async def given(self) -> "list[Row[Any]]":
        """Return the events that this gateway has to decide about, and the turns that it has to take up, in order."""
        is_mine = (inbox.c.worker == self.number) & inbox.c.state.in_(("given", "moved"))
        return await self._store.rows(select(inbox).where(is_mine).order_by(*IN_ORDER))

    async def let_go(self, key: str) -> None:
        """Have a chat be anybody's whose session is closed here, unless something of it is to be done here."""

        def work(connection: Connection) -> None:
            is_it = (chats.c.key == key) & (chats.c.worker == self.number)
            connection.execute(select(chats.c.key).where(is_it).with_for_update())
            states = inbox.c.state.in_(("given", *_TURNS))
            to_do = (inbox.c.key == key) & (inbox.c.worker == self.number) & states
            has_more = select(inbox.c.id).where(to_do).exists()
            connection.execute(update(chats).where(is_it & ~has_more).values(worker=0))

        await self._store.do(work)

    async def note_question(self, id: str, place: ChatPlace, title: str) -> None:
        """Write down that a question of this gateway stands in a chat."""
        values = {"id": id, "chat": chat_of(place), "worker": self.number, "title": title}
        await self._store.change(insert(questions).values(**values))

    async def forget_question(self, id: str) -> None:
        """Forget a question that is no longer open."""
        await self._store.change(delete(questions).where(questions.c.id == id))

    async def questions_in(self, place: ChatPlace) -> "list[Row[Any]]":
        """Return the questions that stand in a chat."""
        is_here = questions.c.chat == chat_of(place)
        return await self._store.rows(select(questions).where(is_here))

    async def chats(self) -> set[str]:
        """Return the keys of the chats that this gateway has."""
        rows = await self._store.rows(select(chats.c.key).where(chats.c.worker == self.number))
        return {row.key for row in rows}


class Board:
    """What a turn shows while it runs, in its row of the inbox, for the leader to show in the chat."""

    def __init__(self, store: GatewayStore, turn_id: str) -> None:
        self._store, self._is_it = store, inbox.c.id == turn_id

    async def progress(self, place: ChatPlace, text: str, *, message: str) -> str:
        """Have the leader show how far something is; return the platform's id of the message that shows it. Raises MaybeSentError."""
        del place
        await self._set(self._is_it, live=text)
        for look in range(1, round(_SHOWN_SECONDS / LOOK_SECONDS)):
            await asyncio.sleep(LOOK_SECONDS)
            (row,) = await self._store.rows(select(inbox).where(self._is_it))
            if row.showing == 2:
                raise MaybeSentError("Nobody can tell whether it was shown.")
            if not row.live and not row.showing:
                return row.message
            if row.live and look > _TAKEN_SECONDS / LOOK_SECONDS:
                await self._set(self._is_it & (inbox.c.live != ""), live="")  # it is out of date
        return message

    async def _set(self, where: Any, **values: Any) -> None:
        await self._store.change(update(inbox).where(where).values(**values))

    async def show_typing(self, place: ChatPlace) -> None:
        """Leave it to the leader, who knows what runs."""


def _place_of(row: "Row[Any]") -> ChatPlace:
    return from_json(row.body, Incoming).place
