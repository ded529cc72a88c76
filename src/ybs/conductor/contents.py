"""What a folder holds: the state of each path, by its path in the folder; and its absolute paths as those of a copy."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.project_walk import listings_of_project
from ybs.checkpoints.scan import KnownPaths, Scanner, Snapshot
from ybs.checkpoints.states import BULK, State, Take
from ybs.security.paths.names import real_name, shown_name
from ybs.security.paths.roots import Roots
from ybs.tools.searching.ignore import Ignore
from ybs.tools.searching.walk import Deadline

#: Rights beyond these, such as setuid, are nobody's to hand on.
_RIGHTS = 0o777


class Contents(Struct, kw_only=True):
    """The states by path, which of the paths git ignores, and the folders of dependencies, builds and caches, which are not looked into."""

    states: dict[str, State]
    ignored: set[str]
    bulk: list[str]
    #: What another look at the same folder need not read again.
    known: Mapping[str, KnownPaths] = {}


def look(
    roots: Roots,
    take: Take,
    deadline: Deadline,
    known: Mapping[str, KnownPaths] | None = None,
    above: Ignore | None = None,
) -> Contents:
    """Look at all of a project; `take` keeps what its files hold. Raises TooMuch and NoRoom.

    `above` has the rules of git for a project whose own place does not tell them.
    """
    snapshot, scanner = Snapshot(), Scanner(roots, take, lambda: deadline.is_over)
    scanner.scan(listings_of_project(roots, deadline, above), known or {}, snapshot)
    top = f"{str(roots.folder).rstrip('/')}/"
    below = _below(top)
    states = {below(path): plain(state) for path, (_, state) in snapshot.known.items()}
    return Contents(
        states={path: state for path, state in states.items() if state != plain(BULK)},
        ignored=set(map(below, snapshot.ignored)),
        bulk=[path for path, state in states.items() if state == plain(BULK)],
        known=snapshot.known,
    )


def plain(state: State) -> State:
    """Return a state without the rights that are nobody's to hand on."""
    mode = state.mode & _RIGHTS
    return state if mode == state.mode else replace(state, mode=mode)


def lies_below(path: str, tops: Iterable[str]) -> bool:
    """Return whether a path is one of these or lies in one."""
    found = set(tops)
    while path:
        if path in found:
            return True
        path = os.path.dirname(path)  # noqa: PTH120 - texts, many of them
    return False


def _below(top: str) -> Callable[[str], str]:
    return lambda path: path.removeprefix(top)


def path_in(folder: Path, path: str) -> str:
    """Return the absolute path of one in a folder."""
    return f"{str(folder).rstrip('/')}/{path}"


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
