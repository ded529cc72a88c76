"""Time limits, with Python's own and with that of Python 3.11.2."""

import asyncio
from collections.abc import Callable

import pytest

from ybs.core.time_limits import time_limit, time_limit_at


class _Older(asyncio.Timeout):  # pyright: ignore[reportGeneralTypeIssues] - what it was
    """Gives a TimeoutError only where nobody else cancelled the task, however long ago."""

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self.expired():
            assert task.uncancel() >= 0
            if not task.cancelling():
                raise TimeoutError

    async def __aenter__(self) -> "_Older":
        task = asyncio.current_task()
        assert task is not None
        self._over = False

        def end() -> None:
            self._over = True
            task.cancel()

        asyncio.get_running_loop().call_at(self.when() or 0, end)
        return self

    def expired(self) -> bool:
        return self._over


@pytest.fixture(params=[asyncio.Timeout, _Older])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Callable[[float | None], asyncio.Timeout] = request.param
    monkeypatch.setattr(asyncio, "timeout_at", made)


@pytest.mark.usefixtures("kind")
async def test_it_ends_what_takes_too_long() -> None:
    with pytest.raises(TimeoutError):
        async with time_limit(0):
            await asyncio.sleep(9)
    async with time_limit_at(asyncio.get_running_loop().time() + 9) as limit:
        await asyncio.sleep(0)
    assert not limit.expired()


@pytest.mark.usefixtures("kind")
async def test_it_holds_in_a_task_that_is_being_cancelled() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(9)
        finally:
            try:
                async with time_limit(0):
                    await asyncio.sleep(9)
            except TimeoutError:
                ended.append("in time")

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["in time"]


@pytest.mark.usefixtures("kind")
async def test_a_cancellation_of_somebody_elses_is_none_of_its() -> None:
    async def work() -> None:
        async with time_limit(9):
            await asyncio.sleep(9)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_without_a_time_nothing_ends() -> None:
    async with time_limit(None) as limit:
        await asyncio.sleep(0.01)
    assert limit.when() is None
