"""Time limits that also hold in a task that is being cancelled: the one of Python 3.11.2 (Debian 12) raises no TimeoutError there."""

import asyncio
from types import TracebackType


class TimeLimit:
    """`asyncio.timeout_at`, the same with every Python: raise TimeoutError at that time of the loop (None: never)."""

    def __init__(self, when: float | None) -> None:
        self._limit = asyncio.timeout_at(when)

    async def __aenter__(self) -> asyncio.Timeout:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - coroutines run in one
        self._task, self._cancellations = task, task.cancelling()
        return await self._limit.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._limit.__aexit__(kind, error, traceback)
        if isinstance(error, asyncio.CancelledError) and self._is_over:
            raise TimeoutError from error

    @property
    def _is_over(self) -> bool:
        return self._limit.expired() and self._task.cancelling() <= self._cancellations


def time_limit_at(when: float | None) -> TimeLimit:
    """Return a limit that raises TimeoutError at that time of the loop (None: never)."""
    return TimeLimit(when)


def time_limit(seconds: float | None) -> TimeLimit:
    """`asyncio.timeout`, the same with every Python: raise TimeoutError after that time (None: never)."""
    return TimeLimit(None if seconds is None else asyncio.get_running_loop().time() + seconds)
