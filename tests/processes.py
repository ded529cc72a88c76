"""What tests ask about processes and what they leave: whether one lives or goes, open descriptors, files."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


async def comes(is_so: Callable[[], bool], seconds: float = 5) -> bool:
    """Return whether something is so, or becomes so within a while."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.01)
    return True


async def ends(pid: int) -> bool:
    """Return whether the process is gone, or goes within a moment: a signal needs one to arrive."""
    return await comes(lambda: not is_alive(pid))


def is_running(words: str) -> bool:
    """Return whether a process has these words in its command line."""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words.encode() in each.read_bytes().replace(b"\0", b" "):
                return True
        except OSError:  # it has gone meanwhile
            continue
    return False


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def size_of(path: str) -> int:
    return Path(path).stat().st_size


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def in_no_time(text: str) -> str:
    """Return the text with `0:00` for some seconds, which a busy machine takes for what takes none."""
    return re.sub(r"\b0:0\d\b", "0:00", text)
