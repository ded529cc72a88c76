"""What files such as `.envrc` at the top of a project source or run: it runs with them, whatever it is called.

Their own formats are not parsed: what looks like sourcing counts. What they name otherwise is data, or what a person starts on purpose.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeAlias

from msgspec import Struct

from ybs.core.lazy import lazy
from ybs.security.paths.opening import read_beginning
from ybs.security.paths.path_text import lies_in

_State: TypeAlias = tuple[int, ...]
#: So much is read of a file, and so many are followed.
_MOST_BYTES, _MOST_FILES = 64_000, 100
#: How a shell calls the folder that it works in, or that its file lies in.
_HERE = lazy(r"\$(?:PWD\b|\{PWD\}|\((?:pwd|dirname [^()]*|git rev-parse --show-toplevel)\))[\"']?/")
_HOME = lazy(r"\$(?:HOME|\{HOME\})[\"']?/")
_WORD = r"[\"']?([^\s\"'`;&|()<>#$=-][^\s\"'`;&|()<>$]*)"
#: What sources a file, where a command or the value of an entry begins (`pre: source ./env.sh`). `dotenv` alone means `.env`.
_SOURCES = lazy(
    r"(?:(?:^|[;&|({`]|\b(?:then|do|else)\s|[:-]\s)[ \t]*|[\"'])"
    rf"(?:(?:\.|source(?:-file|_env(?:_if_exists)?)?)[ \t]+{_WORD}"
    rf"|(?:load_)?dotenv(?:_if_exists)?(?=[\s;&|)]|$)(?:[ \t]+{_WORD})?)",
    re.MULTILINE,
)
#: What runs one: an interpreter, or a path in the place of a program, which is one in a shell's file alone.
_RUNS = lazy(
    r"(?:^|[;&|(`]|\b(?:then|do|else|if|eval|exec)\s)[ \t]*"
    rf"(?:(?:(?:ba|da|z|k)?sh|python[\d.]*|node|ruby|perl)[ \t]+(?:-[a-bd-ln-zA-Z]+[ \t]+)*{_WORD}"
    r"|([\w.~-]*/[\w./@+-]+)(?![\w./@+=|-]))",
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
    """Return the paths in a root that those of these files source or run which lie at its top, and what those source; they need not exist."""
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
    for number, path in enumerate(queue):
        if not _is(states[path], stat.S_ISREG):
            continue
        is_of_shell = number < len(tops) and path[len(root) + 1 :].startswith(_OF_SHELLS)
        for target in _targets(path, root, home, is_of_shell=is_of_shell):
            if target not in states and len(queue) < len(tops) + _MOST_FILES:
                states[target] = _state(target)
                queue += [target] * (not _is(states[target], stat.S_ISDIR))
    return _Followed(tops, states, tuple(queue[len(tops) :]))


def _state(path: str) -> _State:
    """Return what tells a file from another one, and its kind alone of what is none; nothing where nothing is."""
    try:
        status = os.stat(path)  # noqa: PTH116 - texts throughout
    except (OSError, ValueError):
        return ()
    if not stat.S_ISREG(status.st_mode):
        return (status.st_mode,)
    return status.st_mode, status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def _is(state: _State, kind: Callable[[int], bool]) -> bool:
    return bool(state) and kind(state[0])


def _targets(path: str, root: str, home: str, *, is_of_shell: bool) -> Iterator[str]:
    """Yield the paths in the root that a file sources: from the root, or from its own folder."""
    for word in _words_in(path, is_of_shell=is_of_shell):
        name = f"{home}{word[1:]}" if word.startswith("~/") else word
        for base in dict.fromkeys((root, path.rpartition("/")[0])):
            target = os.path.normpath(f"{base}/{name}" if name[0] != "/" else name)
            if target != root and lies_in(target, root):
                yield target


def _words_in(path: str, *, is_of_shell: bool) -> list[str]:
    """Return the words by which a file sources others."""
    data: bytes | None = None
    with suppress(OSError, ValueError):
        data = read_beginning(os.path.realpath(path), _MOST_BYTES)
    text = _HOME().sub("~/", _HERE().sub("./", (data or b"").decode(errors="replace")))
    found = [word or alone or ".env" for word, alone in _SOURCES().findall(text)]
    if is_of_shell:
        found += [script or program for script, program in _RUNS().findall(text)]
    return found
