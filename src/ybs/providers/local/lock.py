"""A lock that all runs of ybs share: one of them holds it, and the system takes it back when that process ends."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

from ybs.config import private_file

LOOK_SECONDS = 0.1
#: A wait that takes longer is told.
TOLD_AFTER = 0.5


def open_private(path: Path) -> int:
    """Open a file that only its owner can read, made where it is not there; return its descriptor."""
    private_file.make_folder(path.parent)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


@asynccontextmanager
async def held(path: Path, waits: Callable[[], None] = lambda: None) -> AsyncGenerator[None]:
    """Hold the lock; wait for it while another run has it. `waits` is called once in a wait that takes longer than a moment.

    The wait asks again and again, because a thread that waits for a lock cannot be cancelled.
    """
    import fcntl  # not on every system; those have no local model either

    file, begun, is_told = open_private(path), monotonic(), False
    try:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not is_told and monotonic() - begun >= TOLD_AFTER:
                    is_told = True
                    waits()
                await asyncio.sleep(LOOK_SECONDS)
        yield
    finally:
        os.close(file)
