"""Time limits that also hold in a task that is being cancelled: the one of Python 3.11.2 (Debian 12) raises no TimeoutError there."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager


@asynccontextmanager
async def time_limit_at(when: float | None) -> AsyncGenerator[asyncio.Timeout]:
    """`asyncio.timeout_at`, the same with every Python: raise TimeoutError at that time of the loop (None: never)."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - coroutines run in one
    cancellations = task.cancelling()
    limit = asyncio.timeout_at(when)
    try:
        async with limit:
            yield limit
    except asyncio.CancelledError as error:
        if limit.expired() and task.cancelling() <= cancellations:
            raise TimeoutError from error
        raise


def time_limit(seconds: float | None) -> AbstractAsyncContextManager[asyncio.Timeout]:
    """`asyncio.timeout`, the same with every Python: raise TimeoutError after that time (None: never)."""
    return time_limit_at(None if seconds is None else asyncio.get_running_loop().time() + seconds)
