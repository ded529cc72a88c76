"""The machine, and the project as far as a look at its folder tells: in few words. No program is started."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ybs.security.paths.opening import read_beginning
from ybs.security.paths.repository import find_repository

MAX_NAMES = 40
MAX_BRANCH_CHARS, MAX_NAME_CHARS = 100, 80
_MOST_BYTES = 1024


def branch_of(folder: Path) -> str:
    """Return the git branch checked out around `folder`, a short commit when detached, or an empty string.

    The files are the project's, so nothing in them is trusted: little is read, and only what can be printed.
    """
    try:
        head = clean(_first_line(find_repository(folder).git_folder / "HEAD"))
    except (OSError, ValueError, RuntimeError):
        return ""
    if head.startswith("ref:"):
        return head.removeprefix("ref: refs/heads/")[:MAX_BRANCH_CHARS]
    return head[:8] if re.fullmatch("[0-9a-f]+", head) else ""


def _first_line(path: Path) -> str:
    try:
        data = read_beginning(path, _MOST_BYTES) or b""
    except (OSError, ValueError):
        return ""
    return data.decode(errors="replace").partition("\n")[0].strip()


def top_level(folder: Path) -> list[str]:
    """List the folder's own entries, folders first and marked by a slash; hidden ones are left out."""

    def names() -> Iterator[tuple[bool, str]]:
        for entry in folder.iterdir():
            if not entry.name.startswith("."):
                is_folder = entry.is_dir()
                yield not is_folder, entry.name + "/" * is_folder

    try:
        listed = [_cut(name) for _, name in sorted(names())]
    except OSError:
        return []
    if len(listed) > MAX_NAMES:
        listed = [*listed[:MAX_NAMES], f"… {len(listed) - MAX_NAMES} more"]
    return listed


def _cut(name: str) -> str:
    return name if len(name) <= MAX_NAME_CHARS else name[: MAX_NAME_CHARS - 1] + "…"


def clean(line: str) -> str:
    """Keep odd names from breaking the line they stand in, and from hiding anything in it."""
    if line.isascii() and line.isprintable():
        return line
    from ybs.security.unicode import replace_hidden  # most names are plain

    line = "".join(c if c.isprintable() else "�" for c in line)
    return replace_hidden(line, lambda _: "�")


MOST_BYTES = 120
_MOST_MODEL_BYTES = 60
_CGROUPS = Path("/sys/fs/cgroup")


def system_information(
    version: str, provider: str, model: str, window: int, max_tokens: int
) -> str:
    """Say in one line what runs here and on what. It is in every request: what does not fit into 120 bytes is left out."""
    text = f"ybs {clean(version)}, {clean(provider)} {_shortened(model)}".rstrip()
    limits = f"window {window:,}" if window > 0 else ""
    if limits and 0 < max_tokens < window:
        limits += f" (answers up to {max_tokens:,})"
    for part in (limits, *_machine()):
        longer = f"{text}, {part}" if part else text
        if len(longer.encode()) <= MOST_BYTES:
            text = longer
    return text.encode()[:MOST_BYTES].decode(errors="ignore")


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
