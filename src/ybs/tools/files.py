"""Ordinary files: opened without hanging, read whole or in part, written so that nothing is lost."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from ybs.core.errors import ToolError

MOST_BYTES = 20_000_000  # what is edited or compared is held in memory
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_REASONS = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "does not exist: a part of its path is a file",
    errno.EEXIST: "cannot be made: a part of its path is a file",
    errno.EACCES: "cannot be used: permission denied",
    errno.EPERM: "cannot be used: permission denied",
    errno.EROFS: "cannot be written: the file system is read-only",
    errno.ENOSPC: "cannot be written: the disk is full",
    errno.EDQUOT: "cannot be written: the quota is used up",
    errno.ENAMETOOLONG: "has a name that is too long",
    errno.ELOOP: "is a link that leads nowhere, or changed while it was opened",
    errno.EISDIR: "is a folder",
    errno.ENXIO: "is a named pipe or a device, not a file",
}


def failure(error: OSError, shown: str) -> ToolError:
    """Say in words for the model what an operation on the file `shown` ran into."""
    reason = _REASONS.get(error.errno or 0) or f"cannot be used: {error.strerror or error}"
    return ToolError(f"{shown} {reason}")


def open_regular(path: Path, shown: str) -> tuple[int, os.stat_result]:
    """Open an ordinary file for reading; the caller closes the descriptor.

    Folders, pipes, sockets and devices are refused without waiting for them. Raises ToolError.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise failure(error, shown) from error
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return descriptor, status
    os.close(descriptor)
    kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "no ordinary file")
    raise ToolError(f"{shown} is {kind}, not a file")


def read_bytes(path: Path, shown: str) -> tuple[bytes, os.stat_result]:
    """Read a whole file of at most `MOST_BYTES`. Raises ToolError."""
    descriptor, status = open_regular(path, shown)
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - it wraps the descriptor
        if status.st_size > MOST_BYTES:
            raise ToolError(
                f"{shown} has {status.st_size:,} bytes, too many to hold; use run_shell with sed or awk"
            )
        try:
            return file.read(), status
        except OSError as error:
            raise failure(error, shown) from error


def read_if_there(path: Path, shown: str) -> tuple[bytes | None, os.stat_result | None]:
    """Read a whole file, or return None twice where there is none. Raises ToolError otherwise."""
    if not os.path.lexists(path):
        return None, None
    return read_bytes(path, shown)


def write_atomically(path: Path, data: bytes, shown: str) -> None:
    """Put `data` in the place of the file, or of nothing; readers see the old or the new, never a part.

    Mode and owner of an existing file are kept. When it fails the original stands, no stray file
    remains, and ToolError is raised.
    """
    temporary = path.parent / f".ybs-{os.urandom(8).hex()}.tmp"
    try:
        status = path.stat() if path.exists() else None
        if status is not None and not os.access(path, os.W_OK):
            raise ToolError(f"{shown} is write-protected")  # noqa: TRY301 - the cleanup below is one
        _write_new(temporary, data, status)
        os.replace(temporary, path)  # noqa: PTH105 - tests watch this very call
    except OSError as error:
        _remove(temporary)
        raise failure(error, shown) from error
    except BaseException:
        _remove(temporary)
        raise


def _write_new(path: Path, data: bytes, model: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600 if model else 0o666)
    with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - it wraps the descriptor
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        if model:
            _keep_owner(descriptor, model)
            os.fchmod(descriptor, stat.S_IMODE(model.st_mode))
        os.fsync(descriptor)


def _keep_owner(descriptor: int, model: os.stat_result) -> None:
    if (model.st_uid, model.st_gid) == (os.geteuid(), os.getegid()):
        return
    with suppress(PermissionError):  # only the superuser may give files away
        os.fchown(descriptor, model.st_uid, model.st_gid)


def _remove(path: Path) -> None:
    with suppress(OSError):  # it was never made, or it has its new name already
        path.unlink()
