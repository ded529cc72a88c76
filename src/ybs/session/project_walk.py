"""All that is in the folders that tools may work in and that is not ignored, for the looks of undo."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ybs.checkpoints.scan import MOST_PATHS, Listing, TooMuch
from ybs.security.paths.roots import Roots
from ybs.tools.searching.ignore import Ignore
from ybs.tools.searching.walk import Deadline, Walk


def listings(roots: Roots, deadline: Deadline) -> Iterator[Listing]:
    """Yield what is in each folder. Raises TooMuch."""
    for folder in _folders(roots):
        walk = _Whole(roots, folder, deadline=deadline)
        files = walk.paths()
        if walk.count > MOST_PATHS:
            raise TooMuch(f"there are more than {MOST_PATHS:,} files and folders")
        if walk.was_cut:
            raise TooMuch("looking at its files takes too long")
        yield Listing(folder, files, walk.folders, walk.left_out)


class _Whole(Walk):
    """A walk that takes every link for what it is, and says what it passed over."""

    def __init__(self, roots: Roots, start: Path, *, deadline: Deadline) -> None:
        super().__init__(roots, start, deadline=deadline)
        self._top = f"{str(start).rstrip('/')}/"
        self.left_out: set[str] = set()
        self.count = 0

    def _content(
        self, names: tuple[list[str], list[str], list[str]], folder: str, rules: Ignore
    ) -> tuple[list[str], list[str], Ignore]:
        every = names[0] + names[1] + names[2]
        content = super()._content(names, folder, rules)
        kept = content[0] + content[1]
        self.count += len(kept)
        self.was_cut = self.was_cut or self.count > MOST_PATHS
        if len(kept) < len(every):
            prefix = f"{folder}/"[len(self._top) :]
            self.left_out.update(prefix + name for name in {*every} - {*kept})
        return content

    def _is_within(self, path: str) -> bool:
        del path
        return True


def _folders(roots: Roots) -> Sequence[Path]:
    """Return the folders to look through: the project's, not all of a larger one that holds it, and the others."""
    project, folders = roots.folder, roots.folders
    if any(project.is_relative_to(folder) for folder in folders):
        folders = (project, *(each for each in folders if not project.is_relative_to(each)))
    found: list[Path] = []
    for folder in sorted(folders):  # a folder comes before what is in it
        if not any(folder.is_relative_to(other) for other in found):
            found.append(folder)
    return found
