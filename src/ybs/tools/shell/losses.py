"""Find the files that a command would remove or overwrite and that no undo brings back, as far as its words show.

Undo keeps no file over 10 MB, nothing in bulk folders, and nothing outside of the project. A command says only in
part what it does, so this is a seat belt: what an interpreter or a build removes is not seen here.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from glob import glob
from itertools import islice
from pathlib import Path

from ybs.config.host import Host
from ybs.security.commands.command import Command, scan
from ybs.security.commands.options import operands_of
from ybs.security.commands.wrappers import read
from ybs.security.paths.bulk import MOST_KEPT_BYTES, has_bulk_mark, is_bulk_name
from ybs.security.paths.roots import Roots
from ybs.tools.searching.ignore import Ignore, ignore_above

_REMOVING = frozenset(("rm", "unlink", "shred", "truncate", "tee", "rmdir"))
_ONTO = frozenset(("cp", "mv", "install", "ln"))
_IN_PLACE = frozenset(("sed", "perl", "ruby"))
_PROGRAMS = re.compile(rf"\b(?:{'|'.join(sorted(_REMOVING | _ONTO | _IN_PLACE))})\b")
_MOST_PATHS = 1_000
_MOST_ENTRIES = 2_000


def loss(command: str, folder: Path, roots: Roots) -> str:
    """Return the files that the command, run in a folder, would destroy beyond undo; empty if none is seen."""
    names_program = _PROGRAMS.search(command) is not None
    if not names_program and ">" not in command:
        return ""
    reading = read(command)
    is_clear = reading.is_clear and "$" not in command and "`" not in command
    if is_clear:
        touched = _touched(reading.runs, str(folder), roots.host)
    else:
        may_lose = names_program or any(
            "$" in target for run in reading.runs for target in run.targets
        )
        touched = _named_anywhere(command, str(folder), roots.host) if may_lose else ()
    for path in dict.fromkeys(islice(touched, _MOST_PATHS)):
        if why := _why_unkept(path, roots, is_clear=is_clear):
            shown = roots.show(Path(path))
            return f"undo cannot bring back {shown}: {why}"
    return ""


def _named_anywhere(command: str, folder: str, host: Host) -> Iterator[str]:
    """Yield all paths that a text names which is not clear."""
    for word in scan(command):
        yield from _expanded(word.rpartition("=")[2], folder, host)


def _touched(runs: Sequence[Command], folder: str, host: Host) -> Iterator[str]:
    """Yield the paths that commands may remove or overwrite."""
    for run in runs:
        name = run.words[0] if run.words else ""
        operands = operands_of(run.words) if run.words else []
        if name == "cd" and operands:
            folder = os.path.join(folder, operands[0])  # noqa: PTH118 - texts throughout
        for word in (*run.targets, *_named(name, operands, run)):
            yield from _expanded(word, folder, host)
        if name in _ONTO:
            for source in operands[:-1]:
                inner = f"{operands[-1]}/{os.path.basename(source.rstrip('/'))}"  # noqa: PTH119
                yield from _expanded(inner, folder, host)


def _named(name: str, operands: Sequence[str], run: Command) -> Sequence[str]:
    """Return the operands that a program removes or overwrites."""
    if name in _REMOVING or name == "mv":
        return operands
    if name in _ONTO:
        return operands[-1:] if len(operands) > 1 else ()
    is_in_place = any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in run.words[1:])
    return operands if name in _IN_PLACE and is_in_place else ()


def _expanded(word: str, folder: str, host: Host) -> Iterator[str]:
    word = os.path.expanduser(host.with_home(word))  # noqa: PTH111 - what is left: `~name`
    path = os.path.normpath(os.path.join(folder, word))  # noqa: PTH118
    yield from islice(glob(path), _MOST_PATHS)  # noqa: PTH207 - texts throughout
    yield path


def _why_unkept(path: str, roots: Roots, *, is_clear: bool) -> str:
    """Return why undo does not keep what stands at a path; empty where it does, or nothing is there.

    Of a path outside of the project that counts only where it `is_clear` what becomes of it.
    """
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return ""
    root = next((str(each) for each in roots.folders if Path(path).is_relative_to(each)), "")
    if not root:
        is_own = path in ("/", str(roots.folder)) or str(roots.folder).startswith(f"{path}/")
        return (
            ""
            if is_own or not is_clear or path.startswith("/dev/")
            else "it lies outside of the project"
        )
    if stat.S_ISREG(status.st_mode) and status.st_size > MOST_KEPT_BYTES:
        return "it is over 10 MB"
    if bulk := _bulk_above(path, root, is_folder=stat.S_ISDIR(status.st_mode)):
        return f"{roots.show(Path(bulk))} holds dependencies, build outputs or a cache"
    if stat.S_ISDIR(status.st_mode) and path != root:
        return _unkept_within(path, root, roots)
    return ""


def _bulk_above(path: str, root: str, *, is_folder: bool) -> str:
    """Return the bulk folder that a path lies in, or is; empty for none."""
    parts = Path(path).relative_to(root).parts
    rules, here, is_ignored = ignore_above(Path(root)), root, False
    for part in parts if is_folder else parts[:-1]:
        if os.path.lexists(f"{here}/.git"):
            rules = Ignore()
        rules = rules.within(here)
        is_ignored = is_ignored or not rules.kept([part], here, are_folders=True)
        here = f"{here}/{part}"
        if is_ignored and (is_bulk_name(part) or has_bulk_mark(_names(here))):
            return here
    return ""


def _unkept_within(folder: str, root: str, roots: Roots) -> str:
    """Look into a folder that would go or move as a whole, as far as that is quick."""
    count = 0
    for here, folders, files in os.walk(folder):
        for name in folders:
            path = f"{here}/{name}"
            if is_bulk_name(name) and _bulk_above(path, root, is_folder=True):
                return f"{roots.show(Path(path))} holds dependencies, build outputs or a cache"
        for name in files:
            count += 1
            if _size(f"{here}/{name}") > MOST_KEPT_BYTES:
                return f"{roots.show(Path(here, name))} is over 10 MB"
        if count > _MOST_ENTRIES:
            break
    return ""


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - a text
    except OSError:
        return []


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
