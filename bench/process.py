"""Runs one program to its end and tells what the kernel counted: wall time, CPU time, peak memory."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

BYTES_PER_MAXRSS = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Ended:
    """A process that has ended. CPU and memory include the children that it waited for."""

    code: int
    started_at: float
    wall_seconds: float
    cpu_seconds: float
    peak_mb: float
    output: str


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
        _, status, used = os.wait4(process.pid, 0)
        wall_seconds = time.monotonic() - started_at
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(
        code=process.returncode,
        started_at=started_at,
        wall_seconds=wall_seconds,
        cpu_seconds=used.ru_utime + used.ru_stime,
        peak_mb=used.ru_maxrss * BYTES_PER_MAXRSS / 2**20,
        output=log.read_text(errors="replace"),
    )
