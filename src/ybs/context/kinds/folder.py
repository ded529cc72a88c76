"""A folder as detection sees it: its names, and little of what stands in its files.

All of it is the project's and not trusted: only regular files are opened, no link leads out of the project, and
there is an end to what is read and listed.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path

from ybs.core.errors import Refused
from ybs.core.folder_names import ASIDE, OTHERS
from ybs.security.paths.opening import held, open_listed, read_beginning

MAX_BYTES = 64 * 1024
MAX_FILES, MAX_FOLDERS, MAX_NAMES, MAX_LINKS = 200, 64, 2_000, 50


class Budget:
    """What may still be opened in one look at a project."""

    def __init__(self, root: str) -> None:
        self.root = real_path(root) or root
        self.files, self.folders, self.links = MAX_FILES, MAX_FOLDERS, MAX_LINKS

    def target(self, link: str) -> str:
        """Return the file of the project that a link leads to; "" where it leads elsewhere."""
        self.links -= 1
        real = real_path(link) if self.links >= 0 else ""
        return real if real.startswith(f"{self.root}/") and os.path.isfile(real) else ""  # noqa: PTH113 - no Path, for speed


class Folder:
    """A folder of the project; `shown` is "" for the project's own, else a relative path with a slash at its end."""

    def __init__(self, path: str, shown: str, budget: Budget) -> None:
        self.path, self.shown, self._budget = path, shown, budget
        self.files: set[str] = set()
        #: Whether it is the top of a git repository.
        self.is_top = False
        self._below: list[str] = []
        self._links: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        budget.folders -= 1
        with suppress(OSError, Refused):
            self._list()

    def _list(self) -> None:
        folder = open_listed(Path(self.path))
        try:
            with os.scandir(folder) as entries:
                for entry in islice(entries, MAX_NAMES):
                    self._note(entry)
        finally:
            os.close(folder)

    def _note(self, entry: os.DirEntry[str]) -> None:
        name = entry.name
        if entry.is_file(follow_symlinks=False):
            self.files.add(name)
        elif entry.is_symlink():
            if target := self._budget.target(f"{self.path}/{name}"):
                self.files.add(name)
                self._links[name] = target
        elif name == ".git":
            self.is_top = True
        elif _is_wanted(name) and entry.is_dir(follow_symlinks=False):
            self._below.append(name)

    @property
    def is_aside(self) -> bool:
        """Whether it holds tests, examples or the like, by its name."""
        return self.path.rpartition("/")[2].lower() in ASIDE

    def below(self) -> "Iterable[Folder]":
        """List the folders in it that matter."""
        for name in sorted(self._below):
            if self._budget.folders > 0:
                yield Folder(f"{self.path}/{name}", f"{self.shown}{name}/", self._budget)

    def first(self, *names: str) -> str:
        """Return the first of these names that is a file here, or ""; `*.x` stands for any with that end."""
        for name in names:
            if name in self.files:
                return name
            if name[0] == "*" and name[1:] in self.suffixes:
                return min(each for each in self.files if each.endswith(name[1:]))
        return ""

    @cached_property
    def suffixes(self) -> dict[str, int]:
        """How many files have each suffix; settings (`a.config.ts`) and declarations (`a.d.ts`) are not sources."""
        count: dict[str, int] = {}
        for name in self.files:
            stem, dot, suffix = name.rpartition(".")
            if stem and not stem.endswith((".config", ".d")):
                count[dot + suffix] = count.get(dot + suffix, 0) + 1
        return count

    def text(self, *names: str) -> str:
        """Return the beginning of the first of these files; "" where there is none, or no text in it."""
        name = self.first(*names)
        if name and name not in self._texts:
            self._texts[name] = self._read(self._links.get(name) or f"{self.path}/{name}")
        return self._texts[name] if name else ""

    def _read(self, path: str) -> str:
        if self._budget.files <= 0:
            return ""
        self._budget.files -= 1
        try:
            with held(Path(path)) as place:
                data = read_beginning(place.name, MAX_BYTES, folder=place.folder)
            return _decoded(data or b"")
        except (OSError, ValueError, Refused):
            return ""


def _decoded(data: bytes) -> str:
    """Decode what was read; a character that was cut at the end is left out. Raises UnicodeDecodeError."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    if len(data) < MAX_BYTES - 4:
        return data.decode()
    return data[: data.rfind(b"\n") + 1].decode()


def _is_wanted(name: str) -> bool:
    """Return whether a folder may be looked into, and its name stand in a line of the prompt."""
    is_plain = len(name) <= 40 and all(c.isalnum() or c in "_-.+@" for c in name)
    return is_plain and name[0] != "." and name not in OTHERS


def real_path(path: str) -> str:
    """Return where a path leads; "" for one that is exchanged while it is looked at."""
    try:
        return os.path.realpath(path)
    except OSError:
        return ""
