"""The paths that a call names, and whether a pattern means one of them: for rules that deny or ask, and for the conditions of hooks.

A pattern and a call may each spell a path from the project's folder, whole, with `~`, through links, and in other letters that a
file system takes for the same. Whatever one of them says is enough; what allows goes by the resolved path alone.
"""

import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import takewhile
from pathlib import Path

from ybs.core.errors import ToolError
from ybs.security.paths.names import appearance_of
from ybs.security.paths.path_text import lies_in, path_of
from ybs.security.paths.roots import Roots

_OPEN = frozenset("*?[{\\")


class NamedPaths:
    """Pairs of a path as a call names it, and as it is used, its links resolved. A copy of a project stands for it."""

    def __init__(self, roots: Roots, named: Iterable[tuple[str, Path]]) -> None:
        self._roots, self._named, self._project = roots, tuple(named), roots.project

    @cached_property
    def _whole(self) -> tuple[str, ...]:
        """Each path as named and as used, whole, in the project."""
        folder = str(self._roots.folder)
        asked = (os.path.normpath(os.path.join(folder, _read(name))) for name, _ in self._named)  # noqa: PTH118
        paths = dict.fromkeys((*asked, *(str(used) for _, used in self._named)))
        is_copy = str(self._project) != folder
        inside = (is_copy and lies_in(path, folder) for path in paths)
        return tuple(
            f"{self._project}{path[len(folder) :]}" if is_in else path
            for path, is_in in zip(paths, inside, strict=True)
        )

    @cached_property
    def _folded(self) -> tuple[str, ...]:
        return tuple(map(_fold, self._whole))

    @cached_property
    def spellings(self) -> tuple[str, ...]:
        """All ways to write them: as named and as used, each from the project's folder, whole, and with `~`."""
        texts = list[str]()
        for whole in self._whole:
            path = Path(whole)
            is_inside = path.is_relative_to(self._project)
            texts += [str(path.relative_to(self._project))] if is_inside else []
            texts += [whole, self._roots.host.short(whole)]
        return tuple(dict.fromkeys(texts))

    def are_meant_by(self, pattern: str) -> bool:
        """Return whether a pattern means one of them, or a folder that one lies in. A `*` that ends it stands for the files of one folder."""
        return any(
            not open_ or _covering(open_).fullmatch(left) for open_, left in self.left(pattern)
        )

    def left(self, pattern: str) -> Iterator[tuple[str, str]]:
        """Yield, for each path that lies in the folder that a pattern begins with, the rest of the pattern and the rest of the path."""
        fixed, rest = _split(pattern.strip())
        folder = str(self._project)
        start = os.path.normpath(os.path.join(folder, self._roots.host.with_home(fixed)))  # noqa: PTH118
        places = [(place, rest) for place in (start, os.path.realpath(start))]
        if not fixed and rest.startswith("**"):  # wherever that is
            places.append(("/", rest))
        for place, open_ in dict.fromkeys((_fold(place), _fold(open_)) for place, open_ in places):
            for path in self._folded:
                if lies_in(path, place):
                    yield open_, path[len(place) :].lstrip("/")


def _read(name: str) -> str:
    try:
        return path_of(name)
    except ToolError:  # it does not come from a model
        return name


def _split(pattern: str) -> tuple[str, str]:
    """Return the folders that a pattern begins with, and the rest; `//` begins a whole path as `/` does."""
    parts = (pattern.rstrip("/") or "/").replace("\0", "").split("/")
    fixed = [*takewhile(lambda part: _OPEN.isdisjoint(part), parts)]
    start = "".join(f"{part}/" for part in fixed)
    return re.sub(r"\A/+", "/", start), "/".join(parts[len(fixed) :])


def _fold(path: str) -> str:
    """Return a path or pattern as a file system without regard for case, accents' spelling and kinds of spaces sees it."""
    return appearance_of(appearance_of(path).casefold())


@lru_cache(256)
def _covering(pattern: str) -> re.Pattern[str]:
    """Return a regular expression for what fits a glob, and for what lies below a folder that does."""
    from ybs.security.paths import globs  # most sessions have no rules

    below = "" if pattern.rpartition("/")[2] == "*" else "(?:/.*)?"
    return re.compile(f"(?:{globs.compiled(pattern, names_too=True).pattern}){below}", re.DOTALL)
