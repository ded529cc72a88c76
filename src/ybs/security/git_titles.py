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


def last_titles(folder: Path, count: int, *, timeout_seconds: float) -> list[str]:
    """Return a line for each of the last commits, the newest first: short name and title, as they were written.

    Nothing where there is no repository, no commit or no git, or where it takes too long. What is too long is cut.
    """
    try:
        repository = find_repository(folder)
    except (ValueError, OSError):
        return []
    program = trusted_program("git", away_from=folder)
    if program is None:
        return []
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
        return []
    with process:
        try:
            printed = _read(process, monotonic() + timeout_seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    # Before each stands a line with the whole name; only newer ones than git 2.33 leave that out.
    return printed.decode(errors="replace").split("\n")[1::2]


def _read(process: "subprocess.Popen[bytes]", until: float) -> bytes:
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    handle, said = process.stdout.fileno(), bytearray()
    while len(said) < MOST_BYTES:
        left = max(until - monotonic(), 0)
        if not select.select([handle], [], [], left)[0]:
            return b""
        data = os.read(handle, MOST_BYTES)
        if not data:
            break
        said += data
    return bytes(said[:MOST_BYTES])
