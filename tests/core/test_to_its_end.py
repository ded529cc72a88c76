"""Work that must not be left half done."""

import asyncio

import pytest

from ybs.core.to_its_end import to_its_end


async def test_work_comes_to_its_end_however_often_its_waiter_is_cancelled() -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()
    log: list[str] = []

    async def work() -> None:
        begun.set()
        await may_end.wait()
        log.append("work has ended")

    async def wait() -> None:
        try:
            await to_its_end(work(), hurry=lambda: log.append("hurry"))
        finally:
            log.append("its waiter goes on")

    task = asyncio.create_task(wait())
    await begun.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.wait((task,), timeout=0)
        assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["hurry", "work has ended", "its waiter goes on"]


async def test_what_work_returns_and_raises_is_passed_on() -> None:
    async def fine() -> int:
        return 1

    async def failing() -> None:
        raise KeyError("x")

    assert await to_its_end(fine()) == 1
    with pytest.raises(KeyError):
        await to_its_end(failing())
