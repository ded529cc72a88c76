"""Which tools a model is told of by itself; it may call the others too."""

from pathlib import Path
from typing import Final

#: From this window on a model is told of all tools: for others each word is dear.
LARGE_WINDOW: Final = 65_536
_SOUL: Final = frozenset({"update_identity"})
_ONLY_LARGE: Final = frozenset({"ask_user", "todo"})
_ONLY_LONG: Final = frozenset({"repo_map", "memorize", "set_thought", "skill"})


def unoffered(own_folder: Path, window: int, *, is_short: bool) -> frozenset[str]:
    """Name the tools that a model with this window is not told of; `own_folder` is that of the person's documents."""
    if is_short:
        return _SOUL | _ONLY_LARGE | _ONLY_LONG
    has_soul = (own_folder / "AGENT.md").is_file() or (own_folder / "IDENTITY.md").is_file()
    rare = frozenset[str]() if window >= LARGE_WINDOW else _ONLY_LARGE
    return rare if has_soul else rare | _SOUL
