"""The router's file: SQLite, for its owner alone, shared by all ybs processes, and copied to memory where nothing may be written."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Final, Self, TypeAlias

from ybs.config import private_file
from ybs.config.private_database import is_damage
from ybs.core.errors import YbsError

#: Marks the file as the router's; `PRAGMA application_id`.
APPLICATION: Final = 0x79627352
#: The format of the tables; `PRAGMA user_version`.
FORMAT: Final = 3
#: Another process that writes is waited for so long.
WAIT_SECONDS: Final = 5.0
_TABLES: Final = (
    "CREATE TABLE uses (id INTEGER PRIMARY KEY, pool TEXT NOT NULL, arm TEXT NOT NULL, at REAL NOT NULL, "
    "tokens INTEGER NOT NULL, usd REAL NOT NULL, holds_until REAL)",
    "CREATE INDEX uses_of_pool ON uses (pool, at)",
    "CREATE TABLE decisions (id TEXT PRIMARY KEY, profile TEXT NOT NULL, at REAL NOT NULL, "
    "arm TEXT NOT NULL, model_version TEXT NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL, "
    "considered TEXT NOT NULL, number INTEGER UNIQUE, reward REAL, weight REAL)",
    "CREATE INDEX decisions_of_profile ON decisions (profile, number)",
    "CREATE TABLE signals (decision TEXT NOT NULL, name TEXT NOT NULL, at REAL NOT NULL, "
    "reward REAL NOT NULL, weight REAL NOT NULL, PRIMARY KEY (decision, name))",
    "CREATE TABLE answers (arm TEXT NOT NULL, kind TEXT NOT NULL, count INTEGER NOT NULL, "
    "tokens REAL NOT NULL, seconds REAL NOT NULL, PRIMARY KEY (arm, kind))",
)


#: What `Database.reading` and `writing` give out.
Connection: TypeAlias = sqlite3.Connection


class _Damaged(Exception):
    """The file is not one that this program wrote."""


class _Newer(Exception):
    """The file was written by a newer version."""


class Database:
    """One open file, or a copy of it in memory. Its methods may be called from any thread; they block.

    `warning` is what the person should know of how it was opened.
    """

    def __init__(self, connection: sqlite3.Connection, warning: str = "") -> None:
        self._at, self._lock, self.warning = connection, RLock(), warning

    @classmethod
    def open(cls, file: Path, *, may_write: bool) -> Self:
        """Open the file, made where there is none; without `may_write` a copy in memory, and nothing is touched.

        A file that cannot be read as the router's is set aside under another name. Raises YbsError where it cannot be used now.
        """
        try:
            if not may_write:
                return cls(_copied(file))
            try:
                return cls(_opened(file))
            except _Newer:
                said = f"{file} was written by a newer ybs, so what is learned now is not kept."
                return cls(_fresh_in_memory(), said)
            except (_Damaged, sqlite3.DatabaseError) as error:
                if not is_damage(error):
                    raise
                return cls(*_repaired(file))
        except (sqlite3.Error, OSError) as error:
            raise YbsError(
                f"The router's file {file} cannot be used now: {error}. What it has learned is not lost."
            ) from error

    @classmethod
    def in_memory(cls) -> Self:
        """Return an empty one that is kept nowhere."""
        return cls(_fresh_in_memory())

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """Hold the file for one change, which is made whole or not at all. Raises YbsError where another process holds it too long."""
        with self._lock:
            try:
                self._at.execute("BEGIN IMMEDIATE")
                try:
                    yield self._at
                except BaseException:
                    with suppress(sqlite3.Error):
                        self._at.execute("ROLLBACK")
                    raise
                self._at.execute("COMMIT")
            except sqlite3.Error as error:
                raise YbsError(f"The router's file cannot be written now: {error}.") from error

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Hold the file for one look. Raises YbsError."""
        with self._lock:
            try:
                yield self._at
            except sqlite3.Error as error:
                raise YbsError(f"The router's file cannot be read now: {error}.") from error

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._at.close()


def _connect(name: str, *, is_uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        name, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False, uri=is_uri
    )


def _opened(file: Path) -> sqlite3.Connection:
    private_file.make(file)
    return _prepared(_connect(str(file)))


def _prepared(at: sqlite3.Connection) -> sqlite3.Connection:
    """Return the connection with its tables there. Raises _Damaged, _Newer and sqlite3.Error."""
    try:
        at.execute("PRAGMA trusted_schema=OFF")
        # A kill loses nothing; after a loss of power a damaged file is set aside. A request does not wait for the disk.
        at.execute("PRAGMA synchronous=OFF")
        if _is_ready(at):
            return at
        at.execute("BEGIN IMMEDIATE")
        if not _is_ready(at):  # nobody else made them meanwhile
            for table in _TABLES:
                at.execute(table)
            at.execute(f"PRAGMA application_id={APPLICATION}")
            at.execute(f"PRAGMA user_version={FORMAT}")
        at.execute("COMMIT")
    except BaseException:
        at.close()
        raise
    return at


def _is_ready(at: sqlite3.Connection) -> bool:
    """Return whether the tables are there, in this format; False for an empty file."""
    kinds = {row[0] for row in at.execute("SELECT DISTINCT type FROM sqlite_master")}
    if not kinds:
        return False
    application = at.execute("PRAGMA application_id").fetchone()[0]
    version = at.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION or not kinds <= {"table", "index"}:
        raise _Damaged  # views and triggers act by themselves
    if version > FORMAT:
        raise _Newer
    if version < FORMAT or at.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise _Damaged
    return True


def _fresh_in_memory() -> sqlite3.Connection:
    return _prepared(_connect(":memory:"))


def _copied(file: Path) -> sqlite3.Connection:
    """Return a copy in memory of what the file has; of one that cannot be read, nothing."""
    with suppress(sqlite3.Error, OSError, _Damaged, _Newer):
        if not private_file.read(file):
            return _fresh_in_memory()
        with ExitStack() as undo:
            memory = _connect(":memory:")
            undo.callback(memory.close)
            address = f"{file.absolute().as_uri()}?mode=ro"
            with closing(_connect(address, is_uri=True)) as found:
                found.backup(memory)
            undo.pop_all()
            return _prepared(memory)
    return _fresh_in_memory()


def _repaired(file: Path) -> tuple[sqlite3.Connection, str]:
    """Return a new file in place of a damaged one, which gets another name, and what to say of it."""
    handle = private_file.open_locked(file.with_name(f"{file.name}.lock"), waits=True)
    try:
        try:
            return _opened(file), ""  # another process was first
        except (_Damaged, sqlite3.DatabaseError):
            kept = _moved_away(file)
        said = f"{file} could not be read. It was moved to {kept.name}, and the router begins anew."
        return _opened(file), said
    finally:
        os.close(handle)


def _moved_away(file: Path) -> Path:
    """Give a file that cannot be read another name, and return that."""
    number = 1
    while (kept := file.with_name(f"{file.name}.broken-{number}")).exists():
        number += 1
    file.rename(kept)
    journal = file.with_name(f"{file.name}-journal")
    with suppress(FileNotFoundError):
        journal.rename(file.with_name(f"{kept.name}-journal"))
    return kept
