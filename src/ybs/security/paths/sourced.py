"""What files such as `.envrc` at the top of a project source or run: it runs with them, whatever it is called.

A shell's files, and those that they source, are read as commands are (`files_run`). Other formats are not parsed: what looks like sourcing
counts. What they name otherwise is data, or what a person starts on purpose. A file that is longer than what is read may source anything.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeAlias

from msgspec import Struct

from ybs.core.lazy import lazy
from ybs.security.paths.files_run import Kind, files_run, matches
from ybs.security.paths.opening import read_whole, stamp_of
from ybs.security.paths.path_text import lies_in

_State: TypeAlias = tuple[int, ...]
#: So much is read of a file, and so many are followed.
_MOST_BYTES, _MOST_FILES = 4_000_000, 100
#: What sources a file in another format, where a line or the value of an entry begins (`pre: source ./env.sh`).
_SOURCES = lazy(
    r"(?:(?:^|[;&|({`]|\b(?:then|do|else)\s|[:-]\s)[ \t]*|[\"'])(?:\.|source(?:-file|_env(?:_if_exists)?)?)[ \t]+"
    r"[\"']?((?:\$\([^()]*\))?[^\s\"'`;&|()<>#=-][^\s\"'`;&|()<>]*)",
    re.MULTILINE,
)
#: Shells run these where somebody enters the folder.
_OF_SHELLS = (".envrc", ".autoenv")


class _Followed(Struct, frozen=True):
    """What was read, by the state of each path that was looked at, and what came of it."""

    tops: tuple[str, ...]
    states: dict[str, _State]
    paths: tuple[str, ...]


#: By root.
_known: dict[str, _Followed] = {}


def sourced(held: Iterable[str], root: str, home: str) -> tuple[str, ...]:
    """Return the paths in a root that those of these files source or run which lie at its top, and what those source; they need not exist.

    It is the root alone where one of these files is longer than what is read.
    """
    tops = tuple(path for path in held if path.rpartition("/")[0] == root)
    known = _known.get(root)
    if (
        known is None
        or known.tops != tops
        or any(_state(path) != state for path, state in known.states.items())
    ):
        _known[root] = known = _followed(tops, root, os.path.realpath(home))
    return known.paths


def _followed(tops: tuple[str, ...], root: str, home: str) -> _Followed:
    states = {path: _state(path) for path in tops}
    queue = list(tops)
    shells = {path for path in tops if path[len(root) + 1 :].startswith(_OF_SHELLS)}
    for path in queue:
        if not _is(states[path], stat.S_ISREG):
            continue
        try:
            targets = [*_targets(path, root, home, is_of_shell=path in shells)]
        except ValueError:
            return _Followed(tops, states, (root,))
        for target, kind in targets:
            if target not in states and len(queue) < len(tops) + _MOST_FILES:
                states[target] = _state(target)
                is_matched = target.endswith("/") and target != f"{root}/"
                is_named = is_matched or not _is(states[target], stat.S_ISDIR)
                queue += [target.rstrip("/")] * is_named
                shells |= {target} if kind == "sourced" and path in shells else set()
    return _Followed(tops, states, tuple(queue[len(tops) :]))


def _state(path: str) -> _State:
    """Return what tells a file from another one, and its kind alone of what is none; nothing where nothing is.

    Of a folder with a slash at its end, which a pattern looks through, also when its names changed.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - texts throughout
    except (OSError, ValueError):
        return ()
    if not stat.S_ISREG(status.st_mode):
        return (status.st_mode, *[status.st_ctime_ns] * path.endswith("/"))
    return stamp_of(status)


def _is(state: _State, kind: Callable[[int], bool]) -> bool:
    return bool(state) and kind(state[0])


def _targets(path: str, root: str, home: str, *, is_of_shell: bool) -> Iterator[tuple[str, Kind]]:
    """Yield the paths in the root that a file names, from the root or from its own folder. Raises ValueError where it is too long."""
    data = b""
    with suppress(OSError):
        data = read_whole(os.path.realpath(path), _MOST_BYTES)
    text = data.decode(errors="replace")
    if not is_of_shell:
        text = "\n".join(f". {word}" for word in _SOURCES().findall(text))
    for name, kind in files_run(text, home):
        for base in dict.fromkeys((root, path.rpartition("/")[0])):
            target = os.path.normpath(os.path.join(base, name))  # noqa: PTH118 - texts throughout
            if target != root and lies_in(target, root):
                for each in matches(target[len(root) :], root):
                    yield each, kind
