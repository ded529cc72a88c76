"""The lock of all runs: held by one at a time, waited for by the others, who may leave at any moment."""

import asyncio
from pathlib import Path
from threading import active_count

import pytest

from ybs.providers.local import process as lock
from ybs.providers.local.process import held

pytestmark = pytest.mark.integration


async def test_one_holds_it_and_the_other_waits(tmp_path: Path):
    path, order = tmp_path / "some" / "lock", list[str]()

    async def work(name: str) -> None:
        async with held(path):
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    await asyncio.gather(work("one"), work("other"))
    assert order == ["one begins", "one ends", "other begins", "other ends"]
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_wait_that_takes_long_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    told: list[str] = []
    asked = asyncio.Event()

    def waits() -> None:
        told.append("waits")
        asked.set()

    async def wait() -> None:
        async with held(tmp_path / "lock", waits):
            pass

    monkeypatch.setattr(lock, "LOCK_SECONDS", 0)
    async with held(tmp_path / "lock", waits):
        waiting = asyncio.ensure_future(wait())
        for _ in range(9):
            await asyncio.sleep(0)
        assert told == []  # not yet
        monkeypatch.setattr(lock, "TOLD_AFTER", 0)
        await asked.wait()
        for _ in range(9):
            await asyncio.sleep(0)
    await waiting
    assert told == ["waits"]


async def test_who_waits_can_leave_at_once(tmp_path: Path):
    threads = active_count()
    async with held(tmp_path / "lock"):
        waiting = asyncio.ensure_future(held(tmp_path / "lock").__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert active_count() == threads  # one that waited would keep the process from ending
    async with held(tmp_path / "lock"):
        pass
