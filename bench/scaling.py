"""What gateways and their database carry: `python bench/scaling.py` calculates, `--measure` measures first what that stands on.

`--measure [--chats 30] [--seconds 15]` has one gateway with a real PostgreSQL server, and a model that takes a second, answer each
session twice: CPU seconds, statements, and bytes of a turn do not depend on what else the machine does. The second turn of each session counts.
The rest is arithmetic and a simulation of queues with the figures of `MEASURED` and `ASSUMED`; docs/scaling.md has what it printed.
"""

import argparse
import asyncio
import heapq
import math
import os
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))  # for its scripted servers

from gateway import Chats, Model, cpu_seconds, megabytes, until

from chat_faults import GatewayProcess
from chat_platform import ChatPlatform
from postgres import Postgres, postgres

#: Of `--measure`: what a turn of one model call costs, and what a gateway costs that has nothing to do.
MEASURED = {
    "cpu_seconds": 0.0763,
    "database_cpu_seconds": 0.017,
    "statements": 76.4,
    "statement_seconds": 3.36e-05,
    "wal_bytes": 8_550.0,
    "stored_bytes": 2_180.0,
    "idle_statements_per_second": 62.0,
    "idle_cpu": 0.058,
    "megabytes_per_session": 0.35,
    "megabytes": 95.0,
}
#: Nobody has measured these: put your own in.
ASSUMED = {
    "sessions": 100_000.0,
    "turns_per_session_and_day": 10.0,
    "share_of_busiest_hour": 0.12,
    "turn_seconds": 30.0,  # of which ybs itself takes what was measured
    "model_calls_per_turn": 4.0,  # each costs what a turn of one call was measured to
    "open_share": 0.05,  # of the sessions, open in memory at once
    "round_trip_seconds": 0.0005,  # between a gateway and its database
}
#: `turns.py`: so many turns of a gateway run at once.
AT_ONCE = 64
MOST_WAIT = 0.5


class Use:
    """What gateway and database have used so far."""

    def __init__(self, server: Postgres, pid: int) -> None:
        self.cpu, self.database_cpu = cpu_seconds(pid), tree_seconds(server.pid)
        counted = server.ask(
            "SELECT sum(calls), sum(total_exec_time) / 1000, pg_current_wal_lsn() - '0/0'::pg_lsn,"
            " pg_database_size(current_database()) FROM pg_stat_statements"
        )
        self.statements, self.seconds, self.wal, self.stored = map(float, counted.split("|"))

    def since(self, earlier: "Use", count: float) -> dict[str, float]:
        """Return what was used since then, for each of so many."""
        statements = self.statements - earlier.statements
        return {
            "cpu_seconds": (self.cpu - earlier.cpu) / count,
            "database_cpu_seconds": (self.database_cpu - earlier.database_cpu) / count,
            "statements": statements / count,
            "statement_seconds": (self.seconds - earlier.seconds) / statements,
            "wal_bytes": (self.wal - earlier.wal) / count,
            "stored_bytes": (self.stored - earlier.stored) / count,
        }


