"""Who serves, where several gateways share a database: one at a time. The others wait, and one of them goes on when it ends.

The lease is an advisory lock of PostgreSQL that a connection of its own holds: the server lets go of it when the process has ended, or
its machine is silent. Each time it is taken it has a higher number, and every transaction of the store looks at that: a process that
finds another number ends at once, before it does anything else, since another gateway goes on with what it did.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from time import sleep
from typing import Final

from sqlalchemy import Connection, Engine, func, select, text, update
from sqlalchemy.exc import DBAPIError

from ybs.core.errors import YbsError
from ybs.frontends.gateway.store import SILENT_SECONDS, Store, StoreError, lease

#: The process ends with this code when it has lost the lease (sysexits.h: EX_TEMPFAIL): whatever started it may start it again.
LOST: Final = 75
_LOCK: Final = int.from_bytes(b"ybs-chat")
_LOOK_SECONDS: Final = 0.5
#: Says in the connection's name since when it has the lease, in seconds since 1970.
_SINCE: Final = text(
    "SELECT set_config('application_name', concat(current_setting('application_name'), ' ',"
    " extract(epoch FROM clock_timestamp())::bigint), false)"
)
_log = logging.getLogger("ybs.gateway.lease")


def holder(connection: Connection) -> int | None:
    """Return the process of the server that holds the lease of a shared database for some gateway; None: no gateway has it."""
    held = text(
        "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND classid = :high AND objid = :low"
    )
    high, low = divmod(_LOCK, 1 << 32)
    return connection.scalar(held, {"high": high, "low": low})


def keep_out(connection: Connection) -> None:
    """Let no gateway serve until the transaction ends. Raises YbsError where one does."""
    if not connection.scalar(select(func.pg_try_advisory_xact_lock(_LOCK))):
        raise YbsError("A gateway serves from this database. End it first, on all machines.")


class Lease:
    """The right to serve from a database. `say` tells the person why it is waited for."""

    def __init__(self, engine: Engine, say: Callable[[str], None]) -> None:
        self._engine, self._say = engine.execution_options(isolation_level="AUTOCOMMIT"), say
        self._connection: Connection | None = None
        self._number = 0

    def take(self) -> None:
        """Wait until the database answers and no other gateway serves, and be the one that does."""
        said = ""
        while why := self._reason_to_wait():
            if why != said:
                self._say(why)
            said = why
            sleep(_LOOK_SECONDS)
        _log.info("lease %d is taken", self._number)

    def _reason_to_wait(self) -> str:
        try:
            if self._connection is None:
                Store(self._engine).close()  # makes the tables
                self._connection = self._engine.connect()
                self._connection.detach()  # from the pool: to close it is to let go of the lock
                for name, value in (("idle", 1), ("interval", 1), ("count", SILENT_SECONDS)):
                    self._connection.execute(text(f"SET tcp_keepalives_{name} = {value}"))
            if not self._connection.scalar(select(func.pg_try_advisory_lock(_LOCK))):
                return "Another gateway serves the chats; this one goes on when that one ends."
            raised = update(lease).values(number=lease.c.number + 1).returning(lease.c.number)
            self._number = self._connection.scalar(raised) or 0
            self._connection.execute(_SINCE)
        except (DBAPIError, StoreError) as error:
            self.close()
            return f"The gateway's database cannot be reached: {getattr(error, 'orig', error)}"
        return ""

    async def watch(self) -> None:
        """End the process when the database does not answer any more: it may take the gateway for dead."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            await asyncio.to_thread(self._look)

    def _look(self) -> None:
        try:
            if self._connection is not None:
                self._connection.execute(select(1))
        except DBAPIError:
            self.end("The gateway's database does not answer; another gateway may serve now.")

    def check(self, connection: Connection) -> None:
        """End the process where another gateway has taken the lease; until the transaction ends none can."""
        number = connection.scalar(select(lease.c.number).with_for_update(read=True))
        if number != self._number:
            self.end("Another gateway serves the chats now.")

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
