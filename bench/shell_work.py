"""The work behind shell.py, in a process of its own: prints numbers for it."""

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from process import BYTES_PER_MAXRSS

from ybs.core.ports import ToolOutput
from ybs.frontends.host import this_host
from ybs.security.paths.roots import Roots
from ybs.tools.builtin.run_shell import RunShell, RunShellArguments
from ybs.tools.workspace import Workspace

SPAWNS = 40
FLOOD = "yes 0123456789012345678901234567890123456789012345678 | head -c {bytes}"


def main(what: str) -> None:
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        workspace = Workspace(Roots(this_host(), Path(folder)))
        shell = RunShell(workspace)

        def run(command: str) -> ToolOutput:
            return runner.run(shell.run(RunShellArguments(command=command), ignore))

        run("true")  # what is loaded once
        try:
            if what == "spawn":
                print(*spawns(run))
            else:
                print(*flood(run, 100_000_000 if what == "flood" else 1_000_000))
        finally:
            runner.run(workspace.shells.aclose())


def spawns(run: Callable[[str], ToolOutput]) -> tuple[float, float]:
    """Return the median seconds of a call and of a bare spawn, by turns."""
    ours, bare = [], []
    for _ in range(SPAWNS):
        started = time.perf_counter()
        run("true")
        between = time.perf_counter()
        subprocess.run(["/bin/sh", "-c", "true"], check=True)
        ours.append(between - started)
        bare.append(time.perf_counter() - between)
    return sorted(ours)[SPAWNS // 2], sorted(bare)[SPAWNS // 2]


def flood(run: Callable[[str], ToolOutput], size: int) -> tuple[float, float, float]:
    """Return the seconds that the output took, those into nothing, and by how many MB the peak grew."""
    command = FLOOD.format(bytes=size)
    before = peak_mb()
    started = time.perf_counter()
    done = run(command)
    seconds = time.perf_counter() - started
    growth = peak_mb() - before
    file = Path(done.display["output_file"])
    if file.stat().st_size != size:
        raise SystemExit(f"{file} has {file.stat().st_size} bytes, so the times mean nothing")
    file.unlink()
    started = time.perf_counter()
    subprocess.run(["/bin/sh", "-c", f"{command} > /dev/null"], check=True)
    return seconds, time.perf_counter() - started, growth


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * BYTES_PER_MAXRSS / 2**20


def ignore(text: str) -> None:
    del text


if __name__ == "__main__":
    main(sys.argv[1])
