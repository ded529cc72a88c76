"""The titles of the last commits by one quick process, for a first request that must not wait.

`rev-list` runs no program: it compares, filters, pages and verifies nothing, and its name stands in no setting. So the
repository's settings need not be listed before, as for everything else that ybs's own git does (`git.py`); what always
holds is overridden all the same, and its environment and its sandbox are the same.
"""

import os
import select
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE  # asyncio has loaded it
from time import monotonic
from typing import TYPE_CHECKING

from ybs.config.host import Host
from ybs.git.hardening import OPTIONS, GitSandbox, environment, overrides
from ybs.security.launcher import start, trusted_program
from ybs.security.paths.repository import Repository, check_complete, find_repository
from ybs.security.sandbox.confined import SAID_BY_BUBBLEWRAP, cannot_be_had, launches

if TYPE_CHECKING:
    from subprocess import Popen

MOST_BYTES = 64_000


class Titles:
    """The answer of a git that has been started, and other ways to start it. `read` it once, or `close` it."""

    def __init__(self, process: "Popen[bytes]", others: "Iterator[Popen[bytes]]") -> None:
        self._process, self._others = process, others

    @property
    def is_ready(self) -> bool:
        """Whether `read` has something to read at once."""
        return self._waits(0)

    def read(self, seconds: float) -> list[str]:
        """Return a line for each of the last commits, the newest first: short name and title, as they were written.

        Nothing where there is no commit, or where it takes longer than this. What is too long is cut. It blocks.
        """
        until = monotonic() + seconds
        while not (said := self._said(until)):
            if not cannot_be_had(self._process.returncode, SAID_BY_BUBBLEWRAP):
                break
            process = next(self._others, None)
            if process is None:
                break
            self._process = process
        # Before each stands a line with the whole name; only newer ones than git 2.33 leave that out.
        return said[:MOST_BYTES].decode(errors="replace").split("\n")[1::2]

    def _said(self, until: float) -> bytes:
        """Return what it says, and end it; nothing where it takes too long."""
        said = bytearray()
        try:
            while len(said) < MOST_BYTES:
                if not self._waits(max(until - monotonic(), 0)):
                    return b""
                if not (data := os.read(self._handle, MOST_BYTES)):
                    self._process.wait()
                    break
                said += data
        finally:
            self.close()
        return bytes(said)

    def close(self) -> None:
        """End it. A second time does nothing."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        with self._process:
            pass  # which closes its pipe and waits for its end

    @property
    def _handle(self) -> int:
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        return self._process.stdout.fileno()

    def _waits(self, seconds: float) -> bool:
        return bool(select.select([self._handle], [], [], seconds)[0])


def ask_titles(host: Host, folder: Path, count: int) -> Titles | None:
    """Ask git for the last commits of the repository around a folder; None where there is none, or no git."""
    try:
        repository = find_repository(folder)
        check_complete(repository)
    except (ValueError, OSError):
        return None
    program = trusted_program("git", environ=host.environ, also=(folder,))
    if program is None:
        return None
    words = ("rev-list", f"--max-count={count}", "--format=%h %s", "HEAD")
    argv = [str(program), *OPTIONS, *overrides(()), *words, "--"]
    started = _started(argv, repository)
    try:
        return Titles(next(started), started)
    except OSError:
        return None


def _started(argv: Sequence[str], repository: Repository) -> "Iterator[Popen[bytes]]":
    """Start git in a sandbox that has the git folder alone, in one way after the other. Raises OSError."""
    view = GitSandbox().view(repository, repository.work_tree, "rev-list")
    for launch in launches(argv, environment(repository, {}), view):
        yield start(launch, folder=repository.work_tree, stdout=PIPE)
