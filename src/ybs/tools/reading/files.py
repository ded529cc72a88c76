"""Ordinary files: opened without hanging, read whole or in part, written so that nothing is lost."""

import errno
import os
import stat
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING
from zlib import crc32

from ybs.core.errors import ToolError
from ybs.security.paths.opening import OpenEntry

if TYPE_CHECKING:
    from pathlib import Path

    from ybs.security.paths.roots import Roots

MOST_BYTES = 20_000_000  # what is edited or compared is held in memory
_CHUNK = 1_000_000
_KINDS = (
    (stat.S_ISDIR, "a folder, not a file; list_files shows what is in it"),
    (stat.S_ISFIFO, "a named pipe, not a file"),
    (stat.S_ISSOCK, "a socket, not a file"),
    (stat.S_ISCHR, "a device, not a file"),
    (stat.S_ISBLK, "a device, not a file"),
)
_REASONS = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "does not exist: a part of its path is a file",
    errno.EEXIST: "cannot be made: a part of its path is a file",
    errno.EACCES: "cannot be used: permission denied; the person can change that",
    errno.EPERM: "cannot be used: permission denied; the person can change that",
    errno.EROFS: "cannot be written: the file system is read-only",
    errno.ENOSPC: "cannot be written: the disk is full; nothing was changed",
    errno.EDQUOT: "cannot be written: the quota is used up; nothing was changed",
    errno.EFBIG: "cannot be written: it would be larger than a file may be here; nothing was changed",
    errno.ENAMETOOLONG: "has a name that is too long; 255 bytes are usual for each part of a path",
    errno.ELOOP: "is a link that leads nowhere, or changed while it was opened",
    errno.EISDIR: "is a folder",
    errno.ENXIO: "is a named pipe or a device, not a file",
    errno.EAGAIN: "is locked by another program; try again later",
    errno.EBUSY: "cannot be replaced: it is in use, or mounted by itself; use run_shell",
    errno.ESTALE: "changed on its server in the meantime; try again",
}


def failure(error: OSError, shown: str) -> ToolError:
    """Say in words for the model what an operation on the file `shown` ran into."""
    reason = _REASONS.get(error.errno or 0) or f"cannot be used: {error.strerror or error}"
    return ToolError(f"{shown} {reason}")


def open_regular(place: OpenEntry, shown: str) -> tuple[int, os.stat_result]:
    """Open an ordinary file for reading; the caller closes the descriptor.

    Folders, pipes, sockets and devices are refused without opening them. Raises ToolError.
    """
    try:
        _check_kind(place.status(), shown)
        descriptor = place.open(os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise failure(error, shown) from error
    status = os.fstat(descriptor)
    try:
        _check_kind(status, shown)  # it may be another one by now
    except ToolError:
        os.close(descriptor)
        raise
    return descriptor, status


def _check_kind(status: os.stat_result | None, shown: str) -> None:
    mode = stat.S_IFREG if status is None else status.st_mode
    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        return  # opening says what is wrong with a link, or that nothing is there
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "not a regular file")
    raise ToolError(f"{shown} is {kind}")


def read_bytes(place: OpenEntry, shown: str) -> tuple[bytes, os.stat_result]:
    """Read a whole file of at most `MOST_BYTES`. Raises ToolError."""
    descriptor, status = open_regular(place, shown)
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - it wraps the descriptor
        try:
            data = b"" if status.st_size > MOST_BYTES else _read_at_most(file, MOST_BYTES + 1)
        except OSError as error:
            raise failure(error, shown) from error
        size = max(status.st_size, len(data))  # it may grow while it is read
        if size > MOST_BYTES:
            raise ToolError(
                f"{shown} has {size:,} bytes, too many to hold; use run_shell with sed or awk"
            )
        return data, status


