"""Leases of gateways that share a database: which are alive, and which of them leads.

Each start of a gateway has a number, and an advisory lock of PostgreSQL of this number, held by a connection of its own: the server lets go
of it when the process has ended, or its machine is silent. One of them has the lock of the leader as well. The leader strikes out the
numbers whose lock is free, and every transaction of the store looks whether its own number still stands: a process that was struck out
ends at once, before it does anything else, since others go on with what it did.
"""

import asyncio
import json
import logging
import os
from collections.abc import Callable, Collection
from time import sleep
from typing import Any, Final

from sqlalchemy import Connection, Engine, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from ybs.core.errors import YbsError
from ybs.frontends.gateway.store import GatewayStore, StoreError, lease, workers

#: The process ends with this code when it has lost the lease (sysexits.h: EX_TEMPFAIL): whatever started it may start it again.
LOST: Final = 75
#: Changes when gateways of two versions can no longer understand each other's rows: they take none of each other's turns then.
PROTOCOL: Final = 1
_LOCK: Final = int.from_bytes(b"ybs-chat")
#: The first half of the locks of workers; the second is their number.
_WORKERS: Final = int.from_bytes(b"ybsw")
_LOOK_SECONDS: Final = 0.5
#: So long a gateway of another version than the leader's may take for the turns that it has begun.
_DRAIN_SECONDS: Final = 60.0
_HELD: Final = (
    "SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = {kind} AND classid = {first}"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
#: The workers whose lock is free. One whose last transaction the server still has open is not among them yet.
GONE: Final = text(
    f"SELECT number FROM workers WHERE number NOT IN ({_HELD.format(kind=2, first=_WORKERS)}) FOR UPDATE SKIP LOCKED"  # noqa: S608 - numbers of this file
)
_MINE: Final = "SELECT l.number FROM workers w, lease l WHERE w.number = :number FOR SHARE OF w"
#: Says in the connection's name since when it leads, in seconds since 1970.
_SINCE: Final = text(
    "SELECT set_config('application_name', concat(current_setting('application_name'), ' ',"
    " extract(epoch FROM clock_timestamp())::bigint), false)"
)
_log = logging.getLogger("ybs.gateway.lease")


def holder(connection: Connection) -> int | None:
    """Return the process of the server that holds the leader's lock for some gateway; None: no gateway leads."""
    high, low = divmod(_LOCK, 1 << 32)
    held = _HELD.format(kind=1, first=high).replace("objid::bigint", "pid", 1)
    return connection.scalar(text(f"{held} AND objid = {low}"))


def keep_out(connection: Connection) -> None:
    """Let no gateway lead until the transaction ends. Raises YbsError where one does."""
    if not connection.scalar(select(func.pg_try_advisory_xact_lock(_LOCK))):
        raise YbsError("A gateway serves from this database. End it first, on all machines.")


class DatabaseLease:
    """The right to work for a database, and to lead. `say` tells the person why it is waited for; `projects` are those that there are here."""

    def __init__(
        self,
        engine: Engine,
        say: Callable[[str], None],
        projects: Collection[str] = (),
    ) -> None:
        self._engine, self._say = engine.execution_options(isolation_level="AUTOCOMMIT"), say
        self._projects, self.protocol = json.dumps([*projects]), PROTOCOL
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self._old_for = 0.0
        #: The number of this gateway.
        self.number = 0
        #: Whether it leads.
        self.leads = False

    def take(self) -> None:
        """Wait until the database answers, and be one of its workers."""
        said = ""
        while why := self._reason_to_wait():
            if why != said:
                self._say(why)
            said = why
            sleep(_LOOK_SECONDS)
        _log.info("this is worker %d", self.number)

    def _reason_to_wait(self) -> str:
        try:
            GatewayStore(self._engine).close()  # makes the tables
            connection = self._connection = self._engine.connect()
            connection.detach()  # from the pool: to close it is to let go of the locks
            sequence = func.pg_get_serial_sequence("workers", "number")
            self.number = connection.scalar(select(func.nextval(sequence))) or 0
            connection.execute(select(func.pg_advisory_lock(_WORKERS, self.number)))
            values = {"protocol": self.protocol, "projects": self._projects}
            connection.execute(insert(workers).values(number=self.number, **values))
        except (DBAPIError, StoreError) as error:
            self.close()
            return f"The gateway's database cannot be reached: {getattr(error, 'orig', error)}"
        return ""

    async def lead(self) -> None:
        """Wait until no other gateway leads, and be the one that does."""
        if not await self._asked(self._try_to_lead):
            self._say("Another gateway has the channels; this one works as well, and leads when that one ends.")  # fmt: skip
            while not await self._asked(self._try_to_lead):  # noqa: ASYNC110 - another machine
                await asyncio.sleep(_LOOK_SECONDS)
        self.leads = True
        _log.info("worker %d leads", self.number)

    def _try_to_lead(self, connection: Connection) -> bool:
        if not connection.scalar(select(func.pg_try_advisory_lock(_LOCK))):
            return False
        connection.execute(update(lease).values(number=self.number))
        connection.execute(_SINCE)
        return True

    async def watch(self, is_busy: Callable[[], bool]) -> None:
        """End the process when the database does not answer any more: it may take the gateway for dead.

        One of another version than the leader's ends as well when it has been busy for long: its turns are taken up elsewhere then.
        """
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            protocol = await self._asked(_protocol_of_leader)
            self._old_for += _LOOK_SECONDS
            if protocol in (None, self.protocol):
                self._old_for = 0.0
            elif self._old_for > _DRAIN_SECONDS and is_busy():
                self.end("Gateways of another version have taken over.")

    @property
    def is_old(self) -> bool:
        """Whether the leader is of another version."""
        return self._old_for > 0

    async def _asked(self, work: Callable[[Connection], Any]) -> Any:
        def asked() -> Any:
            try:
                return work(self._connection) if self._connection is not None else None
            except DBAPIError:
                self.end("The gateway's database does not answer; another gateway may serve now.")

        async with self._lock:
            return await asyncio.to_thread(asked)

    def check(self, connection: Connection) -> None:
        """End the process where it was struck out, or another gateway leads in its place; until the transaction ends neither can happen."""
        leads = self.leads  # which may become true meanwhile, in another thread
        mine = f"{_MINE}, l" if leads else _MINE
        leader = connection.scalar(text(mine), {"number": self.number})
        if leader is None or (leads and leader != self.number):
            self.end("Other gateways took this one for dead, and go on with what it did.")

    def end(self, why: str) -> None:
        """End the process, and say why."""
        _log.error(why)
        self._say(f"{why} This one ends, so that nothing is done twice.")
        os._exit(LOST)

    def close(self) -> None:
        """Let another gateway take it."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._engine.dispose()


def _protocol_of_leader(connection: Connection) -> int | None:
    leader = select(lease.c.number).scalar_subquery()
    return connection.scalar(select(workers.c.protocol).where(workers.c.number == leader))
