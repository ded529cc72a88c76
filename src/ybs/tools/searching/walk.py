"""The files of a folder: without `.git`, what `.gitignore` leaves out, blocked paths and links outward."""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from ybs.core.cutting import shortened
from ybs.core.errors import Refused
from ybs.core.wording import listed, plural
from ybs.security.paths.names import shown_name
from ybs.security.paths.opening import open_below, open_listed
from ybs.security.paths.roots import Roots

if TYPE_CHECKING:
    from ybs.tools.searching.choice import GlobChoice
    from ybs.tools.searching.ignore import Ignore

_MOST_HELD = 64  # folders open at once
_MOST_NAMES, _LONGEST_NAME = 3, 200  # of files that are named as left out


class Deadline:
    """A moment after which slow work ends early; `cancel` brings it forward to now. Used across threads."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds

    def cancel(self) -> None:
        """End the work at the next look."""
        self._end = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the work should end."""
        return monotonic() > self._end


def left_out(roots: Roots, start: Path, choice: "GlobChoice", deadline: Deadline) -> str:
    """Say of a glob that has chosen no file what it has missed: names spelled otherwise, what git ignores, and folders behind links."""
    walk = Walk(roots, start, deadline=deadline, depth=choice.depth, includes_ignored=True)
    paths = walk.paths()
    if twins := choice.of_appearance(paths):
        return f"[these names have other characters that look the same: {_named(twins)}]"
    if ignored := choice.of(paths):
        which = plural(len(ignored), "file")
        return (
            f"[{which} that git ignores would match: {_named(ignored)}; `include_ignored` has them]"
        )
    for glob in choice.globs:
        folder = start
        for part in glob.split("/")[:-1]:
            folder /= part
            if folder.is_symlink() and not roots.is_blocked(str(folder)):
                name = shown_name(str(folder.relative_to(start)))
                return f"[{name} is a link; give it as `path` to look behind it]"
    return ""


def _named(paths: list[str]) -> str:
    return listed(
        [shortened(shown_name(path), _LONGEST_NAME) for path in sorted(paths)], _MOST_NAMES
    )


class FileEntry:
    """A file found: `path` is relative to the start, with `/` between its parts."""

    __slots__ = ("_full", "path")

    def __init__(self, path: str, full: str) -> None:
        self.path, self._full = path, full

    def status(self) -> os.stat_result | None:
        """Return the file's status, or None where it is gone."""
        try:
            return os.stat(self._full)  # noqa: PTH116 - a Path for each of many files is slow
        except OSError:
            return None


