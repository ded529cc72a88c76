"""Checkpoints: the look at a tree of 10,000 files before a command, beside what git takes for the same.

The first look keeps every content, as `git add -A` into a fresh index does; the second finds that nothing changed, as
`git status` does. Both sides take turns; the limits hold for the CPU time of all processes.
"""

import asyncio
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from lab import Lab, Row, median

from ybs.checkpoints import scan
from ybs.frontends.host import this_host
from ybs.security.paths.roots import Roots
from ybs.session.undoing import Checkpoints

FILES, FOLDERS = 10_000, 500
MOST_OF_ADD = 1.0
MOST_OF_STATUS = 3.0
_LEAST_ROUNDS = 3

Cost = tuple[float, float]


def measure(lab: Lab, rounds: int) -> list[Row]:
    project = lab.folder / "tree"
    plant(project)
    environment = lab.environment | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": str(lab.folder / "git")}
    os.environ.update(HOME=lab.environment["HOME"])
    firsts: list[tuple[Cost, Cost]] = []
    seconds: list[tuple[Cost, Cost]] = []
    time.sleep(scan.UNSETTLED_NS / 1e9 + 0.1)  # what was written a moment ago is read twice
    for _ in range(max(rounds // 2, _LEAST_ROUNDS)):
        shutil.rmtree(lab.folder / "git", ignore_errors=True)
        git("init", project, environment, "--quiet")
        checkpoints = Checkpoints(Roots(this_host(), project), "session-1", may_write=True)
        first = cost(lambda: look(checkpoints))  # noqa: B023 - called at once
        firsts.append((first, cost(lambda: git("add", project, environment, "-A"))))
        second = cost(lambda: look(checkpoints))  # noqa: B023 - called at once
        seconds.append((second, cost(lambda: git("status", project, environment, "--short"))))
        checkpoints.close()
    return [
        *rows("first look / git add -A", firsts, MOST_OF_ADD),
        *rows("second look / git status", seconds, MOST_OF_STATUS),
    ]


def rows(name: str, costs: list[tuple[Cost, Cost]], most: float) -> list[Row]:
    ours, theirs = ([pair[side] for pair in costs] for side in (0, 1))
    times = [median(one[0] for one in side) for side in (ours, theirs)]
    used = [median(one[1] for one in side) for side in (ours, theirs)]
    note = f"time {times[0] / times[1]:.2f}; {used[0] * 1000:.0f} and {used[1] * 1000:.0f} ms"
    return [Row(f"{name}, CPU time", used[0] / used[1], "x", most, note)]


def plant(project: Path) -> None:
    """Make a tree as a project is: small texts, all of them different."""
    for number in range(FILES):
        folder = project / f"part{number % 25}" / f"m{number % FOLDERS}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = (f"value_{number}_{line} = {line * number}\n" for line in range(number % 200))
        (folder / f"file{number}.py").write_text("".join(lines))


def look(checkpoints: Checkpoints) -> None:
    checkpoints.begin()
    asyncio.run(checkpoints.before_change("execute", ["."]))
    if checkpoints.notice:
        raise SystemExit(f"checkpoints: {checkpoints.notice}")


def git(command: str, project: Path, environment: dict[str, str], *options: str) -> None:
    subprocess.run(
        ["git", f"--work-tree={project}", command, *options],
        cwd=project,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def cost(act: Callable[[], None]) -> Cost:
    """Return the seconds it takes, and the CPU time of this process and those it starts."""
    began, used = time.perf_counter(), cpu()
    act()
    return time.perf_counter() - began, cpu() - used


def cpu() -> float:
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)
