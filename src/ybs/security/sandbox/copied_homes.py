"""Homes of programs that begin as copies of another one.

The home that a server has in common for all projects is written only while it sees none of them. In a project it has a copy, so what a project's code
leaves there runs in no other one. Copying thousands of files at each start takes seconds. So a copy is used again, and made the same again: what has another
number, size, mode or time of change than after it was copied is copied anew. No program can set that time, `st_ctime`.
"""

import json
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from ybs.config import private_file
from ybs.security.sandbox.scratch import remove_folder

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READY = "ready"
_LARGEST_NOTES = 200_000_000
#: Number, mode, size and time of change; of a folder the first two.
_Note: TypeAlias = list[int]


def mark_ready(home: Path) -> None:
    """Say that a program has put into its home what it needs; copies are made anew. Raises ConfigError and OSError."""
    private_file.replace(home / _READY, b"", waits=False)


def mark_unready(home: Path) -> None:
    """Have the program start once more where it sees no project. Raises ConfigError and OSError."""
    private_file.remove(home / _READY)


def is_ready(home: Path) -> bool:
    """Return whether a program has put into its home what it needs."""
    return bool(_state_of(home))


def _state_of(home: Path) -> str:
    try:
        facts = os.lstat(home / _READY)
    except OSError:
        return ""
    return f"{facts.st_ino} {facts.st_ctime_ns}"


def borrow(home: Path, until: ExitStack, *, may_reuse: bool) -> Path:
    """Return a copy of a home that nobody else has until that is closed, with nothing in it of who had it before.

    `may_reuse`: no process of a program outlives it, to write into the copy when another one has it. Raises ConfigError and OSError.
    """
    top = home.with_name(f"{home.name}-copies")
    number, lock = 0, None
    while lock is None:
        number += 1
        with suppress(private_file.Busy):
            lock = private_file.open_locked(top / f"{number}.lock")
    until.callback(os.close, lock)
    place, notes, state = top / f"{number}", top / f"{number}.json", _state_of(home)
    known = _noted(notes, state) if may_reuse and state else None
    private_file.remove(notes)
    if known is None:
        remove_folder(str(place))
        place.mkdir(mode=0o700)
        if home.is_dir():
            _copy_tree(home, place)
        known = dict(_notes_of(place))
    else:
        _restore(home, place, known)
    if _state_of(home) == state:
        data = json.dumps([state, known]).encode()
        private_file.replace(notes, data, waits=False)
    return place


def _noted(notes: Path, state: str) -> dict[str, _Note] | None:
    """Return what is known of a copy of a home in that state."""
    data = private_file.read(notes, most_bytes=_LARGEST_NOTES)
    found: Any = ["", {}]
    with suppress(ValueError):  # there are none, or the disk lost a part of them
        found = json.loads(data or b"")
    return found[1] if found[0] == state else None


def _note(facts: os.stat_result) -> _Note:
    is_folder = stat.S_ISDIR(facts.st_mode)
    changing = () if is_folder else (facts.st_size, facts.st_ctime_ns)
    return [facts.st_ino, facts.st_mode, *changing]


def _notes_of(place: Path) -> Mapping[str, _Note]:
    found: dict[str, _Note] = {}
    for path, folders, files, here in os.fwalk(place):
        inside = os.path.relpath(path, place)
        for name in (*folders, *files):
            facts = os.stat(name, dir_fd=here, follow_symlinks=False)
            found[os.path.normpath(f"{inside}/{name}")] = _note(facts)
    return found


def _restore(home: Path, place: Path, known: dict[str, _Note]) -> None:
    """Make a copy the same again, and note what was copied. Raises OSError where something cannot be removed."""
    found: set[str] = set()
    folder = os.open(place, _FOLDER)
    try:
        _prune(folder, "", known, found)
    finally:
        os.close(folder)
    for name in sorted(known.keys() - found):  # a folder comes before what is in it
        is_folder = stat.S_ISDIR(known.pop(name)[1])
        with suppress(FileNotFoundError):
            if is_folder:
                (place / name).mkdir()
            else:
                above = os.open((home / name).parent, _FOLDER)
                try:
                    _copy_entry(above, Path(name).name, place / name)
                finally:
                    os.close(above)
            known[name] = _note(os.lstat(place / name))
    folders = [name for name, note in known.items() if stat.S_ISDIR(note[1])]
    _copy_times(home, place, folders)


def _copy_times(home: Path, to: Path, folders: Iterable[str]) -> None:
    """Give folders the times that they have in the home: npm installs anew what lies in newer ones than its `.package-lock.json`."""
    for name in folders:
        with suppress(OSError):  # it is gone from one of them
            facts = os.lstat(home / name)
            if os.lstat(to / name).st_mtime_ns != facts.st_mtime_ns:
                os.utime(to / name, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _prune(folder: int, inside: str, known: Mapping[str, _Note], found: set[str]) -> None:
    """Remove what is not as it was copied from an open folder; add the names of the rest to `found`."""
    with os.scandir(folder) as entries:
        here = [(each.name, each.stat(follow_symlinks=False)) for each in entries]
    for name, facts in here:
        path, is_folder = inside + name, stat.S_ISDIR(facts.st_mode)
        if known.get(path) != _note(facts):
            _remove(folder, name, is_folder=is_folder)
            continue
        found.add(path)
        if is_folder:
            inner = os.open(name, _FOLDER, dir_fd=folder)
            try:
                _prune(inner, f"{path}/", known, found)
            finally:
                os.close(inner)


def _remove(folder: int, name: str, *, is_folder: bool) -> None:
    """Remove an entry. Raises OSError where it stays."""
    if not is_folder:
        os.unlink(name, dir_fd=folder)
        return
    remove_folder(name, folder)
    with suppress(FileNotFoundError):
        os.rmdir(name, dir_fd=folder)  # something was left in it


def begin_as_copy(home: Path, to: Path) -> None:
    """Have a home that is not there yet begin as a copy, as far as there is room for it; it is there as a whole or not at all."""
    if to.exists() or not home.is_dir():
        return
    private_file.make_folder(to.parent)
    with TemporaryDirectory(dir=to.parent, prefix=".") as folder:
        _copy_tree(home, Path(folder, "home"))
        with suppress(OSError):  # another one was faster
            os.rename(f"{folder}/home", to)  # noqa: PTH104


def _copy_tree(home: Path, to: Path) -> None:
    """Copy files, folders and links by descriptors: the program may be running, and put a link in the place of a folder."""
    made: list[str] = []
    for path, folders, files, here in os.fwalk(home):
        made.append(os.path.relpath(path, home))
        place = to / made[-1]
        place.mkdir(exist_ok=True)
        for name in (*folders, *files):
            with suppress(OSError):  # it is gone, or there is no room
                _copy_entry(here, name, place / name)
    _copy_times(home, to, made)


def _copy_entry(folder: int, name: str, to: Path) -> None:
    """Copy a file or link of an open folder; not a folder, and no socket or pipe that was left behind."""
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        to.symlink_to(os.readlink(name, dir_fd=folder))
        return
    handle = os.open(name, _READ, dir_fd=folder)
    try:
        facts = os.fstat(handle)
        if stat.S_ISREG(facts.st_mode):
            with open(handle, "rb", closefd=False) as source, to.open("xb") as copy:
                copyfileobj(source, copy)
                os.fchmod(copy.fileno(), stat.S_IMODE(facts.st_mode))
            os.utime(to, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    finally:
        os.close(handle)
