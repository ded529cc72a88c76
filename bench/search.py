"""Search: the tool `search_files` beside a bare run of the same rg over the same folder.

`BENCH_FOLDER` names the folder; without it the packages of this interpreter are searched. `BENCH_SECONDS` (5) is what a
pattern may take: the rounds end with it, but for the first three. The limits hold for the time; CPU time of all
processes is told beside it, since it means the same on a busy machine.
"""

import asyncio
import os
import resource
import subprocess
import sysconfig
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from lab import Lab, Row, median

from ybs.config.host import Host
from ybs.security.paths.roots import Roots
from ybs.tools.builtin.search_files import SearchFiles, SearchFilesArguments
from ybs.tools.searching.engine import program
from ybs.tools.workspace import Workspace

PATTERNS = {
    "literal": "ImportError",
    "common literal": "import",
    "absent": "zzqqxx",
    "definition": r"def \w+\(",
    "anchored": r"^\s*(def|class)\s+\w+",
    "ignoring case": "(?i)timeouterror",
    "alternatives": "TODO|FIXME|XXX",
    "word": r"\bself\b",
    "lazy": r"raise \w+Error\(.*?\)",
    "classes": r"[A-Z]{4,}_[A-Z]{3,}",
    "end of line": "return None$",
    "no fixed text": r"\b[0-9a-f]{8}\b",
}
MOST = 1.3


LEAST_ROUNDS = 3
Cost = tuple[float, float]


def measure(lab: Lab, rounds: int) -> list[Row]:
    del lab
    folder = Path(os.environ.get("BENCH_FOLDER") or sysconfig.get_paths()["purelib"])
    seconds = float(os.environ.get("BENCH_SECONDS") or 5)
    roots = Roots(Host.of(dict(os.environ)), folder)
    tool = SearchFiles(Workspace(roots))
    rg = program(roots.host.environ)
    spawn = middle([cost(lambda: bare([rg, "--version"], folder)) for _ in range(9)])
    rows: list[Row] = []
    sums = [(0.0, 0.0)] * 2
    for name, pattern in PATTERNS.items():
        command = [rg, "--count", "--hidden", "--no-require-git", "--regexp", pattern, "."]
        calls = (partial(bare, command, folder), partial(ask, pattern, tool))
        costs = by_turns(calls, rounds, seconds)
        sums = [(old[0] + new[0], old[1] + new[1]) for old, new in zip(sums, costs, strict=True)]
        rows.append(ratio(name, costs, spawn))
    rows.append(ratio("all patterns", sums, (spawn[0] * len(PATTERNS), spawn[1] * len(PATTERNS))))
    rows.append(Row("all patterns: rg", sums[0][0] * 1000, "ms"))
    return rows


def ratio(name: str, costs: Sequence[Cost], spawn: Cost) -> Row:
    (bare_time, bare_cpu), (time, cpu) = costs
    said = f"CPU time {(cpu - spawn[1]) / bare_cpu:.2f}"
    return Row(
        f"{name}: tool, less one start, / rg", (time - spawn[0]) / bare_time, "x", MOST, said
    )


def by_turns(calls: Sequence[Callable[[], object]], rounds: int, seconds: float) -> list[Cost]:
    """Return the median cost of each call; they take turns, until there were enough rounds or the time is over."""
    costs: list[list[Cost]] = [[] for _ in calls]
    end = time.monotonic() + seconds
    for done in range(max(rounds, LEAST_ROUNDS)):
        if done >= LEAST_ROUNDS and time.monotonic() > end:
            break
        for place, call in enumerate(calls):
            costs[place].append(cost(call))
    return [middle(found) for found in costs]


def middle(costs: Sequence[Cost]) -> Cost:
    return median(time for time, _ in costs), median(cpu for _, cpu in costs)


def cost(call: Callable[[], object]) -> Cost:
    """Return time and CPU time in seconds, that of ended processes included."""
    start, cpu_start = time.perf_counter(), cpu_seconds()
    call()
    return time.perf_counter() - start, cpu_seconds() - cpu_start


def cpu_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def bare(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, capture_output=True, check=False)


def ask(pattern: str, tool: SearchFiles) -> None:
    asyncio.run(tool.run(SearchFilesArguments(pattern=pattern), print))
