"""The engine of turns: what it forgets, and what it does where its file is damaged."""

import asyncio
from pathlib import Path

import pytest

from ybs.frontends.gateway.store import StoreError, sqlite_engine


@pytest.mark.slow
async def test_a_damaged_file_of_turns_is_kept_and_the_gateway_does_not_start(tmp_path: Path):
    from ybs.frontends.gateway.turns import TurnEngine

    async def run(turn_id: str) -> None:
        del turn_id

    file = tmp_path / "state" / "turns.db"
    file.parent.mkdir(mode=0o700)
    file.write_bytes(b"no database" * 100)
    engine = TurnEngine(sqlite_engine(file), run, at_once=1)
    with pytest.raises(StoreError, match=r"turns\.db cannot be used: file is not a database"):
        await engine.start()
    await engine.close()
    assert file.read_bytes() == b"no database" * 100


@pytest.mark.slow
async def test_a_turn_that_has_ended_runs_once_until_it_is_forgotten(tmp_path: Path):
    from ybs.frontends.gateway.turns import TurnEngine

    ran, has_run = list[str](), asyncio.Event()

    async def run(turn_id: str) -> None:
        ran.append(turn_id)
        has_run.set()

    engine = TurnEngine(sqlite_engine(tmp_path / "state" / "turns.db"), run, at_once=1)
    await engine.start()
    try:
        for _ in range(2):
            await engine.enqueue("a", "chat")
            async with asyncio.timeout(20):
                await has_run.wait()
            await asyncio.sleep(0.5)
        assert ran == ["a"]
        await engine.forget(["a", "nobody"])
        has_run.clear()
        await engine.enqueue("a", "chat")
        async with asyncio.timeout(20):
            await has_run.wait()
        assert ran == ["a", "a"]
    finally:
        await engine.close()
