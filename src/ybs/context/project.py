"""The project as far as a look at its folder tells: its branch and its top level. No program is started."""

from collections.abc import Iterator
from pathlib import Path

MAX_NAMES = 40


def branch_of(folder: Path) -> str:
    """Return the git branch checked out around `folder`, a short commit when detached, or an empty string."""
    git = next(
        (found for parent in (folder, *folder.parents) if (found := parent / ".git").exists()), None
    )
    if git is None:
        return ""
    try:
        if git.is_file():  # a worktree or submodule: the file names the real place
            git = git.parent / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
    except (OSError, ValueError):
        return ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else head[:8]


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
