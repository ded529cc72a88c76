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
from stat import S_ISLNK

from ybs.core.errors import ToolError
from ybs.security.paths import globs
from ybs.security.paths.names import appearance_of
from ybs.security.paths.path_text import lies_in, path_of
from ybs.security.paths.roots import Roots

_OPEN = frozenset("*?[{\\")


class NamedPaths:
    """Pairs of a path as a call names it, and as it is used, its links resolved. A copy of a project stands for it."""

    def __init__(self, roots: Roots, named: Iterable[tuple[str, Path]]) -> None:
        self._roots, self._named, self._project = roots, tuple(named), roots.project
        #: Of each pattern that was asked about; a call is judged more than once.
        self._known: dict[str, bool] = {}

    @property
    def used(self) -> tuple[str, ...]:
        """Each path as it is used, whole."""
        return tuple(str(used) for _, used in self._named)

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        """Each path as named and as used, whole."""
        folder = str(self._roots.folder)
        asked = (os.path.normpath(os.path.join(folder, _read(name))) for name, _ in self._named)  # noqa: PTH118 - texts throughout
        return tuple(dict.fromkeys((*asked, *(str(used) for _, used in self._named))))

    @cached_property
    def _whole(self) -> tuple[str, ...]:
        """The same, in the project."""
        folder, project = str(self._roots.folder), str(self._project)
        if folder == project:
            return self._paths
        return tuple(
            f"{project}{path[len(folder) :]}" if lies_in(path, folder) else path
            for path in self._paths
        )

    @cached_property
    def _in_roots(self) -> tuple[str, ...]:
        """The same, from the project's folder or the other one that it lies in."""
        folder, others = str(self._roots.folder), self._roots.in_its_root
        return tuple(
            _fold(path[len(folder) :].lstrip("/") if lies_in(path, folder) else others(path))
            for path in self._paths
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
        if pattern not in self._known:
            self._known[pattern] = any(
                not rest or bool(_covering(rest).fullmatch(left))
                for rest, left in self._left(pattern)
            )
        return self._known[pattern]

    def _left(self, pattern: str) -> Iterator[tuple[str, str]]:
        """Yield, for each path that lies in the folder that a pattern begins with, the rest of the pattern and the rest of the path."""
        project, home = str(self._project), str(self._roots.host.home)
        start, folder, rest = _split(pattern, project, home)
        if rest.startswith("**") and not start:
            yield from ((rest, left) for left in self._in_roots)
            return
        resolved = _resolved(start, project, home) if start else start
        for place in [folder] if resolved == start else [folder, _fold(resolved)]:
            for path in self._folded:
                if lies_in(path, place):
                    yield rest, path[len(place) :].lstrip("/")


def _read(name: str) -> str:
    try:
        return path_of(name)
    except ToolError:  # it does not come from a model
        return name


@lru_cache(256)
def _split(pattern: str, project: str, home: str) -> tuple[str, str, str]:
    """Return the folder that a pattern begins with, empty for the project's; that one folded, and the rest, folded.

    `//` begins a whole path as `/` does.
    """
    parts = (pattern.strip().rstrip("/") or "/").replace("\0", "").split("/")
    fixed = [*takewhile(lambda part: _OPEN.isdisjoint(part), parts)]
    rest = _fold("/".join(parts[len(fixed) :]))
    if not fixed:
        return "", _fold(project), rest
    name = "".join(f"{part}/" for part in fixed)
    if name.startswith("~/"):
        name = f"{home}{name[1:]}"
    start = re.sub(r"\A/+", "/", os.path.normpath(os.path.join(project, name)))  # noqa: PTH118 - texts throughout
    return start, _fold(start), rest


def _resolved(path: str, project: str, home: str) -> str:
    """Return a path with links resolved. Where the project and the home folder lie is known already, and each look at the disk counts."""
    top = project if lies_in(path, project) else home
    if not lies_in(path, top):
        return os.path.realpath(path)
    place = top if top == project else _resolved_home(home)
    parts = path[len(top) :].strip("/").split("/")
    for count, part in enumerate(parts, 1):
        place = f"{place.rstrip('/')}/{part}"
        try:
            if S_ISLNK(os.lstat(place).st_mode):
                return os.path.realpath("/".join((place, *parts[count:])))
        except OSError:  # nothing is there
            return "/".join((place, *parts[count:]))
    return place.rstrip("/")


@lru_cache(8)
def _resolved_home(home: str) -> str:
    return os.path.realpath(home)


def _fold(path: str) -> str:
    """Return a path or pattern as a file system without regard for case, accents' spelling and kinds of spaces sees it."""
    return appearance_of(appearance_of(path).casefold())


@lru_cache(256)
def _covering(pattern: str) -> re.Pattern[str]:
    """Return a regular expression for what fits a glob, and for what lies below a folder that does."""
    folder = pattern.removesuffix("/**")
    below = "" if folder == pattern and pattern.rpartition("/")[2] == "*" else "(?:/.*)?"
    return re.compile(f"(?:{globs.compiled(folder, names_too=True).pattern}){below}", re.DOTALL)
