"""Which tools a model is told of by itself; it may call the others too."""

import os
from pathlib import Path
from typing import Final

DELEGATE: Final = "delegate"
#: From this window on a model is told of all tools: for others each word is dear.
LARGE_WINDOW: Final = 65_536
#: In a project of so many files reading is work that is worth handing on. An entry of git's index has about so many bytes.
MANY_FILES: Final = 200
_INDEX_BYTES: Final = 100
_SOUL: Final = frozenset({"update_identity"})
_ONLY_LARGE: Final = frozenset({"ask_user", "todo"})
_ONLY_LONG: Final = frozenset({"repo_map", "memorize", "set_thought", "skill"})


def unoffered(
    own_folder: Path, window: int, *, is_short: bool, delegates: bool = False
) -> frozenset[str]:
    """Name the tools that a model with this window is not told of; `own_folder` is that of the person's documents."""
    if is_short:
        return _SOUL | _ONLY_LARGE | _ONLY_LONG | {DELEGATE}
    has_soul = (own_folder / "AGENT.md").is_file() or (own_folder / "IDENTITY.md").is_file()
    rare = frozenset[str]() if window >= LARGE_WINDOW else _ONLY_LARGE
    rare = rare if delegates else rare | {DELEGATE}
    return rare if has_soul else rare | _SOUL


def has_many_files(folder: Path) -> bool:
    """Return whether a project has many files: by the size of git's index, without git by the entries of its upper two levels."""
    try:
        return os.stat(folder / ".git" / "index").st_size > MANY_FILES * _INDEX_BYTES  # noqa: PTH116 - at every start
    except OSError:
        count = 0
        for path in (folder, *_folders_in(folder)):
            count += len(_names_in(path))
            if count > MANY_FILES:
                return True
        return False


def _names_in(folder: str | Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name[0] != "."]  # noqa: PTH208 - at every start
    except OSError:
        return []


def _folders_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [each.path for each in entries if each.name[0] != "." and each.is_dir()]
    except OSError:
        return []
