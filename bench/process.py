"""Runs one program to its end and tells what the kernel counted: wall time, CPU time, peak memory."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

LOOK_SECONDS = 0.04
BYTES_PER_MAXRSS = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Ended:
    """A process that has ended. CPU and memory include the children that it waited for.

    `peak_mb` is of the largest process, `tree_mb` the most that it had together with those below it.
    """

    code: int
    started_at: float
    wall_seconds: float
    cpu_seconds: float
    peak_mb: float
    output: str
    tree_mb: float = 0.0


def run(
    argv: list[str], folder: Path, environment: dict[str, str], limit_seconds: float = 120
) -> Ended:
    """Run a program with its output kept in a file, so that nobody has to read along."""
    log = folder.with_name(folder.name + ".out")
    with log.open("wb") as out:
        started_at = time.monotonic()
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        timer = threading.Timer(limit_seconds, process.kill)
        timer.start()
        watcher = Watcher(process.pid)
        _, status, used = os.wait4(process.pid, 0)
        wall_seconds = time.monotonic() - started_at
        timer.cancel()
        watcher.end()
        process.returncode = os.waitstatus_to_exitcode(status)
    largest_mb = used.ru_maxrss * BYTES_PER_MAXRSS / 2**20
    return Ended(
        code=process.returncode,
        started_at=started_at,
        wall_seconds=wall_seconds,
        cpu_seconds=used.ru_utime + used.ru_stime,
        peak_mb=largest_mb,
        output=log.read_text(errors="replace"),
        tree_mb=max(watcher.peak_mb, largest_mb),
    )


class Watcher:
    """Adds up the memory of a process and all below it, now and then, where there is a /proc.

    A process counts from the second look on: one that was just forked still shares all with its parent.
    """

    def __init__(self, pid: int) -> None:
        self.peak_mb = 0.0
        self._pid, self._seen = pid, set()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def end(self) -> None:
        """Look no more."""
        self._has_ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._has_ended.wait(LOOK_SECONDS):
            now = memory_below(self._pid)
            total = sum(size for pid, size in now.items() if pid in self._seen)
            self._seen = set(now)
            self.peak_mb = max(self.peak_mb, total / 2**20)


def memory_below(top: int) -> dict[int, int]:
    """Return the resident bytes of a process and of each below it."""
    children: dict[int, list[int]] = {}
    sizes: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            facts = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(facts[1]), []).append(int(folder.name))
        sizes[int(folder.name)] = int(facts[21]) * os.sysconf("SC_PAGE_SIZE")
    found, waiting = {}, [top]
    while waiting:
        pid = waiting.pop()
        found[pid] = sizes.get(pid, 0)
        waiting += children.get(pid, [])
    return found
