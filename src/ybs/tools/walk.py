"""The files of a folder, sorted: without `.git`, what `.gitignore` leaves out, blocked paths and links outward."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from ybs.core.errors import ToolError
from ybs.security.paths import Roots
from ybs.tools.ignore import Ignore, ignore_above


class Deadline:
    """A moment after which slow work ends early; `cancel` brings it forward to now. Used across threads."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds

    def cancel(self) -> None:
        """End the work at the next look."""
        self._end = 0.0

    @property
    def seconds_left(self) -> float:
        """The time that is left; 0 when there is none."""
        return max(self._end - monotonic(), 0.0)

    @property
    def is_over(self) -> bool:
        """Tell whether the work should end."""
        return monotonic() > self._end


class Entry:
    """A file found: `path` is relative to the start, with `/` between its parts."""

    __slots__ = ("_entry", "path")

    def __init__(self, path: str, entry: "os.DirEntry[str]") -> None:
        self.path, self._entry = path, entry

    def status(self) -> os.stat_result | None:
        """Return the file's status, or None where it is gone."""
        try:
            return self._entry.stat()
        except OSError:
            return None


class Walk:
    """A walk from `start`. After it `was_cut` tells whether it ended early."""

    def __init__(
        self,
        roots: Roots,
        start: Path,
        *,
        deadline: Deadline | None = None,
        depth: int | None = None,
    ) -> None:
        self._roots, self._start = roots, start
        self._deadline, self._depth = deadline, depth
        self._holds_blocked = roots.holds_blocked(start)
        self.folders: list[str] = []
        self.was_cut = False

    def files(self, most: int | None = None) -> Iterator[Entry]:
        """Yield the files, folder by folder in the order of their names; `folders` fills on the way."""
        rules = self._rules_above()
        pending = [("", str(self._start), rules)]
        count = 0
        while pending:
            prefix, folder, above = pending.pop()
            if self._is_over():
                return
            rules = Ignore(folder, above)
            inner: list[tuple[str, str, Ignore]] = []
            for entry in self._wanted(folder, rules):
                path = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    self.folders.append(path)
                    inner.append((path + "/", entry.path, rules))
                    continue
                count += 1
                if most is not None and count > most:
                    self.was_cut = True
                    return
                yield Entry(path, entry)
            if self._depth is None or prefix.count("/") < self._depth:
                pending += reversed(inner)

    def _rules_above(self) -> Ignore | None:
        """Return the rules that hold where the walk starts; a start that is itself ignored has none."""
        folder = self._roots.folder
        rules = ignore_above(folder)
        if not self._start.is_relative_to(folder):
            return ignore_above(self._start)
        here = folder
        for part in self._start.relative_to(folder).parts:
            rules = Ignore(str(here), rules)
            here /= part
            if rules.ignores(str(here), is_folder=True):
                return None
        return rules

    def _is_over(self) -> bool:
        if self._deadline is not None and self._deadline.is_over:
            self.was_cut = True
        return self.was_cut

    def _wanted(self, folder: str, rules: Ignore) -> Iterator[os.DirEntry[str]]:
        for entry in _sorted_entries(folder):
            if self._is_over():
                return
            if self._is_wanted(entry, rules):
                yield entry

    def _is_wanted(self, entry: os.DirEntry[str], rules: Ignore) -> bool:
        if entry.name == ".git" or not _is_printable_path(entry.name):
            return False
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not self._is_readable_file(entry):
                return False
        except OSError:
            return False
        if self._holds_blocked and self._roots.is_blocked(entry.path):
            return False
        return rules.is_empty or not rules.ignores(entry.path, is_folder=is_folder)

    def _is_readable_file(self, entry: os.DirEntry[str]) -> bool:
        if not entry.is_symlink():
            return entry.is_file(follow_symlinks=False)
        try:
            target = self._roots.resolve(entry.path)
        except ToolError:
            return False  # it leads out of the folders, or to a blocked path
        return stat.S_ISREG(target.stat().st_mode)


def _sorted_entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=_name)
    except OSError:
        return []  # it may not be read, or has gone


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _is_printable_path(name: str) -> bool:
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)
