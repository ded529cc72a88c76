"""What names a place in a project by its absolute path, for a copy of the project, and the way back."""

import re
from pathlib import Path

from msgspec.structs import replace

from ybs.checkpoints.states import State
from ybs.security.paths.names import real_name, shown_name


def moved_text(text: str, here: Path, there: Path) -> str:
    """Return a text with each path that lies in one folder as that in another; `/a/app-two` does not lie in `/a/app`."""
    return re.sub(rf"(?<![\w.~-]){re.escape(str(here))}(?![\w-]|\.\w)", lambda _: str(there), text)


def moved_link(state: State, here: Path, there: Path) -> State:
    """Return a link that leads into one folder by an absolute path as one that leads to the same place in another."""
    if state.kind != "link":
        return state
    target = real_name(state.target)
    if not (Path(target).is_absolute() and Path(target).is_relative_to(here)):
        return state
    return replace(state, target=shown_name(str(there / Path(target).relative_to(here))))
