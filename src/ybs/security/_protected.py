"""What a caged program may read in a writable folder but not change: files that others act on later."""

import os
from collections.abc import Iterator
from pathlib import Path

from ybs.security import credentials
from ybs.security.places import lies_in

GIT = ".git"
#: Names at the top of a project that editors, agents, git and shells take settings or programs from.
NAMES = (
    *(GIT, ".ybs", ".ybs.json", ".mcp.json", ".vscode", ".idea", ".cursor", ".claude", ".codex"),
    *(".gemini", ".envrc", ".devcontainer", ".husky", ".githooks", ".gitmodules"),
)
#: Nested repositories are looked for this deep, and in this many folders, so that no start takes long.
_DEPTH = 3
_MOST_FOLDERS = 400
_SKIPPED = frozenset({"node_modules", ".venv", "venv", "target", "__pycache__", ".tox", "dist"})
_LONGEST_POINTER = 4096


def protected(root: str) -> list[str]:
    """Return what exists of the protected names, and the nested `.git` that are found quickly.

    Never a name that is missing: hiding one leaves an empty file behind.
    """
    found = [path for name in NAMES if os.path.lexists(path := f"{root}/{name}")]
    return [*found, *_nested_gits(root)]


def host_secrets() -> list[str]:
    """Return the secrets of the system that this person could read."""
    try:
        keys = [name for name in os.listdir("/etc/ssh") if name.startswith("ssh_host_")]  # noqa: PTH208
    except OSError:
        keys = []
    named = (*credentials.SYSTEM, *(f"/etc/ssh/{name}" for name in keys if name.endswith("_key")))
    return [path for path in named if os.access(path, os.R_OK)]


def is_link(path: str) -> bool:
    """Tell whether the last part is a link, which a mount cannot protect: it can be swapped for a folder."""
    return Path(path).is_symlink()


def git_folders(root: str) -> list[str]:
    """Return the folders outside `root` that a worktree's `.git` file points to, if they are proved.

    A caged program could write such a file to have any folder shown, so the folder has to point back:
    git writes that for its worktrees, and nobody in the cage can write it outside of the project.
    """
    pointer = Path(root, ".git")
    if pointer.is_symlink() or not pointer.is_file():
        return []
    named = _text_of(pointer)
    if not named.startswith("gitdir:"):
        return []
    folder = Path(os.path.realpath(Path(root, named.removeprefix("gitdir:").strip())))
    if lies_in(str(folder), root):
        return []
    back = _text_of(folder / "gitdir").strip()
    if not back or os.path.realpath(back) != str(pointer):
        return []
    common = folder.parent.parent
    is_one = folder.parent.name == "worktrees" and (common / "HEAD").is_file()
    return [str(common)] if is_one and (common / "objects").is_dir() else []


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(_LONGEST_POINTER))
    except OSError:
        return ""


def _nested_gits(root: str) -> Iterator[str]:
    """Yield the `.git` of repositories in the repository, nearest first."""
    level, seen = [root], 0
    for _ in range(_DEPTH):
        below: list[str] = []
        for folder in level:
            seen += 1
            if seen > _MOST_FOLDERS:
                return
            below += _folders_in(folder)
        for folder in below:
            if os.path.lexists(git := f"{folder}/.git"):
                yield git
        level = below


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [
                entry.path
                for entry in entries
                if entry.name not in _SKIPPED
                and entry.name not in NAMES
                and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []
