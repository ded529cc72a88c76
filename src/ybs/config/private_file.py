"""ybs's own files: folders 0700, files 0600 whatever the umask, no planted link followed, one writer at a time.

What was checked is what is used: a folder is opened once and everything below it goes through that descriptor.
"""

import os
import stat
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

from ybs.core.errors import ConfigError, YbsError

FOLDER_MODE, FILE_MODE = 0o700, 0o600
LARGEST_BYTES = 64_000_000
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Unsafe(ConfigError):
    """A file or folder of ybs is not ybs's alone: a link, somebody else's, or open to others."""


class Busy(YbsError):
    """Another ybs writes this file."""


def make_folder(path: Path) -> None:
    """Make a folder of ybs with those above it, or find it safe. Raises Unsafe and OSError."""
    with opened_folder(path):
        pass


def read(path: Path, *, most_bytes: int = LARGEST_BYTES) -> bytes | None:
    """Return a file's bytes, or None where there is none. Raises Unsafe and OSError."""
    file = open_to_read(path)
    if file is None:
        return None
    with file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise Unsafe(f"{path} is larger than {most_bytes:,} bytes; move it away")
    return data


def open_to_read(path: Path) -> BinaryIO | None:
    """Open a file for reading, or return None where there is none. Raises Unsafe and OSError."""
    try:
        handle = os.open(path, os.O_RDONLY | _SAFE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _refused(path, error) from error
    try:
        _check_file(path, os.fstat(handle))
    except BaseException:
        os.close(handle)
        raise
    return open(handle, "rb")  # noqa: PTH123 - opened by descriptor


def make(path: Path) -> None:
    """Make an empty file, or find one that is safe. Raises Unsafe and OSError."""
    make_folder(path.parent)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, FILE_MODE))
    except FileExistsError:
        if found := open_to_read(path):
            with found:
                os.fchmod(found.fileno(), FILE_MODE)


def replace(path: Path, data: bytes | Iterable[bytes], *, waits: bool = True) -> None:
    """Write a file in one step: a reader sees the old or the new, never a part. Raises Unsafe and OSError.

    `data` is all of it, or its pieces in order; what making them raises leaves the old file as it was.
    Without `waits` (for the disk) that holds after a kill, but not after a loss of power.
    """
    with opened_folder(path.parent) as folder:
        with suppress(FileNotFoundError):
            _check_file(path, os.stat(path.name, dir_fd=folder, follow_symlinks=False))
        fresh = f".{path.name[:200]}.{os.urandom(6).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
        handle = os.open(fresh, flags, FILE_MODE, dir_fd=folder)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 - opened by descriptor
                os.fchmod(handle, FILE_MODE)
                for piece in (data,) if isinstance(data, bytes) else data:
                    file.write(piece)
                file.flush()
                if waits:
                    os.fsync(handle)
            os.rename(fresh, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=folder)
            raise


def remove(path: Path) -> bool:
    """Delete a file of ybs; a link is deleted, not what it leads to. Return whether it was there."""
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


class PrivateLog:
    """A file that grows at its end and has one writer, as a context manager or until `close`.

    Raises Busy when another process has it open, Unsafe and OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = open_locked(path)

    def append(self, data: bytes) -> None:
        """Add bytes at the end, all of them or (the disk is full) none. Raises OSError."""
        begun = os.fstat(self._handle).st_size
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._handle, left) :]
        except OSError:
            os.ftruncate(self._handle, begun)
            raise

    def sync(self) -> None:
        """Wait until the disk has it. Raises OSError."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Let go of the file and its lock."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_locked(path: Path, *, waits: bool = False) -> int:
    """Open a file for appending, made if it is missing, and hold its lock until the descriptor is closed.

    With `waits` this blocks until the other one lets go. Raises Busy (without it), Unsafe and OSError.
    """
    import fcntl  # not on every system

    with opened_folder(path.parent) as folder:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _SAFE
        while True:
            try:
                handle = os.open(path.name, flags, FILE_MODE, dir_fd=folder)
            except OSError as error:
                raise _refused(path, error) from error
            try:
                facts = os.fstat(handle)
                _check_file(path, facts)
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
                if _is_still(path.name, facts, folder):
                    os.fchmod(handle, FILE_MODE)
                    return handle
            except BlockingIOError as error:
                os.close(handle)
                raise Busy(f"{path} is in use by another ybs; close that one first") from error
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)  # it was replaced while this waited: that lock guards nothing


def _is_still(name: str, facts: os.stat_result, folder: int) -> bool:
    try:
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(now, facts)


@contextmanager
def opened_folder(path: Path) -> Generator[int]:
    """Open a folder of ybs, made with those above it where they are missing. Raises Unsafe and OSError."""
    path = path.parent.resolve() / path.name  # links above it are the person's own affair
    _make_missing(path)
    try:
        handle = os.open(path, _FOLDER)
    except OSError as error:
        raise _refused(path, error) from error
    try:
        _check_folder(path, os.fstat(handle))
        yield handle
    finally:
        os.close(handle)


def _make_missing(path: Path) -> None:
    missing: list[Path] = []
    for above in (path, *path.parents):
        if os.path.lexists(above):
            break
        missing.append(above)
    for above in path.parents:
        if above not in missing:
            _check_above(above, above.stat())
    for folder in reversed(missing):
        with suppress(FileExistsError):  # another ybs was quicker; it is looked at below
            folder.mkdir(FOLDER_MODE)
            folder.chmod(FOLDER_MODE)  # a umask may have taken the owner's own rights


def _check_folder(path: Path, facts: os.stat_result) -> None:
    if facts.st_uid != os.getuid():
        raise Unsafe(f"{path} belongs to another user (uid {facts.st_uid})")
    if facts.st_mode & _OTHERS_WRITE:
        raise Unsafe(f"{path} can be written by others; run: chmod go-w '{path}'")


def _check_above(path: Path, facts: os.stat_result) -> None:
    """Check that nobody else can put another folder in the place of one below this."""
    # Where everybody has a group of their own (umask 002), that group is nobody else.
    is_open = facts.st_mode & stat.S_IWOTH
    is_open |= facts.st_mode & stat.S_IWGRP and facts.st_gid != os.getgid()
    if is_open and not facts.st_mode & stat.S_ISVTX:
        raise Unsafe(f"{path}, a folder above ybs's files, can be written by others")


def _check_file(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        what = "a link" if stat.S_ISLNK(facts.st_mode) else "not a regular file"
        raise Unsafe(f"{path} is {what}; move it away")
    if facts.st_uid != os.getuid():
        raise Unsafe(f"{path} belongs to another user (uid {facts.st_uid})")
    if facts.st_nlink > 1:
        raise Unsafe(f"{path} has a second name (a hard link); move it away")
    if facts.st_mode & _OTHERS_WRITE:
        raise Unsafe(f"{path} can be written by others; run: chmod 600 '{path}'")


def _refused(path: Path, error: OSError) -> Exception:
    """Put the system's words for a link, or for what is not a file, into plain ones."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return error
    if stat.S_ISLNK(mode):
        return Unsafe(f"{path} is a symbolic link, and ybs does not follow links to its own files")
    if isinstance(error, NotADirectoryError):
        return Unsafe(f"{path} is not a folder; move it away")
    return error if stat.S_ISREG(mode) else Unsafe(f"{path} is not a regular file; move it away")
