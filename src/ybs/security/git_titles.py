"""The titles of the last commits by one quick process, for a first request that must not wait.

`rev-list` runs no program: it compares, filters, pages and verifies nothing, and its name stands in no setting. So the
repository's settings need not be listed before, as for everything else that ybs's own git does (`git.py`); what always
holds is overridden all the same, and its environment is the same.
"""

import os
import select
import signal
import subprocess  # asyncio has loaded it
from contextlib import suppress
from pathlib import Path
from time import monotonic

from ybs.security.git_walls import OPTIONS, environment, overrides
from ybs.security.programs import trusted_program
from ybs.security.repository import find_repository

MOST_BYTES = 64_000


class Titles:
    """The answer of a git that has been started. `read` it once, or `close` it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    @property
    def is_ready(self) -> bool:
        """Tell whether `read` has something to read at once."""
        return self._waits(0)

    def read(self, seconds: float) -> list[str]:
        """Return a line for each of the last commits, the newest first: short name and title, as they were written.

        Nothing where there is no commit, or where it takes longer than this. What is too long is cut. It blocks.
        """
        until, said = monotonic() + seconds, bytearray()
        try:
            while len(said) < MOST_BYTES:
                if not self._waits(max(until - monotonic(), 0)):
                    return []
                if not (data := os.read(self._handle, MOST_BYTES)):
                    break
                said += data
        finally:
            self.close()
        # Before each stands a line with the whole name; only newer ones than git 2.33 leave that out.
        return said[:MOST_BYTES].decode(errors="replace").split("\n")[1::2]

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


def ask_titles(folder: Path, count: int) -> Titles | None:
    """Ask git for the last commits of the repository around a folder; None where there is none, or no git."""
    try:
        repository = find_repository(folder)
    except (ValueError, OSError):
        return None
    program = trusted_program("git", away_from=folder)
    if program is None:
        return None
    words = ("rev-list", f"--max-count={count}", "--format=%h %s", "HEAD")
    argv = [str(program), *OPTIONS, *overrides(()), *words, "--"]
    try:
        process = subprocess.Popen(
            argv,
            cwd=repository.work_tree,
            env=environment(repository, {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    return Titles(process)
