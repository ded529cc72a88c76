"""Walk the folders that tools may work in, for undo: ignored files too, but not bulk folders.

Nothing is passed over without a word: an ignored folder for which there is no room is noted as a bulk folder is, as a whole.
So one folder of many files does not take the room of all others.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from ybs.checkpoints.scan import MOST_PATHS, FolderListing, TooMuch
from ybs.checkpoints.states import BULK, FULL, MOST_IGNORED, State
from ybs.security.paths.bulk import has_bulk_mark, is_bulk_name
from ybs.security.paths.git_names import means_repository
from ybs.security.paths.roots import Roots
from ybs.tools.searching.ignore import Ignore, rules_at
from ybs.tools.searching.walk import Deadline, Walk

#: How long a look at the project before a command, or after the turn, may take.
SCAN_SECONDS = 10.0


def listings(roots: Roots, deadline: Deadline) -> Iterator[FolderListing]:
    """Yield the entries of each folder. Raises TooMuch."""
    for folder in walked(roots):
        yield _listing_of(roots, folder, deadline)


def listings_of_project(
    roots: Roots, deadline: Deadline, above: Ignore | None = None
) -> Iterator[FolderListing]:
    """Yield the entries of each folder that belong to the project. Raises TooMuch.

    `above` stands in for the rules of the folders above the project.
    """
    for folder in walked(roots):
        if folder.is_relative_to(roots.folder):
            yield _listing_of(roots, folder, deadline, above)


def _listing_of(
    roots: Roots, folder: Path, deadline: Deadline, above: Ignore | None = None
) -> FolderListing:
    """Return the entries of a folder. Raises TooMuch."""
    walk = _Whole(roots, folder, deadline=deadline, above=above)
    files = walk.paths()
    if walk.count > MOST_PATHS:
        raise TooMuch(f"there are more than {MOST_PATHS:,} files and folders")
    if walk.was_cut:
        raise TooMuch("looking at its files takes too long")
    return FolderListing(
        folder=folder,
        files=files,
        folders=walk.folders,
        left_out=walk.left_out,
        ignored=walk.ignored,
        bulk=walk.bulk,
    )


class _Whole(Walk):
    """A walk that takes every link for what it is, and says what it passed over.

    `ignored` are the files and folders that git ignores, `bulk` the folders among them that are not entered, with their states.
    """

    def __init__(
        self, roots: Roots, start: Path, *, deadline: Deadline, above: Ignore | None = None
    ) -> None:
        super().__init__(roots, start, deadline=deadline)
        self._above = above
        self._top = f"{str(start).rstrip('/')}/"
        self._are_ignored: set[str] = set()
        self.left_out: set[str] = set()
        self.ignored: set[str] = set()
        self.bulk: dict[str, State] = {}
        self.count = 0

    def _rules(self) -> Ignore:
        return rules_at(self._roots.folder, self._start, self._above)

    def _content(
        self, names: tuple[list[str], list[str], list[str]], folder: str, rules: Ignore
    ) -> tuple[list[str], list[str], Ignore]:
        every = names[0] + names[1] + names[2]
        repositories = {name for name in every if _may_hide(name) and means_repository(name)}
        if others := repositories - {".git"}:  # the walk itself leaves `.git` out
            files, folders, links = ([n for n in each if n not in others] for each in names)
            names = files, folders, links
        if folder in self._are_ignored:
            return self._content_of_ignored(names, folder, every)
        files, folders, rules = super()._content(names, folder, rules)
        self.count += len(files) + len(folders)
        self.was_cut = self.was_cut or self.count > MOST_PATHS
        if len(files) + len(folders) < len(every):
            prefix = f"{folder}/"[len(self._top) :]
            out = {*every}.difference(files, folders)
            ignored = self._allowed_here(folder, out - repositories)
            if len(ignored) < len(out):
                self.left_out.update(prefix + name for name in out.difference(ignored))
            below = {*ignored}.intersection(names[1])
            if len(below) < len(ignored):
                files = files + self._taken(prefix, {*ignored} - below)
            if below:
                folders = folders + self._entered(prefix, below)
        return files, folders, rules

    def _content_of_ignored(
        self, names: tuple[list[str], list[str], list[str]], folder: str, every: Sequence[str]
    ) -> tuple[list[str], list[str], Ignore]:
        """Return the entries to keep of a folder that git ignores, where no rule includes any again."""
        prefix = f"{folder}/"[len(self._top) :]
        is_full = len(self.ignored) + len(every) > MOST_IGNORED
        if is_full or has_bulk_mark(names[0]):
            self._pass_over(prefix[:-1], FULL if is_full else BULK)
            return [], [], Ignore()
        files, folders, rules = super()._content(names, folder, Ignore())
        self.left_out.update(prefix + name for name in {*every} - {*files, *folders})
        return self._taken(prefix, files), self._entered(prefix, folders), rules

    def _taken(self, prefix: str, names: Collection[str]) -> list[str]:
        """Note the ignored names in a folder, and return them in their order."""
        self.ignored.update(prefix + name for name in names)
        return sorted(names)

    def _entered(self, prefix: str, names: Collection[str]) -> list[str]:
        """Return the ignored folders that are entered; the others are only noted."""
        entered: list[str] = []
        for name in sorted(names):
            if is_bulk_name(name):
                self._pass_over(prefix + name, BULK)
            elif len(self.ignored) >= MOST_IGNORED:
                self._pass_over(prefix + name, FULL)
            else:
                entered += self._taken(prefix, (name,))
        self._are_ignored.update(f"{self._top}{prefix}{name}" for name in entered)
        return entered

    def _pass_over(self, path: str, state: State) -> None:
        self.bulk[path] = state
        self.left_out.add(path)

    def _allowed_here(self, folder: str, names: Iterable[str]) -> list[str]:
        return self._allowed(folder, [*names]) if self._holds_blocked else [*names]

    def _is_within(self, path: str) -> bool:
        del path
        return True


def _may_hide(name: str) -> bool:
    """Return whether the name could mean a repository; most do not, which is quick to see."""
    return name[0] == "." or "~" in name or not name.isascii()


def walked(roots: Roots) -> Sequence[Path]:
    """Return the folders to look through: the project's, not all of a larger one that holds it, and the others."""
    project, folders = roots.folder, roots.folders
    if any(project.is_relative_to(folder) for folder in folders):
        folders = (project, *(each for each in folders if not project.is_relative_to(each)))
    return outermost(folders)


def outermost(folders: Iterable[Path]) -> list[Path]:
    """Return the folders without those that lie in another one."""
    found: list[Path] = []
    for folder in sorted(folders):  # a folder comes before what is in it
        if not any(folder.is_relative_to(other) for other in found):
            found.append(folder)
    return found
