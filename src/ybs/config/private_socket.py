"""ybs's own Unix sockets: connected to only where nobody but this user can have put them, or answers."""

import os
import socket
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager
from errno import EACCES
from pathlib import Path
from typing import Final

#: The system takes paths of about 100 bytes only; a folder's descriptor makes them short.
_LONGEST_PATH: Final = 100
#: LOCAL_PEERCRED of macOS and the BSDs, where the socket's own level is 0: unix(4).
_LOCAL_PEERCRED: Final = 1


def connect(path: Path, seconds: float) -> socket.socket:
    """Connect to a socket in a folder in which no other user can write, and to a process of this user. Raises OSError."""
    facts = path.parent.stat()
    owner = None if facts.st_mode & 0o022 else facts.st_uid
    _check_own(owner, "other users can write in its folder")
    link = socket.socket(socket.AF_UNIX)
    try:
        link.settimeout(seconds)
        with short_path(path) as short:
            link.connect(short)
        _check_own(peer_uid(link), "a process of another user answers")
    except BaseException:
        link.close()
        raise
    return link


def _check_own(uid: int | None, why: str) -> None:
    if uid != os.geteuid():
        raise PermissionError(EACCES, why)


@contextmanager
def short_path(path: Path) -> Generator[str]:
    """Hand out the path of a socket in a form that the system takes. Raises OSError."""
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def peer_uid(connection: socket.socket) -> int | None:
    """Return whose process is at the other end of a unix socket; None where the system does not say."""
    try:
        if sys.platform == "linux":
            facts = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return int(struct.unpack("iII", facts)[1])
        return int(struct.unpack("II", connection.getsockopt(0, _LOCAL_PEERCRED, 8))[1])
    except (OSError, struct.error):
        return None
