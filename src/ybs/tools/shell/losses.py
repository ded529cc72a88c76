"""Find the files that a command would remove or overwrite and that no undo brings back, as far as its words show.

Which of them undo does not bring back is asked of what keeps the files, wherever they lie, and what a program does to its operands of
`commands.writers`: neither is known here. What the reading of a command shows counts always; where that is not all, every word does
that names something in the folders that tools work in. A command says only in part what it does, so this is a seat belt: what an
interpreter or a build removes is not seen here.
"""

import os
import re
from collections.abc import Iterator
from glob import glob
from itertools import chain, islice
from pathlib import Path

from ybs.config.host import Host
from ybs.security.commands.command import MOVING, Command, scan
from ybs.security.commands.options import operands_of, values_of
from ybs.security.commands.wrappers import Reading, read
from ybs.security.commands.writers import OVERWRITING, written_over
from ybs.security.paths.path_text import lies_in
from ybs.tools.workspace import Workspace

_PROGRAMS = re.compile(rf"\b(?:{'|'.join(sorted(OVERWRITING))})\b")
#: Behind it the rest of a line runs in the folder, if there is one.
_MOVES_FIRST = re.compile(r"\s*cd\s+[^\s;&|]+\s*&&")
_CHANGES_WORDS = re.compile(r"[$`]|HOME=")
_BRACES = re.compile(r"\{.*(?:,|\.\.).*\}")
_MOST_PATHS = 50_000
_MOST_FOLDERS = 50


def loss(command: str, folder: Path, workspace: Workspace) -> str:
    """Return the files that the command, run in a folder, would destroy beyond undo; empty if none is seen."""
    roots = workspace.roots
    reading = read(command)
    is_clear = reading.is_clear and not _CHANGES_WORDS.search(command)
    touched = _touched(reading, str(folder), roots.host)
    if not is_clear and (_PROGRAMS.search(command) or _writes_somewhere(reading)):
        touched = chain(touched, _named_anywhere(command, str(folder), roots.host))
    folders = [str(each) for each in roots.folders]
    meant: list[str] = []
    for path in dict.fromkeys(islice(touched, _MOST_PATHS)):
        is_around = path in folders or lies_in(str(roots.folder), path)
        is_within = any(lies_in(path, each) for each in folders)
        if not (is_around or path.startswith("/dev/")) and (is_clear or is_within):
            folder_name, name = os.path.split(path)
            meant.append(os.path.join(os.path.realpath(folder_name), name))  # noqa: PTH118 - a text
    path, why = workspace.first_lost(meant) if meant else ("", "")
    return f"undo cannot bring back {roots.show(Path(path))}: {why}" if why else ""


def _writes_somewhere(reading: Reading) -> bool:
    """Return whether it is only known when it runs which file a command writes to."""
    return any("$" in target for run in reading.meant for target in run.targets)


def _named_anywhere(command: str, folder: str, host: Host) -> Iterator[str]:
    """Yield all paths that a text names which is not clear."""
    for word in scan(command):
        yield from _expanded(word.rpartition("=")[2], folder, host)


def _touched(reading: Reading, folder: str, host: Host) -> Iterator[str]:
    """Yield the paths that commands may remove or overwrite, in each folder that they may run in."""
    folders = [folder]
    for place, run in enumerate(reading.meant):
        names = [host.with_home(each) for each in _folders_of(run)]
        there = [os.path.join(each, name) for each in folders for name in names]  # noqa: PTH118 - texts throughout
        there = [each for each in there[:_MOST_FOLDERS] if os.path.isdir(each)]  # noqa: PTH112 - texts throughout
        is_first = not place and reading.script.is_clear and _MOVES_FIRST.match(reading.text)
        folders = there if is_first and there else [*folders, *there][:_MOST_FOLDERS]
        for word in written_over(run):
            for each in folders:
                yield from _expanded(word, each, host)


def _folders_of(run: Command) -> list[str]:
    """Return the folders that a command moves to, or runs a program in."""
    words = run.words
    if words and words[0] in MOVING:
        return operands_of(words)[:1]
    return values_of(words, "-C --chdir")


def _expanded(word: str, folder: str, host: Host) -> Iterator[str]:
    word = os.path.expanduser(host.with_home(word))  # noqa: PTH111 - what is left: `~name`
    path = os.path.normpath(os.path.join(folder, word))  # noqa: PTH118
    yield from islice(glob(_BRACES.sub("*", path)), _MOST_PATHS)  # noqa: PTH207 - texts throughout
    yield path
