"""What programs said of themselves, by their content: a program that has not changed is not asked again."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from ybs.config import private_file
from ybs.core.errors import ConfigError

#: Another one means that programs are asked anew.
VERSION = 2
_MOST_HASHED = 4_000_000
_MOST_ENTRIES = 1_000


class Saying(Struct, frozen=True, kw_only=True):
    """What a program answered, or why that is of no use."""

    answer: bytes = b""
    problem: str = ""


class Look(Struct, frozen=True, array_like=True):
    """What the system says of a file; nobody changes its content without changing this. `key` stands for that content."""

    size: int
    changed_ns: int
    number: int
    key: str

    def is_of(self, status: os.stat_result) -> bool:
        """Return whether the file is as it was."""
        now = (status.st_size, status.st_ctime_ns, status.st_ino)
        return now == (self.size, self.changed_ns, self.number)


class _Kept(Struct, frozen=True, kw_only=True):
    sayings: dict[str, Saying] = {}
    looks: dict[str, Look] = {}
    version: int = VERSION


class SchemaCache:
    """A file of ybs's cache; read once, written when something was added. Without a path it is in memory only."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._kept: _Kept | None = None
        self._has_news = False

    def get(self, key: str) -> Saying | None:
        """Return what the program with this content said."""
        return self._read().sayings.get(key)

    def put(self, key: str, saying: Saying) -> None:
        """Remember it."""
        self._read().sayings[key] = saying
        self._has_news = True

    def key_of(self, path: Path) -> str:
        """Return what stands for a program's content, which is read only where the file has changed. Raises OSError."""
        looks, status, name = self._read().looks, path.stat(), str(path)
        if (look := looks.get(name)) is not None and look.is_of(status):
            return look.key
        key = key_of(path, status)
        looks[name] = Look(status.st_size, status.st_ctime_ns, status.st_ino, key)
        self._has_news = True
        return key

    def save(self) -> None:
        """Write what was added; a folder that cannot be written costs nothing but the next start's time."""
        if self._file is None or not self._has_news:
            return
        kept = self._read()
        newest = _Kept(
            sayings=dict(list(kept.sayings.items())[-_MOST_ENTRIES:]),
            looks=dict(list(kept.looks.items())[-_MOST_ENTRIES:]),
        )
        try:
            private_file.replace(self._file, msgspec.json.encode(newest), waits=False)
        except (OSError, ConfigError):
            return
        self._has_news = False

    def _read(self) -> _Kept:
        if self._kept is None:
            try:
                data = private_file.read(self._file) if self._file is not None else None
                kept = msgspec.json.decode(data, type=_Kept) if data is not None else None
            except (OSError, ConfigError, msgspec.DecodeError, UnicodeDecodeError):
                kept = None
            self._kept = kept if kept is not None and kept.version == VERSION else _Kept()
        return self._kept


def key_of(path: Path, status: os.stat_result) -> str:
    """Return what stands for a program's content: of a very large one its size and time. Raises OSError."""
    from hashlib import sha256  # only where a program is new

    if status.st_size > _MOST_HASHED:
        return f"{path} {status.st_size} {status.st_mtime_ns}"
    return sha256(path.read_bytes()).hexdigest()
