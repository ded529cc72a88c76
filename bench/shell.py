"""run_shell: what it adds to a bare spawn, and what it makes of 100 MB of output (a file on disk, flat memory)."""

import sys
from pathlib import Path

from lab import Lab, Row, interleave, median

WORK = str(Path(__file__).with_name("shell_work.py"))
FLOOD_MB = 100


def measure(lab: Lab, rounds: int) -> list[Row]:
    """Run the work in processes of its own, so that memory can be told apart."""

    def numbers(what: str) -> list[float]:
        return [float(word) for word in lab.plain(sys.executable, WORK, what).output.split()]

    runs = interleave(
        rounds,
        spawn=lambda: numbers("spawn"),
        flood=lambda: numbers("flood"),
        still=lambda: numbers("still"),
    )
    ours, bare = (median(run[place] for run in runs["spawn"]) for place in (0, 1))
    seconds, producer, growth = (median(run[place] for run in runs["flood"]) for place in (0, 1, 2))
    one_mb = median(run[2] for run in runs["still"])
    return [
        Row("run_shell true, above subprocess.run", (ours - bare) * 1000, "ms", 5),
        Row("subprocess.run(['/bin/sh', '-c', 'true'])", bare * 1000, "ms"),
        Row(f"time for each MB of {FLOOD_MB} MB of lines", seconds * 1000 / FLOOD_MB, "ms", 10),
        Row("rate, with the whole written to a file", FLOOD_MB / seconds, "MB/s"),
        Row("rate of the same command into /dev/null", FLOOD_MB / producer, "MB/s"),
        Row(f"memory that {FLOOD_MB} MB add to the peak", growth, "MB", 10),
        Row("memory that 1 MB adds to the peak", one_mb, "MB"),
    ]
