"""Pools: what may run at once, in a minute and in a day; never more than that, whoever else takes of it."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ybs.config.sections import PoolLimits
from ybs.router.database import Database
from ybs.router.pools import DAY, MINUTE, ArmAnswer, Estimate, Pools, Reservation, Shortage, Typical

NOON = 20_000 * DAY + DAY / 2


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> float:
        return self.time


def pools_of(limits: PoolLimits, database: Database | None = None) -> tuple[Pools, Clock]:
    clock = Clock()
    return Pools(database or Database.in_memory(), {"p": limits}, clock), clock


def reason(found: Reservation | Shortage) -> str:
    return found.reason if isinstance(found, Shortage) else ""


def test_a_pool_without_limits_always_has_room():
    pools, _ = pools_of(PoolLimits())
    assert isinstance(pools.reserve("p", "a", Estimate(tokens=10**9, usd=10**6)), Reservation)
    assert isinstance(pools.reserve("other", "a", Estimate()), Reservation)


def test_requests_and_tokens_have_room_again_as_the_minute_passes():
    pools, clock = pools_of(PoolLimits(requests_per_minute=2, tokens_per_minute=100))
    assert isinstance(pools.reserve("p", "a", Estimate(tokens=40)), Reservation)
    clock.time += 20
    assert isinstance(pools.reserve("p", "b", Estimate(tokens=40)), Reservation)
    assert pools.reserve("p", "a", Estimate(tokens=1)) == Shortage(
        reason="2 requests in a minute is the limit", wait_seconds=40
    )
    clock.time += 40
    assert reason(pools.reserve("p", "a", Estimate(tokens=61))) == (
        "100 tokens in a minute is the limit"
    )
    assert isinstance(pools.reserve("p", "a", Estimate(tokens=60)), Reservation)


def test_a_request_larger_than_the_minutes_tokens_gets_a_minute_for_itself():
    pools, clock = pools_of(PoolLimits(tokens_per_minute=100))
    assert isinstance(pools.reserve("p", "a", Estimate(tokens=500)), Reservation)
    assert reason(pools.reserve("p", "a", Estimate(tokens=1)))
    clock.time += MINUTE
    assert isinstance(pools.reserve("p", "a", Estimate(tokens=1)), Reservation)
    assert reason(pools.reserve("p", "a", Estimate(tokens=500)))


def test_a_running_request_holds_its_place_until_it_is_settled_or_its_process_must_be_dead():
    pools, clock = pools_of(PoolLimits(concurrency=1))
    lease = pools.reserve("p", "a", Estimate())
    assert isinstance(lease, Reservation)
    assert pools.reserve("p", "a", Estimate()) == Shortage(
        reason="1 request at once is the limit", wait_seconds=inf
    )
    pools.settle(lease, tokens=5, usd=0.0)
    assert isinstance(pools.reserve("p", "a", Estimate()), Reservation)
    clock.time += 901
    assert isinstance(pools.reserve("p", "a", Estimate()), Reservation)


def test_the_budget_of_a_day_counts_what_is_reserved_and_what_was_really_spent():
    pools, clock = pools_of(PoolLimits(usd_per_day=1.0))
    first = pools.reserve("p", "a", Estimate(usd=0.9))
    assert isinstance(first, Reservation)
    short = pools.reserve("p", "a", Estimate(usd=0.2))
    assert isinstance(short, Shortage)
    assert short.wait_seconds == DAY / 2
    pools.settle(first, tokens=10, usd=0.3)
    pools.settle(first, tokens=10, usd=99.0)  # a second time changes nothing
    assert pools.spent_today("p") == pytest.approx(0.3)
    assert isinstance(pools.reserve("p", "a", Estimate(usd=0.7)), Reservation)
    clock.time += DAY / 2
    assert isinstance(pools.reserve("p", "a", Estimate(usd=1.0)), Reservation)


def test_pressure_is_how_far_the_spending_is_ahead_of_the_day():
    pools, clock = pools_of(PoolLimits(usd_per_day=1.0))
    assert pools.pressure("p") == 0.0
    pools.reserve("p", "a", Estimate(usd=0.75))
    assert pools.pressure("p") == pytest.approx(0.25)
    clock.time += DAY / 4
    assert pools.pressure("p") == 0.0
    assert pools.pressure("without limits") == 0.0


def test_several_pools_are_looked_at_at_once():
    pools, _ = pools_of(PoolLimits(requests_per_minute=1))
    pools.reserve("p", "a", Estimate())
    full, free = pools.shortages([("p", Estimate()), ("q", Estimate())])
    assert isinstance(full, Shortage)
    assert free is None


def test_what_an_answer_is_expected_to_be_follows_the_last_ones_of_its_kind():
    pools, _ = pools_of(PoolLimits())
    assert pools.typical(["a", "b"], "fix") == {"a": Typical(), "b": Typical()}

    def answer(arm: str, kind: str, tokens: int, seconds: float) -> None:
        lease = pools.reserve("p", arm, Estimate())
        assert isinstance(lease, Reservation)
        whole = ArmAnswer(arm=arm, kind=kind, tokens=tokens, seconds=seconds)
        pools.settle(lease, tokens=1, usd=0.0, answer=whole)
        pools.settle(lease, tokens=1, usd=0.0, answer=whole)  # a second time changes nothing

    answer("a", "fix", 100, 1.0)
    answer("a", "fix", 300, 3.0)
    assert pools.typical(["a"], "fix")["a"] == Typical(tokens=200, seconds=2)
    answer("a", "docs", 500, 5.0)
    found = pools.typical(["a", "b"], "plan")
    assert found["a"] == Typical(tokens=300, seconds=3), "at a new kind as at all others"
    assert found["b"] == Typical(tokens=300), "a new arm looks neither cheaper nor dearer"
    for _ in range(60):
        answer("a", "fix", 1_000, 10.0)
    now = pools.typical(["a"], "fix")["a"]
    assert 990 < now.tokens < 1_000
    assert now.seconds == pytest.approx(now.tokens / 100)


@pytest.mark.integration
@given(
    limits=st.builds(
        PoolLimits,
        requests_per_minute=st.none() | st.integers(1, 5),
        tokens_per_minute=st.none() | st.integers(50, 200),
        concurrency=st.none() | st.integers(1, 3),
        usd_per_day=st.none() | st.floats(0.5, 2),
    ),
    steps=st.lists(
        st.tuples(st.floats(0, 40), st.integers(0, 50), st.floats(0, 0.5), st.booleans()),
        max_size=40,
    ),
)
def test_whatever_comes_no_pool_is_overdrawn(limits, steps):
    pools, clock = pools_of(limits)
    taken: list[tuple[float, int, float]] = []
    running: list[Reservation] = []
    for pause, tokens, usd, settles in steps:
        clock.time += pause
        if settles and running:
            pools.settle(running.pop(0), tokens=0, usd=0.0)  # less than was reserved
            continue
        lease = pools.reserve("p", "a", Estimate(tokens=tokens, usd=usd))
        if isinstance(lease, Reservation):
            taken.append((clock.time, tokens, usd))
            running.append(lease)
        recent = [each for each in taken if each[0] > clock.time - MINUTE]
        held = [taken[lease.id - 1] for lease in running]
        assert len(recent) <= (limits.requests_per_minute or inf)
        assert sum(each[1] for each in held if each in recent) <= (limits.tokens_per_minute or inf)
        assert len(running) <= (limits.concurrency or inf)
        assert sum(each[2] for each in held) <= (limits.usd_per_day or inf) + 1e-9


def test_threads_that_take_at_once_do_not_take_more_than_there_is(tmp_path: Path):
    database = Database.open(tmp_path / "r.sqlite3", may_write=True)
    pools, _ = pools_of(PoolLimits(usd_per_day=1.0, requests_per_minute=7), database)

    def take(_: int) -> Reservation | Shortage:
        return pools.reserve("p", "a", Estimate(usd=0.1))

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(take, range(24)))
    database.close()
    assert sum(isinstance(each, Reservation) for each in found) == 7


@pytest.mark.integration
async def test_processes_that_take_at_once_do_not_take_more_than_there_is(tmp_path: Path):
    program = f"""
from pathlib import Path
from ybs.config.sections import PoolLimits
from ybs.router.database import Database
from ybs.router.pools import Estimate, Reservation, Pools
pools = Pools(Database.open(Path({str(tmp_path / "r.sqlite3")!r}), may_write=True),
              {{"p": PoolLimits(usd_per_day=1.0)}}, lambda: {NOON})
found = [pools.reserve("p", "a", Estimate(usd=0.1)) for _ in range(8)]
print(sum(isinstance(each, Reservation) for each in found))
"""
    running = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
        )
        for _ in range(3)
    ]
    taken = [int((await each.communicate())[0]) for each in running]
    assert sum(taken) == 10
