"""The sandbox of ybs's own git: it sees the git folder, of the work tree what it was given, and nothing else.

Commands of the model may still run while git works, and can exchange any folder of the project with a link at any
moment. Git looks at a path first and uses it later, so no check of its own or before it helps. In here it does not
matter: what lies outside is not mounted (bubblewrap), or may not be opened (Landlock, seatbelt). The work tree is
read-only for every command, and the git folder for those that only read: whoever wants files written has them made in
the git folder and puts them in place by a walk that follows no link (`git_checkout`).
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ybs.git.hardening import LOOKS_AT_FILES, WRITE
from ybs.security.paths.repository import Repository
from ybs.security.sandbox.launch import SandboxView
from ybs.security.sandbox.places import lies_in

if TYPE_CHECKING:
    from ybs.security.paths.roots import Roots

_TELL_OF_FILES = (".gitignore", ".gitattributes")


class GitSandbox:
    """What the git of a session may see. `is_off`: the person turned the sandbox off, and git is started as it is."""

    def __init__(self, roots: "Roots | None" = None, *, is_off: bool = False) -> None:
        self._roots, self.is_off = roots, is_off

    def view(
        self, repository: Repository, folder: Path, command: str, also: Sequence[str] = ()
    ) -> SandboxView | None:
        """Return what a command of git sees, started for a folder; `also` are more files. None: all that there is.

        Of the work tree that is what tools may work in: only those folders, without blocked paths, and the lists of
        ignored files and attributes above them.
        """
        if self.is_off:
            return None
        top = str(repository.work_tree)
        git_folders = {str(repository.git_folder), str(repository.common_folder)}
        shown: list[str] = []
        if command in LOOKS_AT_FILES:
            shown = [path for root in self._folders(folder) for path in _shown(root, top)]
        return SandboxView(
            folder=top,
            git_folders=tuple(
                path
                for path in sorted(git_folders)
                if not any(path != other and lies_in(path, other) for other in git_folders)
            ),
            shown=(*dict.fromkeys(shown), *also),
            hidden=self._hidden(shown),
            is_writing=command in WRITE,
        )

    def shows(self, path: str, folder: Path) -> bool:
        """Return whether git for a folder sees what lies at an absolute path. To it all else is deleted."""
        return self.is_off or any(lies_in(path, root) for root in self._folders(folder))

    def _folders(self, folder: Path) -> list[str]:
        return [str(root) for root in (self._roots.folders if self._roots else (folder.resolve(),))]

    def _hidden(self, shown: Sequence[str]) -> tuple[str, ...]:
        if self._roots is None:
            return ()
        return tuple(path for folder in shown for path in self._roots.blocked_in(folder))


def _shown(root: str, top: str) -> Iterator[str]:
    """Yield of a work tree what lies in a folder, and what the folders above say of it."""
    if lies_in(top, root):
        yield top
    elif lies_in(root, top):
        yield root
        while root != top:
            root = os.path.dirname(root)  # noqa: PTH120 - texts throughout
            yield from filter(_is_file, (f"{root}/{name}" for name in _TELL_OF_FILES))


def _is_file(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)  # noqa: PTH113, PTH114 - texts throughout