class Walk:
    """A walk from `start`. After it `was_cut` tells whether it ended early.

    Links to files within the roots are files, unless `has_links` is false.
    """

    def __init__(
        self,
        roots: Roots,
        start: Path,
        *,
        deadline: Deadline | None = None,
        depth: int | None = None,
        includes_ignored: bool = False,
        has_links: bool = True,
    ) -> None:
        self._roots, self._start = roots, start
        self._deadline, self._depth = deadline, depth
        self._includes_ignored, self._has_links = includes_ignored, has_links
        self._holds_blocked = roots.holds_blocked(start)
        self.folders: list[str] = []
        self.was_cut = False

    def files(self, most: int | None = None) -> Iterator[FileEntry]:
        """Yield the files, folder by folder in the order of their names; `folders` fills on the way."""
        count = 0
        for prefix, folder, names in self._each_folder():
            for name in sorted(names):
                count += 1
                if most is not None and count > most:
                    self.was_cut = True
                if self._is_over():
                    return
                yield FileEntry(prefix + name, f"{folder}/{name}")

    def paths(self) -> list[str]:
        """Return the paths of all files, relative to the start, in no order; `folders` fills as well."""
        paths: list[str] = []
        for prefix, _, names in self._each_folder():
            paths += [prefix + name for name in names] if prefix else names
        return paths

    def _each_folder(self) -> Iterator[tuple[str, str, list[str]]]:
        """Yield each folder: its prefix for paths, where it is, and the names of its files."""
        pending = [("", str(self._start).rstrip("/"), self._rules())]
        ladder = _Ladder()
        try:
            while pending and not self._is_over():
                prefix, folder, rules = pending.pop()
                depth = prefix.count("/")
                files, folders, rules = self._content(ladder.entries(folder, depth), folder, rules)
                yield prefix, folder, files
                folders.sort(reverse=True)
                self.folders += [prefix + name for name in reversed(folders)]
                if self._depth is None or depth < self._depth:
                    pending += [(f"{prefix}{name}/", f"{folder}/{name}", rules) for name in folders]
        finally:
            ladder.close()

    def _rules(self) -> "Ignore":
        """Return the rules from above that hold in the start."""
        from ybs.tools.searching.ignore import Ignore, rules_at  # not needed before the first walk

        return Ignore() if self._includes_ignored else rules_at(self._roots.folder, self._start)

    def _is_over(self) -> bool:
        if self._deadline is not None and self._deadline.is_over:
            self.was_cut = True
        return self.was_cut

    def _content(
        self, names: "_Entries", folder: str, rules: "Ignore"
    ) -> tuple[list[str], list[str], "Ignore"]:
        """Return the names of files and of folders that count, and the rules for what is in them."""
        files, folders, links = names
        if ".git" in folders or ".git" in files or ".git" in links:
            rules = type(rules)()  # a repository of its own
            folders, files, links = (_without_git(names) for names in (folders, files, links))
        if ".gitignore" in files and not self._includes_ignored:
            rules = rules.within(folder)
        if links and self._has_links:
            files += [name for name in links if self._is_within(f"{folder}/{name}")]
        if not rules.is_empty:
            files = rules.kept(files, folder, are_folders=False)
            folders = rules.kept(folders, folder, are_folders=True)
        if self._holds_blocked:
            files, folders = (self._allowed(folder, names) for names in (files, folders))
        return files, folders, rules

    def _allowed(self, folder: str, names: Sequence[str]) -> list[str]:
        return [name for name in names if not self._roots.is_blocked(f"{folder}/{name}")]

    def _is_within(self, path: str) -> bool:
        try:
            return stat.S_ISREG(self._roots.judge(path).stat().st_mode)
        except (Refused, OSError):
            return False  # it leads out of the folders, to a blocked path, or nowhere


def _without_git(names: list[str]) -> list[str]:
    return [name for name in names if name != ".git"]


_Entries = tuple[list[str], list[str], list[str]]


class _Ladder:
    """The folders from the start down to where the walk is, held open, each opened in the one above it.

    So a folder that becomes a link in the meantime leads nowhere. Of very many the last ones are held.
    """

    def __init__(self) -> None:
        self._held: dict[int, int] = {}  # descriptors by the steps below the start, in this order

    def entries(self, folder: str, depth: int) -> _Entries:
        """Return the names in a folder so many steps below the start: of files, folders and links.

        A folder comes after the one that it is in. Pipes and the like are left out.
        """
        held = self._held
        while held and next(reversed(held)) >= depth:
            os.close(held.popitem()[1])
        if len(held) >= _MOST_HELD:
            os.close(held.pop(next(iter(held))))
        try:
            if depth - 1 in held:
                descriptor = open_below(held[depth - 1], folder[folder.rindex("/") + 1 :])
            else:
                descriptor = open_listed(Path(folder or "/"))
            held[depth] = descriptor
            return _entries(descriptor)
        except (OSError, Refused):
            return [], [], []  # it may not be read, has gone, or is a link now

    def close(self) -> None:
        """Let go of all."""
        while self._held:
            os.close(self._held.popitem()[1])


def _entries(descriptor: int) -> _Entries:
    files: list[str] = []
    folders: list[str] = []
    links: list[str] = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_symlink():
                links.append(entry.name)
    return files, folders, links
