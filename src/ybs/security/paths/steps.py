"""What decides where a path leads: not only where it ends, but each link that it passes, and who may put another one there.

What a program is shown is handed on as it was named, never resolved: `led_to` is the one place that decides whether a link on the
way is followed. It follows none that a project, or a command, may have put there, whoever has named the path. A server and another agent
find a program behind such a link all the same where that opens nothing else (`tools.mcp.launching`).
"""

import os
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from ybs.config.host import Host, worked_in
from ybs.config.paths import SYSTEM, TOOLCHAINS
from ybs.core.errors import Refused
from ybs.security.paths.path_text import lies_in, lies_in_one

_MOST_LINKS: Final = 40  # as Linux
#: What every sandbox shows; the last ones are the system's of macOS.
_SHOWN_ANYWAY: Final = (*SYSTEM, "/Applications", "/Library", "/System")


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
            lies_in_one(step, folders) and not lies_in_one(step, but) for step in steps(path)
        )
    except ValueError:
        return False


def led_to(path: str | Path, written: Iterable[str] = ()) -> str:
    """Return where a path leads, without links; empty where one of its links lies where commands may write, and so may lead anywhere.

    They write in the folders that are `written`, and in those that sessions of this process work in.
    """
    *links, end = steps(os.path.abspath(path), has_turns=False)  # noqa: PTH100 - no link is resolved
    folders = worked_in.union(written) if links else ()
    return "" if any(lies_in_one(link, folders) for link in links) else end


def is_led_out(host: Host, path: Path, folder: Path) -> bool:
    """Return whether a link that `led_to` does not follow leads an absolute path out of the project, which is all of its repository.

    The home folder, and what holds it, is no project: links there are the person's own. Beside the folder in its repository none is followed
    to a hidden place: git's folder, and settings that are run.
    """
    try:
        real = os.path.realpath(path)
        if real == os.path.abspath(path):  # noqa: PTH100 - most have no link on the way
            return False
    except ValueError:  # it is no path
        return True
    top, whole = os.path.realpath(folder), str(host.whole_project(folder))
    written = () if lies_in(os.path.realpath(host.home), whole) else (whole,)
    is_inside = lies_in(real, top) or (lies_in(real, whole) and "/." not in real[len(whole) :])
    return not is_inside and not led_to(path, written)


def check_ways(host: Host, paths: Iterable[Path], seen: Iterable[str] = ()) -> None:
    """Raise Refused, with a sentence for the person, for a path that a program is to read and will not find (`missed`), as `led_to` does not follow it."""
    ends = {path: led_to(path) for path in paths}
    unled = [path for path, end in ends.items() if not end]
    for path in missed(host, unled, (*seen, *filter(None, ends.values()))):
        raise Refused(link_words(host, path))


def missed(host: Host, unled: Sequence[Path], seen: Iterable[str] = ()) -> list[Path]:
    """Return the paths that are not followed and lead to nothing which a program has anyway: the system, toolchains, and what is `seen`."""
    if not unled:
        return []
    toolchains = (os.path.realpath(host.home / name) for name in TOOLCHAINS)
    there = (*_SHOWN_ANYWAY, *toolchains, *seen)
    return [path for path in unled if not any(lies_in(os.path.realpath(path), e) for e in there)]


def link_words(host: Host, path: Path) -> str:
    """Say that a link on the way of a path is not followed."""
    real = host.short(os.path.realpath(path))
    return f"{host.short(str(path))} leads to {real} by a link that a project may have put there; name that place"
