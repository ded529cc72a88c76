"""The project as far as a look at its folder tells: its branch and its top level. No program is started."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

MAX_NAMES = 40
MAX_BRANCH_CHARS = 100
_MOST_BYTES = 1024


def branch_of(folder: Path) -> str:
    """Return the git branch checked out around `folder`, a short commit when detached, or an empty string.

    The files are the project's, so nothing in them is trusted: little is read, and only what can be printed.
    """
    git = next(
        (found for parent in (folder, *folder.parents) if (found := parent / ".git").exists()), None
    )
    if git is None:
        return ""
    if git.is_file():  # a worktree or submodule: the file names the real place
        git = git.parent / _first_line(git).removeprefix("gitdir:").strip()
    head = clean(_first_line(git / "HEAD"))
    branch = head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else head[:8]
    return branch[:MAX_BRANCH_CHARS]


def _first_line(path: Path) -> str:
    """Read the beginning of a regular file; an empty string for anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return ""
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return file.read(_MOST_BYTES).decode(errors="replace").partition("\n")[0].strip()


def top_level(folder: Path) -> list[str]:
    """List the folder's own entries, folders first and marked by a slash; hidden ones are left out."""

    def names() -> Iterator[tuple[bool, str]]:
        for entry in folder.iterdir():
            if not entry.name.startswith("."):
                is_folder = entry.is_dir()
                yield not is_folder, entry.name + "/" * is_folder

    try:
        listed = [name for _, name in sorted(names())]
    except OSError:
        return []
    if len(listed) > MAX_NAMES:
        listed = [*listed[:MAX_NAMES], f"… {len(listed) - MAX_NAMES} more"]
    return listed


def clean(line: str) -> str:
    """Keep odd names from breaking the line they stand in."""
    return "".join(c if c.isprintable() else "�" for c in line)
