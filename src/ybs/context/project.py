"""The project as far as a look at its folder tells: its branch and its top level. No program is started."""

import re
from collections.abc import Iterator
from pathlib import Path

from ybs.security.paths.opening import read_beginning

MAX_NAMES = 40
MAX_BRANCH_CHARS, MAX_NAME_CHARS = 100, 80
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
