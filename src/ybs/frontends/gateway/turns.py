"""Turns of chats: each is run once, whatever happens to the process, and its answer handed to the ledger.

A turn that a kill interrupted is gone on with from the session's transcript. The inbox says where it began: in which transcript, and how
many turns that had then; it is written before anything of the turn is. So after a kill it is known whether the turn had begun (else it is
sent now), had ended (else `Session.take_up` goes on with it), and what its answer was. Which turns there are stands in the inbox as well;
what waits in memory is only their order.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, select, update

from ybs.core.decoding import from_json
from ybs.core.errors import YbsError
from ybs.core.messages import AssistantMessage, Image
from ybs.frontends.gateway.channel import Incoming
from ybs.frontends.gateway.chats import Chats, OpenChat
from ybs.frontends.gateway.files import prepared
from ybs.frontends.gateway.fleet import Board, Fleet
from ybs.frontends.gateway.live import LiveTurn
from ybs.frontends.gateway.outbox import Outbox
from ybs.frontends.gateway.rates import DailyBudget
from ybs.frontends.gateway.store import IN_ORDER, GatewayStore, StoreError, inbox
from ybs.session.reply import Outcome, Reply
from ybs.session.running_task import Stopped
from ybs.session.session import Session

GIVEN_UP: Final = "This was given up: ybs ended {tries} times in the midst of it. Look at what it did before you ask for it again."
STOPPED: Final = "Stopped."
#: A turn in which a gateway died so often is not begun again.
MOST_TRIES: Final = 3
_PAUSE_SECONDS: Final = 1.0
_NOTHING: Final = "(The model said nothing.)"
_log = logging.getLogger("ybs.gateway.turns")


class Turns:
    """Runs the turns of all chats: those of one chat one after the other, at most `at_once` of all. `budget` is told what a turn has cost."""

    def __init__(
        self,
        store: GatewayStore,
        chats: Chats,
        outbox: Outbox,
        budget: DailyBudget,
        *,
        at_once: int,
        fleet: Fleet | None = None,
    ) -> None:
        self._store, self._chats, self._outbox, self._budget = store, chats, outbox, budget
        self._fleet, self._worker = fleet, fleet.number if fleet else 0
        self._places = asyncio.Semaphore(at_once)
        self._locks: dict[str, asyncio.Lock] = {}
        #: By the turn: those that run here, and those that wait for others.
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, str] = {}
        #: Set as long as no turn runs.
        self.idle = asyncio.Event()
        self.idle.set()
        self._stopped = set[str]()
        #: Those whose begin is counted: it is once in the life of a process, however often the database fails in the midst of it.
        self._counted = set[str]()
        self._is_closing = False

    async def take_up(self) -> None:
        """Run the turns that the inbox has for this gateway, as far as it does not: a killed process left them, or something failed. Raises StoreError."""
        is_mine = (inbox.c.state == "waiting") & (inbox.c.worker == self._worker)
        waiting = select(inbox.c.id, inbox.c.key).where(is_mine).order_by(*IN_ORDER)
        for row in await self._store.rows(waiting):
            self._add(row.id, row.key)

    def leave(self) -> None:
        """Leave what runs to the next start, as the process ends."""
        self._is_closing = True

    async def close(self) -> None:
        """Run nothing any more; what waits is left to the next start."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def forget(self, age_seconds: float) -> None:
        """Forget the events that were done so long ago. Raises StoreError."""
        is_old = (inbox.c.state == "done") & (inbox.c.at < time.time() - age_seconds)
        await self._store.change(inbox.delete().where(is_old))

    async def enqueue(self, incoming: Incoming, key: str) -> None:
        """Have the model answer to an event when those before it in its chat are done; the same event twice is one turn."""
        is_open = (inbox.c.id == incoming.id) & inbox.c.state.in_(("new", "given", "moved"))
        is_turn = inbox.c.state.in_(("waiting", "moved"))
        is_of_chat = (inbox.c.key == key) & (inbox.c.worker == self._worker) & is_turn

        def work(connection: Connection) -> Sequence[str]:
            connection.execute(update(inbox).where(is_open).values(state="waiting", key=key))
            connection.execute(update(inbox).where(is_of_chat).values(state="waiting"))
            waiting = select(inbox.c.id).where(is_of_chat).order_by(*IN_ORDER)
            return connection.scalars(waiting).all()

        for turn_id in await self._store.do(work):  # one that another worker began comes first
            self._add(turn_id, key)

    def _add(self, turn_id: str, key: str) -> None:
        if turn_id not in self._tasks:
            self._tasks[turn_id] = asyncio.create_task(self._in_order(turn_id, key))

    async def _in_order(self, turn_id: str, key: str) -> None:
        try:  # both let go in the order in which they were asked
            async with self._locks.setdefault(key, asyncio.Lock()), self._places:
                await self.run(turn_id)
        finally:
            self._counted.discard(turn_id)
            del self._tasks[turn_id]

    def running(self, key: str) -> bool:
        """Return whether a turn of a chat runs."""
        return key in self._running

    @property
    def count(self) -> int:
        """How many turns run."""
        return len(self._running)

    async def stop(self, key: str) -> bool:
        """Stop the turn of a chat that runs, and forget those that wait; return whether there was one."""
        running = self._running.get(key, "")
        waits = (
            (inbox.c.key == key) & inbox.c.state.in_(("waiting", "moved")) & (inbox.c.id != running)
        )
        waited = await self._store.change(update(inbox).where(waits).values(state="done"))
        if running:
            self._stopped.add(running)
            if (session := self._chats.opened(key)) is not None:
                session.inbox.stop()
        return bool(running or waited)

    async def run(self, turn_id: str) -> None:
        """Run a turn, or go on with it, any number of times. While the database is out of order, it is tried again."""
        while True:
            try:
                await self._run(turn_id)
            except StoreError:
                _log.warning("a turn waits for the database")
                await asyncio.sleep(_PAUSE_SECONDS)
            except Exception as error:  # it stays in the inbox, and is taken up again
                _log.error("a turn could not be run: %s", type(error).__name__)
                return
            else:
                return

    async def _run(self, turn_id: str) -> None:
        if (row := await self._begun(turn_id)) is None:
            return
        if row.tries > MOST_TRIES:
            await self._finish(row, GIVEN_UP.format(tries=MOST_TRIES))
            return
        self._running[row.key] = turn_id
        self.idle.clear()
        try:
            said = await self._answer(row)
        except StoreError:
            raise
        except Exception as error:  # one chat's, which is told
            said = _failed(error)
        finally:
            del self._running[row.key]
            if not self._running:
                self.idle.set()
        if self._is_closing and turn_id not in self._stopped:
            await asyncio.Event().wait()  # the process ends; the next one goes on with this
        if turn_id in self._stopped and said == STOPPED:
            said = ""  # whoever stopped it was told so
        self._stopped.discard(turn_id)
        await self._finish(row, said)
        await self._chats.let_go(row.key)  # where it could not be opened

    async def _begun(self, turn_id: str) -> "Row[Any] | None":
        """Count that a turn begins, and return its row; None: it was stopped, or is another gateway's."""
        is_mine = (inbox.c.state == "waiting") & (inbox.c.worker == self._worker)
        is_it = is_mine & (inbox.c.id == turn_id)

        def work(connection: Connection) -> "Row[Any] | None":
            if turn_id not in self._counted:
                connection.execute(update(inbox).where(is_it).values(tries=inbox.c.tries + 1))
            return connection.execute(select(inbox).where(is_it)).first()

        row = await self._store.do(work)
        self._counted.add(turn_id)
        return row

    async def _answer(self, row: "Row[Any]") -> str:
        incoming = from_json(row.body, Incoming)
        opened = await self._chats.open(row.key)
        if row.id in self._stopped:
            return STOPPED
        session = opened.session
        channel = self._outbox.channels[incoming.place.channel]
        is_shown_here = self._fleet is None or self._fleet.leads
        live = LiveTurn(
            self._outbox if is_shown_here else Board(self._store, row.id),
            channel.capabilities,
            incoming.place,
            session,
            message=row.message,
            shown=lambda message: self._set(row.id, message=message),
        )
        async with live:
            began_in = "" if row.session == opened.lost else row.session
            if began_in and began_in != session.journal.name:
                return "The chat went on with another session before this was answered."
            begun = session.journal.replay.past_turns.begun > row.turns if began_in else False
            outcome = (
                await self._going_on(session) if begun else await self._sent(row, incoming, opened)
            )
        await self._chats.keep(opened)
        if isinstance(outcome, str):
            return outcome
        if cost := outcome.finished.usage.cost_usd:
            await self._budget.add(incoming.person, cost)
        return _words_of(outcome)

    async def _going_on(self, session: Session) -> Outcome | str:
        """Go on with a turn that a kill interrupted, or return the answer that it had come to."""
        _log.info("a turn is taken up")
        if session.is_cut_short:
            outcome = await session.take_up()
            return outcome if outcome is not None else _NOTHING
        messages = session.conversation.messages
        said = [each.text for each in messages[-1:] if isinstance(each, AssistantMessage)]
        end = session.journal.replay.past_turns.open[-1:]
        if end and end[0].end is not None and end[0].end.reason != "done":
            return end[0].end.message or STOPPED
        return said[0] if said and said[0] else _NOTHING

    async def _sent(self, row: "Row[Any]", incoming: Incoming, opened: OpenChat) -> Outcome | str:
        session = opened.session
        channel = self._outbox.channels[incoming.place.channel]
        words, images = await prepared(incoming, channel, session.folder)

        async def note() -> None:
            name, turns = session.journal.name, session.journal.replay.past_turns.begun
            await self._chats.began(row.key, row.id, session=name, turns=turns)

        opened.beginning.tell(note)
        try:
            result: Outcome | Reply = await _result_of(session, words, images)
        except Stopped:
            return STOPPED
        finally:
            opened.beginning.tell(None)
        return result.text if isinstance(result, Reply) else result

    async def _finish(self, row: "Row[Any]", said: str) -> None:
        """Hand the answer to the ledger, and then be done with the event: the same answer twice is one there."""
        incoming = from_json(row.body, Incoming)
        now = await self._row(row.id)
        message = now.message if now is not None else ""
        if said or message:
            words = said or STOPPED
            await self._outbox.post(incoming.place, words, id=f"{row.id}:answer", edits=message)
        await self._set(row.id, state="done")

    async def _row(self, turn_id: str) -> "Row[Any] | None":
        return next(iter(await self._store.rows(select(inbox).where(inbox.c.id == turn_id))), None)

    async def _set(self, turn_id: str, **values: Any) -> None:
        await self._store.change(update(inbox).where(inbox.c.id == turn_id).values(**values))


async def _result_of(session: Session, words: str, images: tuple[Image, ...]) -> Outcome | Reply:
    """Send words, in which no file is looked for: `@~/.netrc` in a chat would attach it unasked."""
    session.parts.composer.name_no_files()
    return await session.inbox.result_of(words, images=images, is_for_model=True)


def _failed(error: Exception) -> str:
    if isinstance(error, YbsError):
        return f"That did not work: {error}"
    kind = type(error).__name__
    _log.error("a turn failed: %s", kind)
    return f"That did not work: ybs failed ({kind})."


def _words_of(outcome: Outcome) -> str:
    end = outcome.finished
    if end.reason == "done":
        return outcome.text or _NOTHING
    why = (
        STOPPED if end.reason == "interrupted" else end.message or f"The turn ended: {end.reason}."
    )
    return f"{outcome.text}\n\n{why}" if outcome.text else why
