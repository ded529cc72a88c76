"""A session's own folders outside of the project: the home folder and /tmp that its commands see, copies of the project, and its private files.

Each lives as long as the session at most and is held by a lock, so that a later start can remove what a crash left.
Nothing in it is trusted: it is removed by a walk from descriptor to descriptor that follows no link.
"""

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from ybs.config import private_file
from ybs.config.host import MEMORY, Host, is_in_memory, memory_folder, worked_in
from ybs.core.lazy import lazy
from ybs.security.sandbox.launch import Access

UNSHARED = "unshared"
_HOME, _TEMPORARY = "home", "temporary"
_NAME_BYTES = 6
_OWN_NAME = lazy(rf"[0-9a-f]{{{2 * _NAME_BYTES}}}")
_TRIES = 3  # a sweep may be quicker than the lock
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Only Linux has descriptors that need no right to read the folder, and only Linux needs them.
_HANDLE = _FOLDER | getattr(os, "O_PATH", 0)


class HeldFolder:
    """Made in `top` when it is first asked for, for its owner only; removed by `remove`, or when it is forgotten or the program ends.

    `in_memory`: it may not be on a disk; it is made in memory then, where the machine has such a place. Where `top` cannot be used, a
    folder for temporary files has to do, or another one in memory.
    """

    def __init__(self, top: Path, *, in_memory: bool = False) -> None:
        self._top = memory_folder() if in_memory and os.path.ismount(MEMORY) else top
        self._in_memory = in_memory
        self._path = ""
        self._removal: Any = None
        self._making = Lock()  # several programs may be started at once

    @property
    def path(self) -> str:
        """The folder, resolved. Raises OSError."""
        with self._making:
            if not self._path:
                from weakref import finalize  # only a session with commands needs these

                path, lock = _made(self._top)
                self._removal = finalize(self, _remove, path, lock)
                self._furnish(path)
                self._path = path
            return self._path

    def _furnish(self, path: str) -> None:
        """Make what is to be in it from the beginning."""

    def remove(self) -> None:
        """Remove it, if it was made; the next one that is asked for is new."""
        if self._removal is not None:
            self._removal()
        self._path, self._removal = "", None


class PrivateFolder(HeldFolder):
    """What the commands of a session keep outside of the project.

    It is made in `folder`, among ybs's own files.
    """

    def _furnish(self, path: str) -> None:
        for name in (_HOME, _TEMPORARY, UNSHARED):
            Path(path, name).mkdir(mode=0o700)

    @property
    def shared(self) -> str:
        """What commands are to have in common as /tmp; empty where that could only be on a disk and may not be."""
        is_fine = not self._in_memory or is_in_memory(str(self._top))
        return self.temporary if is_fine else ""

    @property
    def home(self) -> str:
        """What the program takes for the home folder."""
        return f"{self.path}/{_HOME}"

    @property
    def temporary(self) -> str:
        """What the program takes for the folder of temporary files."""
        return f"{self.path}/{_TEMPORARY}"

    @property
    def unshared(self) -> str:
        """The one place where a command may write that runs read-only; other commands do not look there."""
        return f"{self.path}/{UNSHARED}"

    def alone(self) -> "PrivateFolder":
        """Return a new one, for one start of a program. It lies in this one, and goes with it at the latest. Raises OSError."""
        return PrivateFolder(Path(self.path))

    def folders_for(self, access: Access) -> dict[str, str]:
        """Return the folders for a program: its home and its temporary files, as `environment_of` takes them."""
        if access.read_only:
            return {"home": self.unshared, "temporary": self.unshared}
        return {"home": self.home, "temporary": self.temporary}

    def opened_for(self, access: Access) -> Sequence[str]:
        """Return what a program may write in."""
        return tuple(dict.fromkeys(self.folders_for(access).values()))


def sweep(host: Host) -> None:
    """Remove the folders of sessions that ended without doing so. It may take long: call it in a thread."""
    for top in (host.scratch_folder, memory_folder(), host.copies_folder):
        if not os.path.lexists(top):
            continue
        with suppress(OSError, private_file.Unsafe), private_file.opened_folder(top) as folder:
            for name in filter(_OWN_NAME().fullmatch, os.listdir(folder)):  # noqa: PTH208 - of a descriptor
                if (lock := _locked(name, folder)) is not None:
                    _remove(name, lock, folder)


def _made(top: Path) -> tuple[str, int]:
    """Make a new folder; return its path and the lock on it, -1 where it has none. Raises OSError."""
    with suppress(OSError, private_file.Unsafe):
        private_file.make_folder(top)
        for _ in range(_TRIES):
            path = os.path.realpath(top / os.urandom(_NAME_BYTES).hex())
            Path(path).mkdir(mode=0o700)
            if (lock := _locked(path)) is not None:
                return path, lock
    from tempfile import mkdtemp

    path = os.path.realpath(mkdtemp(prefix="ybs-", dir=MEMORY if is_in_memory(str(top)) else None))
    worked_in.add(path)
    return path, -1


def _locked(path: str, folder: int | None = None) -> int | None:
    """Lock the folder and return the descriptor that holds the lock; None where it is somebody else's."""
    with suppress(OSError):
        descriptor = os.open(path, _FOLDER, dir_fd=folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.stat(
                path, dir_fd=folder, follow_symlinks=False
            )  # a sweep may have removed it in this moment
        except OSError:
            os.close(descriptor)
        else:
            return descriptor
    return None


def remove_folder(path: str, folder: int | None = None) -> None:
    """Remove a folder with all that is in it, by its name in an open one if that is given. What cannot be removed stays, for the next sweep."""
    with suppress(OSError):
        descriptor = os.open(path, _FOLDER, dir_fd=folder)
        try:
            _empty(descriptor)
        finally:
            os.close(descriptor)
        os.rmdir(path, dir_fd=folder)


def _remove(path: str, lock: int, folder: int | None = None) -> None:
    remove_folder(path, folder)
    if lock >= 0:
        os.close(lock)


def _empty(top: int) -> None:
    """Remove all that is in an open folder. Folders are moved to the top first, so however deep it was, no path is long."""
    while names := os.listdir(top):
        for name in names:
            if _is_removed(name, top):
                continue
            inner = os.open(name, _FOLDER, dir_fd=top)
            try:
                for below in os.listdir(inner):  # noqa: PTH208 - of a descriptor
                    if not _is_removed(below, inner):
                        fresh = os.urandom(8).hex()
                        os.rename(below, fresh, src_dir_fd=inner, dst_dir_fd=top)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _is_removed(name: str, folder: int) -> bool:
    """Remove an entry, of a link itself and not what it leads to; a folder is only made accessible."""
    try:
        os.unlink(name, dir_fd=folder)
    except (IsADirectoryError, PermissionError):  # what Linux and macOS say of a folder
        _make_accessible(name, folder)
        return False
    return True


def _make_accessible(name: str, folder: int) -> None:
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, 0o700, dir_fd=folder, follow_symlinks=False)
        return
    opened = os.open(name, _HANDLE, dir_fd=folder)
    try:
        Path(f"/proc/self/fd/{opened}").chmod(0o700)
    finally:
        os.close(opened)
