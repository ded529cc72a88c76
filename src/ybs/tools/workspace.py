"""The workspace of the built-in tools: their folders, the files that were read, running commands, and output limits."""

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Protocol

from ybs.core.errors import ToolError
from ybs.core.lazy import lazy
from ybs.security.own_programs import OwnPrograms
from ybs.security.paths.repository import mark_of
from ybs.security.paths.roots import Roots
from ybs.tools.searching.walk import Walk
from ybs.tools.shell.shells import Shells

if TYPE_CHECKING:
    from ybs.git.hardening import GitSandbox

_MOST_FILES = 20_000  # a fingerprint looks at no more
#: What each line of a private key has, and few others.
_MAY_BE_OF_KEY = lazy(r"[A-Za-z0-9+/]{24}|\A\s*[A-Za-z0-9+/]{16,}={0,2}\s*\Z")


def _in_cache(path: str) -> bool:
    folders = path.split("/")[:-1]
    return any(folder.startswith(".") or folder == "__pycache__" for folder in folders)


class ReadLog:
    """The files that this session has read or written, as they were then."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[int, int, int | None]] = {}

    def note(self, path: Path, status: os.stat_result, data: bytes | None) -> None:
        """Remember a file; `data` is None when it was too large to be held."""
        mark = None if data is None else hash(data)
        self._known.pop(path, None)  # it becomes the last one
        self._known[path] = (status.st_mtime_ns, status.st_size, mark)

    def forget(self, path: Path) -> None:
        """Forget a file that is gone."""
        self._known.pop(path, None)

    def knows(self, path: Path) -> bool:
        """Return whether this session has read or written the file."""
        return path in self._known

    def recent(self) -> list[Path]:
        """Return the files, the one that was read or written last at the end."""
        return list(self._known)

    def check(self, path: Path, status: os.stat_result, data: bytes, shown: str) -> None:
        """Raise ToolError if the file was read before and has other content now."""
        known = self._known.get(path)
        if known is None:
            return
        changed_ns, size, mark = known
        if mark is None:
            is_same = (changed_ns, size) == (status.st_mtime_ns, status.st_size)
        else:
            is_same = mark == hash(data)
        if not is_same:
            raise ToolError(
                f"{shown} changed on disk since it was read. Read it again, then decide."
            )


class FindLost(Protocol):
    """Returns the first of some absolute paths that undo would not bring back if it changed now, and why; else empty texts.

    `is_named`: a tool names them; else they are what a command may change.
    """

    def __call__(self, paths: Iterable[str], *, is_named: bool = False) -> tuple[str, str]:
        """Look at the paths, in a thread."""
        ...


def _nothing(paths: Iterable[str], *, is_named: bool = False) -> tuple[str, str]:
    del paths, is_named
    return "", ""


class Workspace:
    """The folders, the log of what was read, what commands share, and the most characters that a result may have.

    `own_programs` says where those of the person start; without it, as in a project that nobody trusts. `learn_keys` takes a text with
    private keys, no line of which a model is to see; `mask` takes the secrets out of a text that is kept in the repository.
    """

    def __init__(  # noqa: PLR0913 - each is a part of its own
        self,
        roots: Roots,
        *,
        shells: Shells | None = None,
        max_output_chars: int = 10_000,
        own_programs: OwnPrograms | None = None,
        since_ns: int | None = None,
        repository: str | None = None,
        learn_keys: Callable[[str], None] | None = None,
        mask: Callable[[str], str] = str,
        first_lost: FindLost = _nothing,
    ) -> None:
        self.roots, self.learn_keys, self.mask = roots, learn_keys, mask
        #: What says what undo would not bring back: of a session, its checkpoints.
        self.first_lost = first_lost
        #: When the session began, in nanoseconds since the epoch.
        self.since_ns = time_ns() if since_ns is None else since_ns
        #: The mark of the repository that was here when it began; empty where there was none.
        self.repository = mark_of(roots.folder) if repository is None else repository
        self.own_programs = own_programs or OwnPrograms(roots, lambda: False)
        self.reads = ReadLog()
        self.shells = shells or Shells(roots)
        #: It may be set anew when a model with another window answers.
        self.max_output_chars = max_output_chars

    def apart(self) -> "Workspace":
        """Return one for another agent of the session: the same folders, with a log and commands of its own."""
        return Workspace(
            self.roots,
            shells=self.shells.apart(),
            max_output_chars=self.max_output_chars,
            own_programs=self.own_programs,
            since_ns=self.since_ns,
            repository=self.repository,
            learn_keys=self.learn_keys,
            mask=self.mask,
            first_lost=self.first_lost,
        )

    def began(self, at_ns: int, repository: str) -> None:
        """Note that the session began at that time, if that is earlier, and with that repository: a saved one goes on."""
        self.since_ns = min(self.since_ns, at_ns)
        if repository.split()[:1] != self.repository.split()[:1]:
            self.repository = ""

    @cached_property
    def git_sandbox(self) -> "GitSandbox":
        """What ybs's own git may see."""
        from ybs.git.hardening import GitSandbox  # not before git runs

        return GitSandbox(self.roots, self.shells.starter)

    def ask_for_losses(self, first_lost: FindLost) -> None:
        """Have another one say what undo would not bring back: that of a session keeps the files."""
        self.first_lost = first_lost

    def limit_outputs(self, most_chars: int) -> None:
        """Have no output of a tool be longer from now on."""
        self.max_output_chars = most_chars

    def may_show_key(self, lines: Iterable[str]) -> bool:
        """Return whether one of the lines may be of a private key."""
        return any(map(_MAY_BE_OF_KEY().search, lines))

    def hide_keys(self, path: Path) -> None:
        """Have no model see the private keys in a file of which a part is shown, which may lack the line that says that it is one."""
        from ybs.tools.reading.content import text_with_key  # few lines look like one of a key

        if self.learn_keys is not None and (text := text_with_key(self.roots, path)):
            self.learn_keys(text)

    def fingerprint(self) -> str:
        """Return a value that changes when a file of the project does.

        Ignored files do not count, nor do caches that running something leaves behind: hidden folders and
        `__pycache__`. Path, size and time of at most 20,000 files are looked at. It may be slow: call it in a thread.
        """
        from hashlib import blake2b  # loaded only where loops are suspected

        digest = blake2b(digest_size=16)
        for entry in Walk(self.roots, self.roots.folder).files(most=_MOST_FILES):
            if _in_cache(entry.path):
                continue
            status = entry.status()
            if status is not None:
                digest.update(
                    f"{entry.path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode(
                        errors="surrogateescape"
                    )
                )
        return digest.hexdigest()
