"""The file of a running session: every event is a line at its end, written as it happens and never changed."""

import asyncio
import threading
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from ybs.config import private_file
from ybs.config.private_file import PrivateLog
from ybs.core.envelope import MAIN
from ybs.core.events import Event
from ybs.transcripts.line import encoded

#: A long turn is put on disk so often while it goes on.
SYNC_SECONDS = 1.0


class Log:
    """One session's file, open for appending by this process alone. Raises Busy, Unsafe and OSError.

    `last` is the number of the last line that is there. `problem` says why lines could not be written, or is empty;
    they wait in memory and are tried again, in order, with the next one.
    """

    def __init__(self, path: Path, *, last: int = 0) -> None:
        self.path, self.last = path, last
        self._file = PrivateLog(path)
        self._waiting: deque[bytes] = deque()
        self._not_written = self._not_synced = ""
        #: How many times something was written, and how many of these the disk has for certain.
        self._written = self._synced = 0
        self._syncing: asyncio.Future[None] | None = None
        self._synced_at = monotonic()
        self._in_use = threading.Lock()
        self._may_be_torn = True

    def go_on_after(self, last: int) -> None:
        """Go on with the number behind this one: what is there was read once nobody else could write it."""
        self.last = last

    @property
    def problem(self) -> str:
        """Why the file has not all of it; empty when it has."""
        return self._not_written or self._not_synced

    def add(
        self, event: Event, *, parent: int | None = None, agent: str = MAIN, started_by: str = ""
    ) -> int:
        """Write an event down and return the number of its line; it follows the line before, or `parent`.

        Never raises: what cannot be written waits, and `problem` says why.
        """
        parent = self.last if parent is None else parent
        self.last += 1
        now = datetime.now(UTC)
        line = encoded(
            event, number=self.last, parent=parent, at=now, agent=agent, started_by=started_by
        )
        self._waiting.append(line)
        self._write()
        return self.last

    async def synced(self) -> None:
        """Wait until the disk has what was written so far. Never raises: `problem` tells."""
        self._write()
        while self._synced != self._written:
            await asyncio.shield(self._begin_sync())

    def sync_soon(self) -> None:
        """Have the disk take what was written so far, beside other work; more than once a second it does not.

        What was written is lost with the machine's power alone, not with this process, so nobody need wait.
        """
        self._write()
        if self._synced != self._written and monotonic() - self._synced_at >= SYNC_SECONDS:
            self._begin_sync()

    def _begin_sync(self) -> "asyncio.Future[None]":
        if self._syncing is None or self._syncing.done():
            self._synced_at = monotonic()
            loop = asyncio.get_running_loop()
            self._syncing = loop.run_in_executor(None, self._sync, self._written)
        return self._syncing

    def close(self) -> None:
        """Try once more to write what waits, and let go of the file and its lock."""
        self._write()
        with self._in_use:
            self._file.close()

    def _write(self) -> None:
        try:
            while self._waiting:  # one by one: those that are written are not written again
                # What a line was torn off from ends here, so that nothing is joined to it.
                start = b"\n" if self._may_be_torn and _is_torn(self.path) else b""
                self._may_be_torn = True
                self._file.append(start + self._waiting[0])
                self._may_be_torn = False
                self._waiting.popleft()
                self._written += 1
            self._not_written = ""
        except OSError as error:
            self._not_written = error.strerror or str(error)
        except private_file.Unsafe as error:
            self._not_written = str(error)

    def _sync(self, written: int) -> None:
        try:
            with self._in_use:
                self._file.sync()
            self._not_synced = ""
        except OSError as error:
            self._not_synced = error.strerror or str(error)
        finally:
            self._synced = written


def _is_torn(path: Path) -> bool:
    """Return whether a file does not end with the end of a line."""
    file = private_file.open_to_read(path)
    if file is None:
        return False
    with file:
        size = file.seek(0, 2)
        file.seek(max(size - 1, 0))
        return size > 0 and file.read(1) != b"\n"
