"""System information: one short line about this version, the model and the machine. No program is started for it."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ybs.context.project import clean
from ybs.context.prompt import Section

MOST_BYTES = 120
_MOST_MODEL_BYTES = 60
_CGROUPS = Path("/sys/fs/cgroup")


def system_information(
    version: str, provider: str, model: str, window: int, max_tokens: int
) -> Section:
    """Say in one line what runs here and on what. It is in every request: what does not fit into 120 bytes is left out."""
    text = f"ybs {clean(version)}, {clean(provider)} {_shortened(model)}".rstrip()
    limits = f"window {window:,}" if window > 0 else ""
    if limits and 0 < max_tokens < window:
        limits += f" (answers up to {max_tokens:,})"
    for part in (limits, *_machine()):
        longer = f"{text}, {part}" if part else text
        if len(longer.encode()) <= MOST_BYTES:
            text = longer
    return Section(name="system", text=text.encode()[:MOST_BYTES].decode(errors="ignore"))


def _shortened(model: str) -> str:
    model = clean(model)
    if len(model.encode()) > _MOST_MODEL_BYTES:
        model = f"{model.encode()[: _MOST_MODEL_BYTES - 3].decode(errors='ignore')}…"
    return model


def cores() -> int:
    """Return how many processors this process may use at once; a container's share counts."""
    has_affinity = hasattr(os, "sched_getaffinity")
    count = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    for words in _limits("cpu.max"):
        match words.split():
            case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):
                count = min(count, -(-int(quota) // int(period)))
            case _:
                pass
    return max(count, 1)


def memory_bytes() -> int:
    """Return the memory that this process may use, a container's limit included; 0 where nobody says."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0
    limits = [int(words) for words in _limits("memory.max") if words.isdecimal()]
    return min([total, *limits])


def _machine() -> Iterator[str]:
    count = cores()
    yield f"{count} core{'' if count == 1 else 's'}"
    if memory := memory_bytes():
        yield f"{memory / 2**30:.0f} GB" if memory >= 2**30 else f"{memory / 2**20:.0f} MB"
    yield _system()


def _system() -> str:
    if not hasattr(os, "uname"):
        return sys.platform
    facts = os.uname()
    return f"{'macOS' if facts.sysname == 'Darwin' else facts.sysname} {facts.machine}"


def _limits(name: str) -> Iterator[str]:
    """Read a limit of this process's cgroup and of those around it (https://docs.kernel.org/admin-guide/cgroup-v2.html)."""
    if sys.platform != "linux":
        return
    lines = _read(Path("/proc/self/cgroup")).splitlines()
    own = next((line[3:] for line in lines if line.startswith("0::/")), "")
    folder = _CGROUPS / own.lstrip("/")
    for place in (folder, *folder.parents):
        yield _read(place / name).strip()
        if place == _CGROUPS:
            return


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except (OSError, ValueError):
        return ""
