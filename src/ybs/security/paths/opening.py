"""Opening by a walk from the top, folder by folder, that follows no link: what was judged is what is opened.

A path is resolved and judged first (`paths.Roots`), so it holds no link any more. Whoever puts one there
afterwards loses: each step is taken from the descriptor of the step before, with O_NOFOLLOW
(https://man7.org/linux/man-pages/man2/open.2.html), and a link on the way is refused.
"""

import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from ybs.core.errors import Refused
from ybs.security.paths.names import shown_name

#: Only Linux has descriptors that need no right to read the folder.
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


#: Raises Refused for a file that may not be used, by the status of what was opened.
Judge = Callable[[os.stat_result], None]


def stamp_of(status: os.stat_result) -> tuple[int, ...]:
    """Return what tells a file from another one, and from itself once it was changed; its mode is first.

    Anybody may set the time of its content, but nobody that of its last change of state (`st_ctime`).
    """
    which = status.st_mode, status.st_dev, status.st_ino
    return *which, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class OpenEntry:
    """An entry of an open folder: whatever is done to it is done in that folder, wherever it is moved to."""

    def __init__(
        self, folder: int, name: str, judge: Judge | None = None, unsaved: bytes | None = None
    ) -> None:
        """`unsaved` is read in place of what the entry holds: an editor has it open, changed."""
        self.folder, self.name, self._judge, self._unsaved = folder, name, judge, unsaved

    def open(self, flags: int, mode: int = 0o666) -> int:
        """Open the entry itself; the caller closes the descriptor.

        Raises OSError (ELOOP for a link), or Refused for what the judge does not let through.
        """
        if self._unsaved is not None and flags & os.O_ACCMODE == os.O_RDONLY:
            return _open_bytes(self._unsaved)
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.name, flags, mode, dir_fd=self.folder)
        if self._judge is not None:
            try:
                self._judge(os.fstat(descriptor))
            except BaseException:
                os.close(descriptor)
                raise
        return descriptor

    def beside(self, name: str) -> "OpenEntry":
        """Return another entry of the same folder."""
        return OpenEntry(self.folder, name, self._judge)

    def status(self) -> os.stat_result | None:
        """Return the entry's own status, that of a link too, or None where there is nothing."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None if self._unsaved is None else _status_of_new(self._unsaved)

    def unlink(self) -> None:
        """Remove the entry. Raises OSError."""
        os.unlink(self.name, dir_fd=self.folder)

    def replace(self, other: "OpenEntry") -> None:
        """Give this entry the place of the other one in one step. Raises OSError."""
        os.replace(self.name, other.name, src_dir_fd=self.folder, dst_dir_fd=other.folder)

    @contextmanager
    def replaced_by(self, name: str) -> Generator["OpenEntry"]:
        """Give another entry of the folder, which takes this one's place in one step; none stays there where that fails."""
        fresh = self.beside(name)
        try:
            yield fresh
            fresh.replace(self)
        except BaseException:
            with suppress(OSError):
                fresh.unlink()
            raise


@contextmanager
def held(
    path: Path,
    *,
    make_folders: bool = False,
    judge: Judge | None = None,
    unsaved: bytes | None = None,
) -> Generator[OpenEntry]:
    """Hold the folder of the resolved path open and give the place in it.

    `make_folders` makes the ones that are missing; `unsaved` is read in place of the file. Raises OSError, or Refused for a link
    on the way.
    """
    folder = _walk(path.parent, make_folders=make_folders)
    try:
        yield OpenEntry(folder, path.name or ".", judge, unsaved)
    finally:
        os.close(folder)


def _open_bytes(data: bytes) -> int:
    """Return a descriptor that reads the data, which nobody else gets at: in memory where the system can."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("unsaved", os.MFD_CLOEXEC)
    else:
        from tempfile import mkstemp

        descriptor, name = mkstemp()
        os.unlink(name)  # noqa: PTH108 - it is a text
    with open(descriptor, "wb", buffering=0, closefd=False) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _status_of_new(data: bytes) -> os.stat_result:
    descriptor = _open_bytes(data)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def open_listed(path: Path) -> int:
    """Open the resolved folder so that its names can be listed. Raises OSError, or Refused for a link."""
    with held(path) as place:
        return _stepped(place.folder, place.name, path, _LISTED)


def open_below(folder: int, name: str) -> int:
    """Open a folder in an open one so that its names can be listed. Raises OSError, also for a link."""
    return os.open(name, _LISTED, dir_fd=folder)


def read_beginning(path: str | Path, most_bytes: int, *, folder: int | None = None) -> bytes | None:
    """Return the first bytes of a regular file, of a name in an open folder where one is given; None for what is none.

    Nobody waits for a pipe or a device. Raises OSError (also for a link) and ValueError.
    """
    handle = os.open(path, _READ, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        with open(handle, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(handle)


def read_whole(path: str | Path, most_bytes: int) -> bytes:
    """Return the content of a regular file. Raises OSError (also for a link), and ValueError for a longer one and for what is none.

    Where a part would be taken for all that a file says, what stands behind it is not known.
    """
    data = read_beginning(path, most_bytes + 1)
    if data is None or len(data) > most_bytes:
        why = "is not a regular file" if data is None else f"is longer than {most_bytes:,} bytes"
        raise ValueError(f"{path} {why}")
    return data


def _walk(path: Path, *, make_folders: bool) -> int:
    """Return a descriptor of the folder."""
    here = os.open(path.anchor or "/", _STEP)
    for name in path.parts[1:]:
        try:
            below = os.open(name, _STEP, dir_fd=here)
        except (FileNotFoundError, NotADirectoryError):
            below = _entered(here, name, path, make_folders=make_folders)
        finally:
            os.close(here)
        here = below
    return here


def _entered(folder: int, name: str, path: Path, *, make_folders: bool) -> int:
    try:
        return _stepped(folder, name, path, _STEP)
    except FileNotFoundError:
        if not make_folders:
            raise
    with suppress(
        FileExistsError
    ):  # somebody else made it in this moment; what it is shows at once
        os.mkdir(name, dir_fd=folder)
    return _stepped(folder, name, path, _STEP)


def _stepped(folder: int, name: str, path: Path, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except NotADirectoryError:
        if _is_link(folder, name):
            raise Refused(
                f"{shown_name(str(path))} changed while it was being used: {shown_name(name)!r} became a link; "
                "nothing was done"
            ) from None
        raise


def _is_link(folder: int, name: str) -> bool:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return True  # it is being changed under our hands
    return stat.S_ISLNK(status.st_mode)
