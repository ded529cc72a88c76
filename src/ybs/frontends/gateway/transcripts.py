"""Transcripts of chats in a database that several machines share, so that another one can go on with a session.

A session writes its file as everywhere. What the file says is put into the database before a call changes anything, when a turn has
ended, and once a second; who opens the session makes the file say what the database says. So a session is the same in both.
"""

import asyncio
from collections import defaultdict
from pathlib import Path

from sqlalchemy import func, insert, select

from ybs.config import private_file
from ybs.core.errors import YbsError
from ybs.frontends.gateway.lease import Lease
from ybs.frontends.gateway.store import Store, transcripts


class KeptTranscripts:
    """The transcripts of one database; the stem of a file is its session's name. None but the worker of a session puts anything in."""

    def __init__(self, store: Store, lease: Lease) -> None:
        self._store, self._lease = store, lease
        self._sizes = defaultdict[str, int](int)
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)

    async def bring(self, file: Path) -> None:
        """Make a file say what the database says; what stands behind that, nobody else has seen, and stays. Raises YbsError and OSError."""
        rows = select(transcripts.c.lines).where(transcripts.c.session == file.stem)
        rows = rows.order_by(transcripts.c.number)
        kept = b"".join(await self._store.do(lambda c: c.scalars(rows).all()))
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
                before = select(func.count()).where(transcripts.c.session == name)
                values = {"session": name, "number": before.scalar_subquery(), "lines": lines}
                await self._store.do(lambda c: c.execute(insert(transcripts).values(**values)))
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
