"""Completion of paths: the index of 100,000 files, beside `rg --files`, and the time that each key takes."""

import asyncio
import sys
import time
from functools import partial
from pathlib import Path

from lab import Lab, Row, median
from listing import make_files
from search import bare, by_turns

from ybs.frontends.host import this_host
from ybs.frontends.terminal.prompt.file_index import FileIndex
from ybs.security.paths.roots import Roots

SECONDS = 5.0
MOST = 2.5
MOST_KEY_MS = 15.0
#: Typed letter by letter: plain names, parts of paths, letters here and there, and what is nowhere.
WORDS = (
    *("file-12", "pack1/part33/file", "part499/file-199.py", "file-1.txt", "pack3/", ".py"),
    *("p1f19", "fl99py", "pk9p4", "f1t", "pack1part33", "filepackpy", "zebra", "fqlw", "x/y/z"),
)


def measure(lab: Lab, rounds: int) -> list[Row]:
    rg = str(Path(sys.executable).with_name("rg"))
    folder = lab.folder / "many-names"
    make_files(folder)
    (folder / ".gitignore").write_text("*.log\nbuild/\nnode_modules/\n")
    calls = (
        partial(bare, [rg, "--files", "--hidden", "--no-require-git"], folder),
        partial(load, folder),
    )
    (time_rg, cpu_rg), (our_time, our_cpu) = by_turns(calls, rounds, SECONDS)
    keys = sorted(key_times(asyncio.run(loaded(folder)), rounds))
    return [
        Row("load / rg --files", our_time / time_rg, "x", MOST, f"CPU time {our_cpu / cpu_rg:.2f}"),
        Row("load", our_time * 1000, "ms"),
        Row("one key, CPU time, median", median(keys), "ms"),
        Row("one key, CPU time, p95", keys[int(len(keys) * 0.95)], "ms", MOST_KEY_MS),
        Row("one key, CPU time, slowest", keys[-1], "ms"),
    ]


def load(folder: Path) -> FileIndex:
    return asyncio.run(loaded(folder))


async def loaded(folder: Path) -> FileIndex:
    index = FileIndex(Roots(this_host(), folder))
    index.refresh()
    await index.settle()
    return index


def key_times(index: FileIndex, rounds: int) -> list[float]:
    """Return the milliseconds of each key: the median of the rounds, which take turns."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for word in WORDS:
            for end in range(len(word) + 1):
                start = time.process_time()
                index.find(word[:end])
                times.setdefault(word[:end], []).append((time.process_time() - start) * 1000)
    return [median(each) for each in times.values()]
