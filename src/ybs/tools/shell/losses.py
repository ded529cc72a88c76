"""Find the files that a command would remove or overwrite and that no undo brings back, as far as its words show.

Which of them undo does not bring back is asked of what keeps the files, wherever they lie: nothing is known of that here. A command says only in part what it does, so this is a seat belt: what an interpreter or a build removes is not
seen here.
"""

import os
import re
from collections.abc import Iterator, Sequence
from glob import glob
from itertools import islice
from pathlib import Path

from ybs.config.host import Host
from ybs.security.commands.command import Command, scan
from ybs.security.commands.options import operands_of
from ybs.security.commands.wrappers import read
from ybs.security.paths.path_text import lies_in
from ybs.tools.workspace import Workspace

_REMOVING = frozenset(("rm", "unlink", "shred", "truncate", "tee", "rmdir"))
_ONTO = frozenset(("cp", "mv", "install", "ln"))
_IN_PLACE = frozenset(("sed", "perl", "ruby"))
_PROGRAMS = re.compile(rf"\b(?:{'|'.join(sorted(_REMOVING | _ONTO | _IN_PLACE))})\b")
_MOST_PATHS = 50_000


def loss(command: str, folder: Path, workspace: Workspace) -> str:
    """Return the files that the command, run in a folder, would destroy beyond undo; empty if none is seen."""
    roots = workspace.roots
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
    folders = [str(each) for each in roots.folders]
    meant: list[str] = []
    for path in dict.fromkeys(islice(touched, _MOST_PATHS)):
        is_around = path in folders or lies_in(str(roots.folder), path)
        is_within = any(lies_in(path, each) for each in folders)
        # A word of a text that is not clear may be anything, so that only what lies here counts.
        if not (is_around or path.startswith("/dev/")) and (is_clear or is_within):
            folder_name, name = os.path.split(path)
            meant.append(os.path.join(os.path.realpath(folder_name), name))  # noqa: PTH118 - a text
    path, why = workspace.first_lost(meant)
    return f"undo cannot bring back {roots.show(Path(path))}: {why}" if why else ""


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
