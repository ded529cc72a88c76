"""The `rg` program, if a trusted one is there: it counts the matching lines of given files quickly.

https://github.com/BurntSushi/ripgrep/blob/master/GUIDE.md
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ybs.security.paths import Roots
from ybs.tools.child import output_of
from ybs.tools.walk import Deadline

_OPTIONS = (
    "--count",
    "--with-filename",
    "--null",
    "--text",
    "--crlf",
    "--no-config",
    "--no-messages",
)
_COUNT = re.compile(rb"([^\0]+)\0(\d+)\n")  # a name may hold line ends
_BATCH_CHARS = 100_000  # of paths on one command line
#: Syntax that Python and Rust read differently, or only one of them knows.
_DIALECT = re.compile(
    r"\(\?|\[\[|&&|--|~~|\\[^\\.\-/()\[\]{}*+?^$|wWdDsSbBntr\"']|\{,|\\\d|[^\x00-\x7f]"
)


def program(roots: Roots) -> str:
    """Return the absolute path of `rg`, or nothing. One that the project could have made does not count."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if not folder.startswith("/"):
            continue
        path = Path(folder, "rg")
        places = (path, Path(os.path.realpath(path)))
        is_trusted = not any(
            place.is_relative_to(root) for place in places for root in roots.folders
        )
        if is_trusted and path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return ""


def counts(
    rg: str, pattern: str, folder: Path, paths: Sequence[str], deadline: Deadline
) -> dict[str, int] | None:
    """Count the matching lines of each file (paths relative to `folder`); files without any are left out.

    Returns None where `rg` cannot do it as Python would.
    """
    if _DIALECT.search(pattern):
        return None
    found: dict[str, int] = {}
    for batch in _batches(paths):
        try:
            output, code = output_of(
                [rg, *_OPTIONS, "--regexp", pattern, "--", *batch], folder=folder, deadline=deadline
            )
        except OSError:
            return None
        if code not in (0, 1):  # 1: nothing found; else out of time, or a pattern it does not know
            return None
        for path, count in _COUNT.findall(output):
            found[os.fsdecode(path)] = int(count)
    return found


def _batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    start = size = 0
    for place, path in enumerate(paths):
        size += len(path) + 1
        if size > _BATCH_CHARS:
            yield paths[start : place + 1]
            start, size = place + 1, 0
    if start < len(paths):
        yield paths[start:]
