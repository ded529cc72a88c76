"""Gateways of two machines that share a real PostgreSQL database: one serves, and another one goes on when it ends."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from time import monotonic

import pytest

from chat_faults import GatewayProcess, Machines, Run, machines
from postgres import programs
from ybs.frontends.gateway.lease import LOST

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed"),
]


@pytest.fixture
async def two() -> AsyncGenerator[Machines]:
    async with machines() as made:
        yield made


def other(two: Machines) -> GatewayProcess:
    """Return the gateway of the machine that was not started last."""
    made = GatewayProcess.__new__(GatewayProcess)
    made.home, made.platform, made.model, made.shop = (
        two.homes[1],
        two.platform,
        two.model,
        two.shop,
    )
    return made


async def says(gateway: GatewayProcess, words: str) -> None:
    """Wait until it has said some words on standard error."""
    async with asyncio.timeout(40):
        while words not in (gateway.home / "stderr").read_text():  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.1)


async def asked(two: Machines, *, after: int = 0) -> None:
    await two.platform.until(lambda: two.shows("Yes", after=after), 40)


async def test_one_that_waits_goes_on_with_a_turn_of_one_that_was_killed(two: Machines):
    started = monotonic()
    await two.start()
    two.platform.say("/project shop")
    await two.platform.until(lambda: two.platform.texts(), 40)
    starting = monotonic() - started
    waiting = other(two)
    await waiting.start()
    try:
        await says(waiting, "goes on when that one ends")
        two.platform.say("task 1")
        await asked(two)
        count = len(two.platform.sent)
        await asyncio.sleep(1)
        await two.kill()
        killed = monotonic()
        await asked(two, after=count)
        assert monotonic() - killed < 4 * starting
        two.platform.press("Yes")
        await two.platform.until(
            lambda: any("done 1." in each for each in two.platform.texts()), 20
        )
    finally:
        await waiting.kill()
    assert (two.shop / "effects").read_text() == "1\n"


async def test_one_that_lost_its_lease_ends_before_it_does_anything_else(two: Machines):
    await two.start()
    two.platform.say("/project shop")
    await two.platform.until(lambda: two.platform.texts(), 40)
    two.platform.say("task 1")
    await asked(two)
    assert two.process is not None
    two.server.ask(
        "UPDATE lease SET number = number + 1"
    )  # another one has taken it, and this one has not noticed
    two.platform.press("Yes")
    assert await two.ended(20)
    assert two.process.returncode == LOST
    assert not (two.shop / "effects").exists()
    count = len(two.platform.sent)
    await two.start()
    await asked(two, after=count)
    two.platform.press("Yes")
    await two.platform.until(lambda: any("done 1." in each for each in two.platform.texts()), 20)
    assert (two.shop / "effects").read_text() == "1\n"


async def test_a_database_that_goes_away_and_comes_back_loses_nothing(two: Machines):
    await two.start()
    two.platform.say("/project shop")
    await two.platform.until(lambda: two.platform.texts(), 40)
    two.server.end(kill=True)
    two.platform.say("task 1")
    assert await two.ended(20)
    await two.start()  # as what started it would; it waits
    await says(two, "cannot be reached")
    two.server.start()
    await asked(two)
    two.platform.press("Yes")
    await two.platform.until(lambda: any("done 1." in each for each in two.platform.texts()), 20)
    assert (two.shop / "effects").read_text() == "1\n"


@pytest.mark.timeout(300)
async def test_kills_on_two_machines_lose_nothing_and_run_nothing_twice(two: Machines):
    assert await Run(two, seed=7).play(4) == []


def test_an_address_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    from ybs.core.errors import ConfigError
    from ybs.frontends.gateway.store import shared_engine

    for address in ("nonsense", "mysql://a@b/c", "sqlite:///x"):
        with pytest.raises(ConfigError, match=r"gateway\.database"):
            shared_engine(address)