def tree_seconds(pid: int) -> float:
    """Return the CPU time of a process and of those below it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    return cpu_seconds(pid) + sum(tree_seconds(int(each)) for each in children)


async def measure(sessions: int, seconds: float) -> dict[str, float]:
    """Return the measured figures."""
    model: Any = Model()
    with TemporaryDirectory(prefix="ybs-") as folder:
        os.chmod(folder, 0o711)  # noqa: PTH101 - the database is another user's
        with postgres(Path(folder) / "database") as server:
            server.ask("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
            server.end()
            server.start()
            server.ask("CREATE EXTENSION pg_stat_statements")
            async with ChatPlatform() as platform, model:
                home = Path(folder) / "home"
                owners = range(1, sessions + 1)
                gateway = GatewayProcess(home, platform, model, owners, server.url)
                await gateway.start()
                try:
                    return await _measured(Chats(gateway, model, sessions), server, seconds)
                finally:
                    await gateway.kill()


async def _measured(chats: Chats, server: Postgres, seconds: float) -> dict[str, float]:
    await until(lambda: chats.platform.polls > 1, 60)
    empty = megabytes(chats.pid())
    await answered(chats, "first", seconds)
    quiet = Use(server, chats.pid())
    each = (megabytes(chats.pid()) - empty) / chats.sessions
    await asyncio.sleep(5)
    begun = Use(server, chats.pid())
    idle = begun.since(quiet, 5)
    await answered(chats, "later", seconds)
    found = Use(server, chats.pid()).since(begun, chats.sessions)
    for name in ("cpu_seconds", "database_cpu_seconds", "statements", "wal_bytes"):
        found[name] -= idle[name] * seconds / chats.sessions
    return found | {
        "idle_statements_per_second": idle["statements"],
        "idle_cpu": idle["cpu_seconds"],
        "megabytes_per_session": each,
        "megabytes": empty,
    }


async def answered(chats: Chats, kind: str, seconds: float) -> None:
    """Have each chat write once, and wait for all answers."""
    names = await chats.write(kind, seconds)
    await until(lambda: {*names} <= chats.answered().keys(), 300)
    await asyncio.sleep(2)


def wait95(rate: float, servers: int, service: Callable[[], float], count: int = 60_000) -> float:
    """Return how long 95 of 100 wait at most: arrivals at random, one queue, so many servers."""
    chance, free = random.Random(1), [0.0] * servers
    now, waits = 0.0, list[float]()
    for _ in range(count):
        now += chance.expovariate(rate)
        begins = max(now, heapq.heappop(free))
        heapq.heappush(free, begins + service())
        waits.append(begins - now)
    return statistics.quantiles(waits[count // 6 :], n=20)[-1]


def varying(mean: float) -> Callable[[], float]:
    """Return times of a long-tailed kind (log-normal, sigma 1) with a mean."""
    chance = random.Random(2)
    return lambda: chance.lognormvariate(math.log(mean) - 0.5, 1.0)


def least(rate: float, service: Callable[[], float], load: float) -> int:
    """Return with how many servers 95 of 100 wait at most `MOST_WAIT`; `load` is how many are busy on average."""
    servers = math.ceil(load) or 1
    while wait95(rate, servers, service) > MOST_WAIT:
        servers += max(1, servers // 50)
    return servers


def calculate(costs: dict[str, float], given: dict[str, float]) -> None:
    """Print what so many sessions need, and what breaks first with one gateway."""
    rate = given["sessions"] * given["turns_per_session_and_day"] * given["share_of_busiest_hour"]
    rate /= 3_600
    calls, length = given["model_calls_per_turn"], given["turn_seconds"]
    cpu, in_series = costs["cpu_seconds"] * calls, costs["statement_seconds"]
    in_series = (in_series + given["round_trip_seconds"]) * costs["statements"] * calls
    print(f"busiest hour  {rate:.1f} turns/s, {rate * length:,.0f} at once")
    for name, most in (("turns at once", AT_ONCE / length), ("CPU, one core", 1 / cpu), ("statements in series", 1 / in_series)):  # fmt: skip
        print(f"one gateway   {most:6.1f} turns/s by {name}")
    slots = least(rate, varying(length), rate * length)
    cores = least(rate, lambda: cpu, rate * cpu)
    threads = least(rate, lambda: in_series, rate * in_series)
    needed = max(math.ceil(slots / AT_ONCE), cores, threads)
    print(
        f"needed        {slots:,} turns at once = {math.ceil(slots / AT_ONCE)} gateways; {cores} by CPU; {threads} by statements"
    )
    memory = costs["megabytes"] * needed
    memory += costs["megabytes_per_session"] * given["sessions"] * given["open_share"]
    idle = costs["idle_statements_per_second"] * needed
    print(f"memory        {memory / 1_000:.0f} GB in {needed} gateways")
    print(f"database      {rate * calls * costs['statements'] + idle:,.0f} statements/s, {idle:,.0f} of them idle; "
          f"{rate * calls * costs['database_cpu_seconds']:.1f} cores; WAL {rate * calls * costs['wal_bytes'] / 1e6:.1f} MB/s")  # fmt: skip
    a_day = given["sessions"] * given["turns_per_session_and_day"] * calls
    print(
        f"              {a_day * costs['stored_bytes'] / 1e9:.0f} GB a day, of which transcripts stay"
    )


def show(title: str, figures: dict[str, float]) -> None:
    """Print figures."""
    for name, value in figures.items():
        print(f"{title:10} {name:28} {value:,.6g}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Calculate what gateways need.")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--chats", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=15.0)
    for name, value in ASSUMED.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=value)
    options = parser.parse_args()
    costs = MEASURED
    if options.measure:
        costs = asyncio.run(measure(options.chats, options.seconds))
    given = {name: getattr(options, name) for name in ASSUMED}
    show("measured", costs)
    show("assumed", given)
    calculate(costs, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