def _read_at_most(file: IO[bytes], most: int) -> bytes:
    pieces: list[bytes] = []
    while most > 0 and (piece := file.read(min(most, _CHUNK))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def read_if_there(place: OpenEntry, shown: str) -> tuple[bytes | None, os.stat_result | None]:
    """Read a whole file, or return None twice where there is none. Raises ToolError otherwise."""
    if place.status() is None:
        return None, None
    return read_bytes(place, shown)


def content_at(roots: "Roots", path: "Path") -> bytes | None:
    """Return what a file holds; None where there is none. Raises ToolError and OSError."""
    try:
        with roots.held(path) as place:
            return read_if_there(place, roots.show(path))[0]
    except (FileNotFoundError, NotADirectoryError):
        return None  # nor is its folder there


def remark_on(status: os.stat_result | None) -> str:
    """Return the side effects of replacing the file; mostly none.

    A replaced file is a new one to the system. So hard links, which may lead out of the project, keep the old content.
    """
    others = 0 if status is None else status.st_nlink - 1
    if others < 1:
        return ""
    names = "another name" if others == 1 else f"{others:,} other names"
    return f" It had {names} (hard links); there the old content stays."


def write_atomically(place: OpenEntry, data: bytes, shown: str) -> os.stat_result:
    """Put `data` in the place of the file, or of nothing; readers see the old or the new, never a part.

    Mode, owner, access list and extended attributes of an existing file are kept where the system lets one.
    When it fails the original stands, no stray file remains, and ToolError is raised. Returns the new status.
    """
    old = -1
    try:
        if (found := place.status()) is not None:
            _check_kind(found, shown)
        _check_writable(place, shown, is_new=found is None)
        if found is not None:
            old = open_regular(place, shown)[0]
        return _put_nameless(place, data, old) or _put_named(place, data, old)
    except OSError as error:
        raise failure(error, shown) from error
    finally:
        if old >= 0:
            os.close(old)


def _put_nameless(place: OpenEntry, data: bytes, old: int) -> os.stat_result | None:
    """Write the file, and only then give it a name: a ybs that is killed meanwhile leaves nothing behind.

    Returns None where the system has no files without a name; nothing has changed then.
    """
    flags = getattr(os, "O_TMPFILE", 0)
    try:
        descriptor = place.beside(".").open(os.O_WRONLY | flags, _mode_for(old)) if flags else -1
    except OSError:
        return None  # if there is more to it than that, _put_named meets it too
    if descriptor < 0:
        return None
    with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - it wraps the descriptor
        _fill(file, data, old)
        source = f"/proc/self/fd/{descriptor}"
        if old < 0:
            with suppress(OSError):  # somebody else has made it by now
                os.link(source, place.name, dst_dir_fd=place.folder)
                return os.fstat(descriptor)
        # The name is the same each time, so that the next write takes what a kill between the two steps left.
        beside = _beside(place)
        _remove(beside)
        try:
            os.link(source, beside.name, dst_dir_fd=place.folder)
            beside.replace(place)
        except OSError:  # there is no /proc, or another ybs has just used that name
            _remove(beside)
            return None
        except BaseException:
            _remove(beside)
            raise
        return os.fstat(descriptor)


def remove_leftover(place: OpenEntry) -> None:
    """Remove what a kill between two steps of `write_atomically` left beside the place."""
    _remove(_beside(place))


def _beside(place: OpenEntry) -> OpenEntry:
    return place.beside(f".ybs-{crc32(os.fsencode(place.name)):08x}.tmp")


def _put_named(place: OpenEntry, data: bytes, old: int) -> os.stat_result:
    """Write a file beside the place, and move it there."""
    beside = place.beside(f".ybs-{os.urandom(8).hex()}.tmp")
    try:
        descriptor = beside.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL, _mode_for(old))
        with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - it wraps the descriptor
            _fill(file, data, old)
            beside.replace(place)
            return os.fstat(descriptor)
    except BaseException:
        _remove(beside)
        raise


def _check_writable(place: OpenEntry, shown: str, *, is_new: bool) -> None:
    """Raise ToolError where a safe write is not allowed, or OSError where the whole file system is read-only."""
    folder = place.folder
    can_write = is_new or os.access(place.name, os.W_OK, dir_fd=folder)
    if can_write and os.access(".", os.W_OK | os.X_OK, dir_fd=folder):
        return
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))
    if not can_write:
        raise ToolError(
            f"{shown} is write-protected; nothing was changed. The person can change its mode."
        )
    raise ToolError(
        f"{shown} cannot be written: its folder takes no new files, and a safe write needs one"
    )


def _mode_for(old: int) -> int:
    """Return the mode of a new file; nobody else sees into the one that an old one (-1: none) makes room for."""
    return 0o666 if old < 0 else 0o600


def _fill(file: IO[bytes], data: bytes, old: int) -> None:
    """Write the data to the disk, into a file like the open one `old` if there is one (-1: none)."""
    descriptor = file.fileno()
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
    if old >= 0:
        model = os.fstat(old)
        is_same_owner = _keep_owner(descriptor, model)
        mode = stat.S_IMODE(model.st_mode)
        with suppress(PermissionError):  # a file system without modes
            os.fchmod(descriptor, mode if is_same_owner else mode & ~(stat.S_ISUID | stat.S_ISGID))
        _keep_attributes(descriptor, old)
    os.fsync(descriptor)


def _keep_owner(descriptor: int, model: os.stat_result) -> bool:
    """Give the file to the owner and group of the old one; return whether it has them now."""
    now = os.fstat(descriptor)
    if (model.st_uid, model.st_gid) == (now.st_uid, now.st_gid):
        return True
    with suppress(
        OSError
    ):  # only the superuser may give files away, and not to everybody in a container
        os.fchown(descriptor, model.st_uid, model.st_gid)
        return True
    with suppress(OSError):  # but the group may be one of ours
        os.fchown(descriptor, -1, model.st_gid)
    return False


def _keep_attributes(descriptor: int, old: int) -> None:
    """Copy the extended attributes, of which an access list is one; those of the system's guards stay its own."""
    if sys.platform != "linux":
        return  # Python knows them there only
    with suppress(OSError):  # a file system without them
        for name in os.listxattr(old):
            if name.startswith(("user.", "system.posix_acl")):
                os.setxattr(descriptor, name, os.getxattr(old, name))


def _remove(place: OpenEntry) -> None:
    with suppress(OSError):  # it was never made, or it has its new name already
        place.unlink()
