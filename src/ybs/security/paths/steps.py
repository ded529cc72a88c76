"""What decides where a path leads: not only where it ends, but each link that it passes, and who may put another one there."""

import os
from collections.abc import Container, Iterator
from typing import Final

_MOST_LINKS: Final = 40  # as Linux


def steps(path: str, *, has_turns: bool = True) -> Iterator[str]:
    """Yield the links on the way of an absolute path, the folders that `..` arrives at (unless without `has_turns`), and the end.

    There are no links on the way to any of them. Whoever may write in the folder of a link, or in one that `..` arrives at, can have
    the path lead elsewhere. Raises ValueError for what is not a path.
    """
    pending = _parts(path)
    real, links = "", 0
    while pending:
        part = pending.pop()
        if part == "..":
            real = real.rpartition("/")[0]
            if has_turns and real:
                yield real
            continue
        real = f"{real}/{part}"
        try:
            target = os.readlink(real)  # noqa: PTH115 - a text
        except OSError:
            continue  # not a link, or missing
        yield real
        links += 1
        if links > _MOST_LINKS:
            return
        pending += _parts(target)
        real = "" if target.startswith("/") else real.rpartition("/")[0]
    yield real or "/"


def _parts(path: str) -> list[str]:
    """Return the names of a path, the last one first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def is_away(path: str, folders: Container[str], *, but: Container[str] = ()) -> bool:
    """Return whether an absolute path is away from these folders, whose own links are resolved: each step of it, but for those that lie in one of `but`."""
    try:
        return path.startswith("/") and not any(
            _is_in(step, folders) and not _is_in(step, but) for step in steps(path)
        )
    except ValueError:
        return False


def _is_in(path: str, folders: Container[str]) -> bool:
    while path not in folders:
        if path in ("", "/"):
            return False
        path = path.rpartition("/")[0] or "/"
    return True
