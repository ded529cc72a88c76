"""Reading: the files of a project, opened so that no link, device or secret is read by mistake."""

import os
import re
import stat
from pathlib import Path

from msgspec import Struct

from ybs.repo_map.languages import is_text_source, utf8_of

#: Of larger files the path alone counts.
LARGEST_BYTES = 1_000_000
_POSITIVE = (1 << 63) - 1  # what sqlite can hold
_LONG_LINES, _SMALL_BYTES = 500, 20_000
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
#: Files that hold keys and passwords, by their names.
_SECRET = re.compile(
    r"\.env(?:\..*)?|\.envrc|.*\.env|id_(?:rsa|dsa|ecdsa|ed25519)(?:[._-].*)?|credentials(?:\.(?:json|toml))?"
    r"|.*\.(?:pem|key|p8|p12|pfx|jks|keystore|keytab|kdbx|ppk|asc|gpg|ovpn|tfstate(?:\..*)?|tfvars(?:\.json)?)"
    r"|[._]netrc|\.pgpass|\.my(?:login)?\.cnf|\.(?:vault|git)-(?:token|credentials)|\.htpasswd|\.npmrc|\.pypirc"
    r"|\.dockercfg|\.terraformrc|\.?kube_?config|client_secret.*\.json|service[_-]?account.*\.json"
    r"|secrets?\.(?:ya?ml|json|toml|ini)|\.\w+_history",
    re.IGNORECASE,
)
#: Folders of programs that keep keys in them.
_SECRET_FOLDER = re.compile(r"(?:^|/)\.(?:ssh|aws|azure|docker|gnupg|kube)/", re.IGNORECASE)


class Looks(Struct, frozen=True, gc=False):
    """What the system says of a file; as long as it is the same, the content is taken to be."""

    size: int
    mtime_ns: int
    inode: int


class Tree:
    """The files below a folder. A path is relative; what is not a regular file, or lies behind a link, is not opened."""

    def __init__(self, folder: Path) -> None:
        self._top = os.path.join(folder, "")  # noqa: PTH118 - string paths: thousands of them at each start
        self._real_top = os.path.join(os.path.realpath(folder), "")  # noqa: PTH118 - as above
        self._real: dict[str, bool] = {"": True}

    def forget(self) -> None:
        """Look at the folders anew."""
        self._real = {"": True}

    def look(self, path: str) -> Looks | None:
        """Return what the system says of a file; None where there is none."""
        try:
            facts = os.lstat(self._top + path)
        except (OSError, ValueError):  # ValueError: a zero byte in the name
            return None
        mode = facts.st_mode
        size = facts.st_size if stat.S_ISREG(mode) else -1
        if stat.S_ISDIR(mode):
            return None
        return Looks(size, facts.st_mtime_ns & _POSITIVE, facts.st_ino & _POSITIVE)

    def read(self, path: str) -> bytes:
        """Return the text of a file in UTF-8; nothing where there is none worth reading."""
        if not is_text_source(path) or is_secret(path) or not self._is_within(path):
            return b""
        try:
            data = self._bytes(path)
        except (OSError, ValueError):
            return b""
        data = utf8_of(data)
        return b"" if b"\0" in data[:8_192] or has_long_lines(data) else data

    def _bytes(self, path: str) -> bytes:
        handle = os.open(self._top + path, _OPEN)
        try:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_BYTES:
                return b""
            if "/" in path and not self._is_where(path, handle):
                return b""
            data = os.read(handle, facts.st_size + 1)
            while len(data) <= LARGEST_BYTES and (more := os.read(handle, 65_536)):
                data += more  # it grew, or it is a file that does not know its size
            return data if len(data) <= LARGEST_BYTES else b""
        finally:
            os.close(handle)

    def _is_where(self, path: str, handle: int) -> bool:
        """Return whether an open file is where its path says: a folder can become a link after it was looked at."""
        try:
            return os.readlink(f"/proc/self/fd/{handle}") == self._real_top + path  # noqa: PTH115 - as above
        except OSError:  # only Linux has it
            return True

    def _is_within(self, path: str) -> bool:
        """Return whether no folder on the way to a file is a link."""
        folder = path.rpartition("/")[0]
        known = self._real.get(folder)
        if known is None:
            known = self._is_within(folder) and not os.path.islink(self._top + folder)  # noqa: PTH114 - as above
            self._real[folder] = known
        return known


def is_secret(path: str) -> bool:
    """Return whether a file holds keys or passwords, by its name and its folders."""
    folder, _, name = path.rpartition("/")
    if "." in folder and _SECRET_FOLDER.search(path):
        return True
    return _SECRET.fullmatch(name) is not None


def is_plain(path: str) -> bool:
    """Return whether a path stays below its folder and can be opened at all."""
    return bool(path) and path[0] != "/" and "\0" not in path and ".." not in path.split("/")


def has_long_lines(data: bytes) -> bool:
    """Return whether a text was written by a tool for a tool, as minified scripts are."""
    return len(data) > _SMALL_BYTES and len(data) > _LONG_LINES * (data.count(b"\n") + 1)
