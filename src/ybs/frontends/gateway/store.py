"""The gateway's database: what came, what is to be sent, who may speak, and which session a chat is.

One SQLite file in ybs's own folder, which no command of a model can reach, or a PostgreSQL database that gateways of several machines
share (`lease.py` says which of them leads). Modules keep their statements to themselves and run them by `GatewayStore.do`.
"""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Executable,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    String,
    Table,
    Text,
    create_engine,
    event,
    func,
    inspect,
    make_url,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.schema import CreateColumn

from ybs.config import private_file
from ybs.core.errors import ConfigError, YbsError
from ybs.core.version import VERSION

T = TypeVar("T")
metadata: Final = MetaData()

#: Events of platforms. `body` is the Incoming as JSON. `state`: new (kept, nothing decided), given (to the `worker` that is to decide, for
#: somebody of this `role`), waiting (a turn is queued), moved (a queued turn that the `worker` has not taken up yet), done.
#: `session` and `turns` are where the turn began: the transcript's name, and how many turns had begun in it before.
#: `tries` counts how many times a turn was begun; `message` is the platform's id of the message that shows its progress, and `live` what
#: the leader is to show there next; `showing`: 1 while it does, 2 where nobody can tell whether it did.
inbox: Final = Table(
    "inbox",
    metadata,
    Column("id", String, primary_key=True),
    Column("key", String, index=True, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("at", Float, nullable=False),
    Column("album", String, nullable=False, default=""),
    Column("state", String, index=True, nullable=False),
    Column("session", String, nullable=False, default=""),
    Column("turns", Integer, nullable=False, default=0),
    Column("tries", Integer, nullable=False, default=0),
    Column("message", String, nullable=False, default=""),
    Column("worker", Integer, nullable=False, default=0, server_default="0"),
    Column("role", String, nullable=False, default="", server_default=""),
    Column("live", Text, nullable=False, default="", server_default=""),
    Column("showing", Integer, nullable=False, default=0, server_default="0"),
)

#: How the turns of a chat follow each other: one that was begun comes first, whatever the clock of another machine said.
IN_ORDER: Final = (inbox.c.tries == 0, inbox.c.at)

#: Messages to platforms, in the order in which they are to arrive. `place` and `body` are JSON; `edits` is the platform's id of the
#: message that this one takes the place of, or says which of the ledger it is. `state`: pending, attempting, delivered, failed.
ledger: Final = Table(
    "ledger",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("id", String, unique=True, nullable=False),
    Column("chat", String, index=True, nullable=False),
    Column("place", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("edits", String, nullable=False, default=""),
    Column("state", String, index=True, nullable=False),
    Column("tries", Integer, nullable=False, default=0),
    Column("at", Float, nullable=False),
    Column("message", String, nullable=False, default=""),
    Column("error", Text, nullable=False, default=""),
)

#: Chats that the platform wants nothing sent to for a while: until when, in seconds since 1970.
gates: Final = Table(
    "gates",
    metadata,
    Column("chat", String, primary_key=True),
    Column("until", Float, nullable=False),
)

#: Chats that the platform has given another id (`chat`): what they were called before.
moves: Final = Table(
    "moves",
    metadata,
    Column("channel", String, primary_key=True),
    Column("account", String, primary_key=True),
    Column("chat", String, primary_key=True),
    Column("before", String, nullable=False),
)

#: Who was let in, and who asks for it. `role`: owner, guest, refused, waiting (with the `code` that lets them in; `tries` counts wrong
#: ones), or "" where the settings say it. `place` is where they asked, and where an owner is reached, as JSON.
people: Final = Table(
    "people",
    metadata,
    Column("channel", String, primary_key=True),
    Column("account", String, primary_key=True),
    Column("person", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("role", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("place", LargeBinary, nullable=False, default=b""),
    Column("code", String, nullable=False, default=""),
    Column("tries", Integer, nullable=False, default=0),
)

#: Chats, by the key of `chats.py`: the session that goes on there, and what its owner chose: the project that it is bound to ("": a folder
#: of its own) and the mode ("": `ask`).
#: `worker` is the number of the gateway that has the session open; 0: none has.
chats: Final = Table(
    "chats",
    metadata,
    Column("key", String, primary_key=True),
    Column("session", String, nullable=False, default=""),
    Column("project", String, nullable=False, default=""),
    Column("mode", String, nullable=False, default="", server_default=""),
    Column("used_at", Float, nullable=False),
    Column("worker", Integer, nullable=False, default=0, server_default="0"),
)

#: The questions that stand in chats (as `chat_of` names them), and the number of the gateway that asks.
questions: Final = Table(
    "questions",
    metadata,
    Column("id", String, primary_key=True),
    Column("chat", String, primary_key=True),
    Column("worker", Integer, nullable=False),
    Column("title", Text, nullable=False),
)

#: The gateways of a database that several share: each start has a number of its own. `projects` are the names of those it has, as JSON.
workers: Final = Table(
    "workers",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("protocol", Integer, nullable=False),
    Column("projects", Text, nullable=False),
)

#: What the channels of the running gateway do. `state` is a word of `supervisor.py`, `error` says why in a sentence.
channel_states: Final = Table(
    "channel_states",
    metadata,
    Column("name", String, primary_key=True),
    Column("account", String, nullable=False, default=""),
    Column("state", String, nullable=False),
    Column("error", Text, nullable=False, default=""),
    Column("at", Float, nullable=False),
)

#: What was spent, in US dollars, by day (UTC) and person.
spending: Final = Table(
    "spending",
    metadata,
    Column("day", String, primary_key=True),
    Column("who", String, primary_key=True),
    Column("usd", Float, nullable=False),
)

#: The number of the gateway that leads, in a database that several share.
lease: Final = Table(
    "lease",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("number", Integer, nullable=False),
)

#: Transcripts, in a database that several share: whole lines of their files, in order.
transcripts: Final = Table(
    "transcripts",
    metadata,
    Column("session", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("lines", LargeBinary, nullable=False),
)


def insert_into(where: Connection | Engine, table: Table) -> "sqlite.Insert | postgresql.Insert":
    """Return an insertion that can say what is done where the row is there already."""
    is_shared = where.dialect.name == "postgresql"
    return postgresql.insert(table) if is_shared else sqlite.insert(table)


#: A database that is silent for so long is given up, in seconds; on its side, so is a gateway.
SILENT_SECONDS: Final = 3
#: PostgreSQL cuts the name of a connection at 63 bytes.
_MOST_HOST: Final = 24


def shared_engine(address: str) -> Engine:
    """Return the engine of a PostgreSQL database. Raises ConfigError for any other address."""
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise ConfigError(f"gateway.database is no address of a database: {error}") from error
    if url.get_backend_name() != "postgresql":
        raise ConfigError(
            "gateway.database is no address of a PostgreSQL database: postgresql://USER@HOST/NAME"
        )
    host = socket.gethostname()[:_MOST_HOST] or "-"
    named = {"application_name": f"ybs {VERSION} {host}:{os.getpid()}"}  # `doctor.py` reads it
    alive = {"keepalives_idle": 1, "keepalives_interval": 1, "keepalives_count": SILENT_SECONDS}
    silent = {"connect_timeout": SILENT_SECONDS, "tcp_user_timeout": SILENT_SECONDS * 1_000}
    url = url.set(drivername="postgresql+psycopg")
    engine = create_engine(url, connect_args={**named, **alive, **silent}, pool_pre_ping=True)

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _: Any) -> None:  # pyright: ignore[reportUnusedFunction] - the engine calls it
        limits = {f"tcp_{name}": value for name, value in alive.items()}
        limits["idle_in_transaction_session_timeout"] = SILENT_SECONDS * 1_000
        for name, value in limits.items():
            connection.execute(f"SET {name} = {value}")
        connection.commit()

    return engine


def _make_tables(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":  # gateways may start at once
        connection.execute(select(func.pg_advisory_xact_lock(int.from_bytes(b"ybs-made"))))
    metadata.create_all(connection)
    for table in (inbox, chats):  # those of an earlier version lack columns
        known = {each["name"] for each in inspect(connection).get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                made = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {made}")
    connection.execute(
        insert_into(connection, lease).values(id=1, number=0).on_conflict_do_nothing()
    )


def sqlite_engine(path: Path) -> Engine:
    """Return the engine of a file that this person alone can read, made where it is missing. Raises Unsafe and OSError."""
    private_file.make(path)  # SQLite's other files have its mode
    engine = create_engine(f"sqlite:///{path}", isolation_level="SERIALIZABLE")

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _: Any) -> None:  # pyright: ignore[reportUnusedFunction] - the engine calls it
        for line in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000"):
            connection.execute(f"PRAGMA {line}")

    return engine


class StoreError(YbsError):
    """The database cannot be used. Nothing has changed, and nothing was put in its place."""

    def __init__(self, engine: Engine, error: DBAPIError) -> None:
        where, why = engine.url.render_as_string(), str(error.orig).partition("\n")[0]
        super().__init__(
            f"The gateway's database {where} cannot be used: {why}. It was left as it is."
        )


class GatewayStore:
    """The tables of one gateway. What is asked of it is done one after the other, in a thread of its own, and is on the disk when it is done.

    `check` looks first in each transaction whether it may be.
    """

    def __init__(self, engine: Engine, check: Callable[[Connection], None] | None = None) -> None:
        """Raise StoreError where the file is no database, or a damaged one: who may speak is not to be forgotten unseen."""
        self._engine, self._check = engine, check
        try:
            with engine.begin() as connection:
                _make_tables(connection)
        except DBAPIError as error:
            engine.dispose()
            raise StoreError(engine, error) from error
        self._thread = ThreadPoolExecutor(1, "ybs-gateway-store")

    async def do(self, work: Callable[[Connection], T]) -> T:
        """Run statements in one transaction and return what `work` does. Raises what it does, and StoreError; then nothing has changed."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._done, work)

    async def rows(self, query: Executable) -> "list[Row[Any]]":
        """Return what a query finds."""
        return await self.do(lambda connection: [*connection.execute(query).all()])

    async def change(self, statement: Executable) -> int:
        """Carry one statement out, and return how many rows it changed."""
        counting = {"preserve_rowcount": True}
        return await self.do(lambda c: c.execute(statement, execution_options=counting).rowcount)

    def insert(self, table: Table) -> "sqlite.Insert | postgresql.Insert":
        """Return an insertion that can say what is done where the row is there already."""
        return insert_into(self._engine, table)

    def _done(self, work: Callable[[Connection], T]) -> T:
        try:
            with self._engine.begin() as connection:
                if self._check is not None:
                    self._check(connection)
                return work(connection)
        except DBAPIError as error:
            raise StoreError(self._engine, error) from error

    def close(self) -> None:
        """Let go of the database, when what was asked is done."""
        self._thread.shutdown()
        self._engine.dispose()


def states_in(connection: Connection, table: Table) -> Counter[str]:
    """Return how many rows have each state."""
    found = connection.execute(select(table.c.state, func.count()).group_by(table.c.state))
    return Counter({row[0]: row[1] for row in found})
