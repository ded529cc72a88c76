"""Transcripts of chats in a database that several machines share, so that another one can go on with a session.

A session writes its file as everywhere. What the file says is put into the database before a call changes anything, when a turn has
ended, and once a second; who opens the session makes the file say what the database says. So a session is the same in both, and
`copied` takes sessions from one to the other, byte for byte.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from sqlalchemy import Connection, func, insert, select

from ybs.config import private_file
from ybs.config.private_file import PrivateLog
from ybs.core.errors import YbsError
from ybs.core.wording import plural
from ybs.frontends.gateway.lease import DatabaseLease, keep_out
from ybs.frontends.gateway.store import GatewayStore, transcripts
from ybs.transcripts.line import decoded
from ybs.transcripts.reading import SUFFIX
from ybs.transcripts.store import SessionStore as SavedSessions
from ybs.transcripts.store import checked


class KeptTranscripts:
    """The transcripts of one database; the stem of a file is its session's name. None but the worker of a session puts anything in."""

    def __init__(self, store: GatewayStore, lease: DatabaseLease) -> None:
        self._store, self._lease = store, lease
        self._sizes = defaultdict[str, int](int)
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)

    async def bring(self, file: Path) -> None:
        """Make a file say what the database says; what stands behind that, nobody else has seen, and stays. Raises YbsError and OSError."""
        kept = await self._store.do(lambda connection: _kept(connection, file.stem))
        self._sizes[file.stem] = len(kept)
        if kept and not (private_file.read(file) or b"").startswith(kept):
            await asyncio.to_thread(private_file.replace, file, kept)

    async def put(self, file: Path) -> None:
        """Put into the database what the file says beyond it, in whole lines. Raises YbsError and OSError."""
        name = file.stem
        async with self._locks[name]:
            opened = private_file.open_to_read(file)
            if opened is None:
                return
            with opened:
                opened.seek(self._sizes[name])
                lines = opened.read()
            if lines := lines[: lines.rfind(b"\n") + 1]:
                await self._store.do(lambda connection: _put(connection, name, lines))
                self._sizes[name] += len(lines)

    async def must_put(self, file: Path) -> None:
        """Do so, or end the process: what comes next may be done once alone."""
        try:
            await self.put(file)
            await self._store.rows(
                select(1)
            )  # where there was nothing to put, too, the lease is looked at
        except (YbsError, OSError) as error:
            self._lease.end(f"A transcript could not be kept: {error}")


class TranscriptStore(Protocol):
    """Where transcripts are kept, by the names of their sessions. All methods raise YbsError and OSError."""

    async def names(self) -> list[str]:
        """Return the names of all sessions, in order."""
        ...

    async def read(self, name: str) -> bytes:
        """Return the whole lines of a transcript that nobody is writing to; b"" where there is none."""
        ...

    async def add(self, name: str, lines: bytes) -> bool:
        """Have a transcript say this; return whether that was new. Raises YbsError where it says something else, or is in use."""
        ...


class Files:
    """The transcripts of a folder, a file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, name: str) -> Path:
        return self._folder / f"{checked(name)}{SUFFIX}"

    async def names(self) -> list[str]:
        """Return the names of all files."""
        return sorted(SavedSessions(self._folder).names())

    async def read(self, name: str) -> bytes:
        """Read a file, from which a part of a last line is left out."""
        path = self._path(name)
        if not path.exists():
            return b""
        with PrivateLog(path):  # Busy where somebody writes it
            lines = private_file.read(path) or b""
        return lines[: lines.rfind(b"\n") + 1]

    async def add(self, name: str, lines: bytes) -> bool:
        """Write a file, or what it lacks."""
        path = self._path(name)
        is_new = not path.exists()
        try:
            with PrivateLog(path) as log:
                more = _missing(name, private_file.read(path) or b"", lines)
                log.append(more)
                log.sync()
        except OSError:
            if is_new:
                private_file.remove(path)
            raise
        return bool(more)


class Tables:
    """The transcripts of a database. They are added to only where no gateway serves from it, since that would not see it."""

    def __init__(self, store: GatewayStore) -> None:
        self._store = store

    async def names(self) -> list[str]:
        """Return the names of all sessions."""
        named = select(transcripts.c.session).distinct().order_by(transcripts.c.session)
        return list(await self._store.do(lambda c: c.scalars(named).all()))

    async def read(self, name: str) -> bytes:
        """Read what the table has, which is whole lines."""
        return await self._store.do(lambda connection: _kept(connection, name))

    async def add(self, name: str, lines: bytes) -> bool:
        """Put lines into the table, or what it lacks."""

        def work(connection: Connection) -> bool:
            keep_out(connection)
            more = _missing(name, _kept(connection, name), lines)
            if more:
                _put(connection, name, more)
            return bool(more)

        return await self._store.do(work)


def _kept(connection: Connection, name: str) -> bytes:
    rows = select(transcripts.c.lines).where(transcripts.c.session == name)
    return b"".join(connection.scalars(rows.order_by(transcripts.c.number)).all())


def _put(connection: Connection, name: str, lines: bytes) -> None:
    before = select(func.count()).where(transcripts.c.session == name)
    values = {"session": name, "number": before.scalar_subquery(), "lines": lines}
    connection.execute(insert(transcripts).values(**values))


class CopiedTranscript(Struct, frozen=True):
    """What became of one transcript: `note` says it in words."""

    session: str
    ok: bool
    note: str


async def copied(
    source: TranscriptStore, target: TranscriptStore, names: Sequence[str]
) -> list[CopiedTranscript]:
    """Copy transcripts (no names: all of them). One that cannot be copied keeps no other from it. Raises YbsError and OSError where `source` cannot be listed."""
    done: list[CopiedTranscript] = []
    for name in names or await source.names():
        try:
            lines = await source.read(name)
            damaged = _damaged(name, lines)
            note = "copied" if await target.add(name, lines) else "was there already"
            if damaged:
                note += f"; {plural(damaged, 'line')} of it cannot be read, and went along as found"
            done.append(CopiedTranscript(name, ok=True, note=note))
        except (YbsError, OSError) as error:
            done.append(CopiedTranscript(name, ok=False, note=str(error)))
    return done


def _damaged(name: str, lines: bytes) -> int:
    """Return how many lines cannot be read. Raises YbsError where none can."""
    read = [decoded(line) is not None for line in lines.splitlines() if line]
    if not any(read):
        raise YbsError(
            f"{name} is not a session: {'none of its lines can be read' if read else 'it is empty or not there'}."
        )
    return read.count(False)


def _missing(name: str, there: bytes, lines: bytes) -> bytes:
    """Return what has to be added to one transcript so that it says another. Raises YbsError where they are not the same session."""
    if not lines.startswith(there) and not there.startswith(lines):
        raise YbsError(f"Another session is called {name} there; nothing was changed.")
    return lines[len(there) :]
