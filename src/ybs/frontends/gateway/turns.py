"""Turns of chats: each is run once, whatever happens to the process, and its answer handed to the ledger.

A turn that a kill interrupted is gone on with from the session's transcript. The inbox says where it began: in which transcript, and how
many turns that had then; it is written before anything of the turn is. So after a kill it is known whether the turn had begun (else it is
sent now), had ended (else `Session.take_up` goes on with it), and what its answer was.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
from dbos import DBOS, DBOSPortableJSONSerializer, SetEnqueueOptions, SetWorkflowID
from sqlalchemy import Engine as SqlEngine
from sqlalchemy import Row, select, update
from sqlalchemy.exc import DBAPIError

from ybs.core.errors import YbsError
from ybs.core.messages import AssistantMessage, Image
from ybs.frontends.gateway.channel import Incoming
from ybs.frontends.gateway.chats import Chats, OpenChat
from ybs.frontends.gateway.files import prepared
from ybs.frontends.gateway.fleet import Board, Fleet
from ybs.frontends.gateway.live import LiveTurn
from ybs.frontends.gateway.outbox import Outbox
from ybs.frontends.gateway.rates import DailyBudget
from ybs.frontends.gateway.store import GatewayStore, StoreError, inbox
from ybs.session.reply import Outcome, Reply
from ybs.session.running_task import Stopped
from ybs.session.session import Session

GIVEN_UP: Final = "This was given up: ybs ended {tries} times in the midst of it. Look at what it did before you ask for it again."
STOPPED: Final = "Stopped."
#: Turns of another version cannot be gone on with: it changes where a recovered turn could not be understood any more.
VERSION: Final = "turn-1"
QUEUE: Final = "turns"
#: A turn in which a gateway died so often is not begun again.
MOST_TRIES: Final = 3
#: More often than that; the engine is not to give up before.
_MANY: Final = 1_000
_POLL_SECONDS: Final = 0.1
_PAUSE_SECONDS: Final = 1.0
_MOST_FORGOTTEN: Final = 500
_NOTHING: Final = "(The model said nothing.)"
_log = logging.getLogger("ybs.gateway.turns")


class TurnEngine:
    """Runs `run` with the id of each turn, as a workflow of DBOS; after a kill it goes on with those that had not ended.

    A workflow's id is the platform's id of the event, so the same event twice is one turn; its partition is the chat, so turns of one
    chat come one after the other. What a workflow has done is written in the session's transcript and in the inbox: the engine keeps
    only the id. One of these at a time in a process, and one process at a time with the database. Among gateways that share turns, each
    has an engine of its own: `worker` is the number of this start, and turns of another one are left alone.
    """

    def __init__(
        self,
        database: SqlEngine,
        run: Callable[[str], Awaitable[None]],
        *,
        at_once: int,
        worker: int = 0,
    ) -> None:
        self._database, self._run, self._at_once = database, run, at_once
        self._ending = f"@{worker}" if worker else ""

    async def start(self) -> None:
        """Connect, and go on with the turns that a killed process left. Raises StoreError."""
        try:
            await self._launch()
        except DBAPIError as error:
            raise StoreError(self._database, error) from error

    async def _launch(self) -> None:
        logging.getLogger("dbos").propagate = True
        config: Any = {
            "name": "ybs-gateway",
            "system_database_url": self._database.url.render_as_string(hide_password=False),
            "system_database_engine": self._database,
            "executor_id": "gateway",  # the lock of the folder, or the lease, lets one run
            "application_version": VERSION,
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "WARNING",
            "notification_listener_polling_interval_sec": _POLL_SECONDS,
        }
        await asyncio.to_thread(_forget_registered)
        DBOS(config=config)

        @DBOS.workflow(name="turn", max_recovery_attempts=_MANY)
        async def turn(workflow_id: str) -> None:
            if workflow_id.endswith(self._ending):
                await self._run(workflow_id.removesuffix(self._ending))

        self._turn = turn
        DBOS.launch()
        await DBOS.register_queue_async(
            QUEUE,
            partition_concurrency=1,
            worker_concurrency=self._at_once,
            polling_interval_sec=_POLL_SECONDS,
        )

    async def enqueue(self, turn_id: str, partition: str) -> None:
        """Have a turn run when those before it in its partition have ended; one that is known already is left as it is."""
        id = turn_id + self._ending
        with SetWorkflowID(id), SetEnqueueOptions(queue_partition_key=partition):
            await DBOS.enqueue_workflow_async(QUEUE, self._turn, id)

    async def cancel(self, turn_id: str) -> None:
        """Keep a turn from beginning, or from being begun again."""
        await DBOS.cancel_workflow_async(turn_id + self._ending)

    async def known(self, turn_ids: Sequence[str]) -> set[str]:
        """Return those of the turns that it has."""
        wanted = list(turn_ids)
        found = await DBOS.list_workflows_async(
            workflow_ids=wanted, load_input=False, load_output=False
        )
        return {each.workflow_id for each in found}

    async def forget(self, turn_ids: Sequence[str]) -> None:
        """Forget turns that have ended."""
        await DBOS.delete_workflows_async([each + self._ending for each in turn_ids])

    async def close(self) -> None:
        """End; what runs goes on with the next start."""
        await asyncio.to_thread(_forget_registered)


def _forget_registered() -> None:
    DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=0)


class Turns:
    """Runs the turns of all chats. `database` is the engine's; `budget` is told what a turn has cost."""

    def __init__(  # noqa: PLR0913 - each is a part of its own
        self,
        store: GatewayStore,
        database: SqlEngine,
        chats: Chats,
        outbox: Outbox,
        budget: DailyBudget,
        *,
        at_once: int,
        fleet: Fleet | None = None,
    ) -> None:
        self._store, self._chats, self._outbox, self._budget = store, chats, outbox, budget
        self._fleet, self._worker = fleet, fleet.number if fleet else 0
        self._engine = TurnEngine(database, self.run, at_once=at_once, worker=self._worker)
        self._running: dict[str, str] = {}
        #: Set as long as no turn runs.
        self.idle = asyncio.Event()
        self.idle.set()
        self._stopped = set[str]()
        self._is_closing = False

    async def start(self) -> None:
        """Go on with the turns that a killed process left."""
        await self._engine.start()
        is_mine = (inbox.c.state == "waiting") & (inbox.c.worker == self._worker)
        waiting = select(inbox).where(is_mine).order_by(inbox.c.at)
        rows = await self._store.rows(waiting)
        known = await self._engine.known([row.id for row in rows]) if rows else set[str]()
        for row in rows:
            if row.id not in known:  # killed between the two
                await self._engine.enqueue(row.id, row.key)

    def leave(self) -> None:
        """Leave what runs to the next start, as the process ends."""
        self._is_closing = True

    async def close(self) -> None:
        """End the engine; what runs is left to the next start."""
        self._is_closing = True
        await self._engine.close()

    async def forget(self, age_seconds: float) -> None:
        """Forget the events that were done so long ago, a part of them at a time. Raises StoreError."""
        is_old = (inbox.c.state == "done") & (inbox.c.at < time.time() - age_seconds)
        old = select(inbox.c.id).where(is_old).limit(_MOST_FORGOTTEN)
        if ids := await self._store.do(lambda c: c.scalars(old).all()):
            await self._engine.forget(ids)
            await self._store.change(inbox.delete().where(inbox.c.id.in_(ids)))

    async def enqueue(self, incoming: Incoming, key: str) -> None:
        """Have the model answer to an event when those before it in its chat are done; the same event twice is one turn."""
        is_open = (inbox.c.id == incoming.id) & inbox.c.state.in_(("new", "given", "moved"))
        await self._store.change(update(inbox).where(is_open).values(state="waiting", key=key))
        await self._engine.enqueue(incoming.id, key)

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
        waiting = [row.id for row in await self._store.rows(select(inbox.c.id).where(waits))]
        for turn_id in waiting:
            await self._set(turn_id, state="done")
            await self._engine.cancel(turn_id)
        if running:
            self._stopped.add(running)
            if (session := self._chats.opened(key)) is not None:
                session.inbox.stop()
        return bool(running or waiting)

    async def run(self, turn_id: str) -> None:
        """Run a turn, or go on with it: what the engine calls, any number of times. While the database is out of order, it is tried again."""
        while True:
            try:
                await self._run(turn_id)
            except StoreError:  # the engine would note that the turn has failed
                _log.warning("a turn waits for the database")
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                return

    async def _run(self, turn_id: str) -> None:
        row = await self._row(turn_id)
        if row is None or row.state == "done" or row.worker != self._worker:
            return
        if row.tries >= MOST_TRIES:
            await self._finish(row, GIVEN_UP.format(tries=row.tries))
            return
        await self._set(turn_id, tries=row.tries + 1)
        self._running[row.key] = turn_id
        self.idle.clear()
        try:
            said = await self._answer(row)
        except StoreError:
            raise
        except YbsError as error:
            said = f"That did not work: {error}"
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

    async def _answer(self, row: "Row[Any]") -> str:
        incoming = msgspec.json.decode(row.body, type=Incoming)
        opened = await self._chats.open(row.key)
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
            begun = session.journal.replay.rounds.begun > row.turns if began_in else False
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
        end = session.journal.replay.rounds.open[-1:]
        if end and end[0].end is not None and end[0].end.reason != "done":
            return end[0].end.message or STOPPED
        return said[0] if said and said[0] else _NOTHING

    async def _sent(self, row: "Row[Any]", incoming: Incoming, opened: OpenChat) -> Outcome | str:
        session = opened.session
        channel = self._outbox.channels[incoming.place.channel]
        words, images = await prepared(incoming, channel, session.folder)

        async def note() -> None:
            name, turns = session.journal.name, session.journal.replay.rounds.begun
            await self._set(row.id, session=name, turns=turns)
            await self._chats.noted(row.key, name)

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
        incoming = msgspec.json.decode(row.body, type=Incoming)
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
    return await session.inbox.result_of(words, typed="", images=images, is_for_model=True)


def _words_of(outcome: Outcome) -> str:
    end = outcome.finished
    if end.reason == "done":
        return outcome.text or _NOTHING
    why = (
        STOPPED if end.reason == "interrupted" else end.message or f"The turn ended: {end.reason}."
    )
    return f"{outcome.text}\n\n{why}" if outcome.text else why
