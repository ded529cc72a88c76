"""Caches: the file that keeps a project's index, and the end of those that nobody uses."""

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from ybs.repo_map.store import remove

MOST_FILES, MOST_DAYS, MOST_BYTES = 30, 60, 1_000_000_000
_DAY_SECONDS = 86_400
_SUFFIX = ".index"
_NAME = re.compile(r"[0-9a-f]{32}\.index")


def cache_file(project: Path, caches: Path) -> Path:
    """Return the file that keeps the index of a project, in the folder of all of them."""
    from hashlib import blake2b

    name = os.fsencode(os.path.realpath(project))  # two ways to one project are one project
    return caches / (blake2b(name, digest_size=16).hexdigest() + _SUFFIX)


def mark_used(file: Path) -> None:
    """Let a cache count as used today."""
    with suppress(OSError):
        if time.time() - file.stat().st_mtime > _DAY_SECONDS:
            os.utime(file)


def prune(caches: Path, spare: Path) -> None:
    """Delete caches that were not used for 60 days, and where there are too many those that were used longest ago."""
    found: list[tuple[float, int, Path]] = []
    with suppress(OSError):
        for path in caches.iterdir():
            if path != spare and _NAME.fullmatch(path.name):
                looks = path.lstat()
                found.append((looks.st_mtime, looks.st_size, path))
    oldest, total = time.time() - MOST_DAYS * _DAY_SECONDS, 0
    for place, (seconds, size, path) in enumerate(sorted(found, reverse=True), start=2):
        total += size
        if place > MOST_FILES or seconds < oldest or total > MOST_BYTES:
            remove(path)
