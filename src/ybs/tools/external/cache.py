"""What programs said of themselves, by their content: a program that has not changed is not asked again."""

from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from ybs.config import private_file
from ybs.core.errors import ConfigError

#: Another one means that programs are asked anew.
VERSION = 1
_MOST_HASHED = 4_000_000
_MOST_ENTRIES = 1_000


class Saying(Struct, frozen=True, kw_only=True):
    """What a program answered, or why that is of no use."""

    answer: bytes = b""
    problem: str = ""


class _Kept(Struct, frozen=True, kw_only=True):
    sayings: dict[str, Saying]
    version: int = VERSION


class SchemaCache:
    """A file of ybs's cache; read once, written when something was added. Without a path it is in memory only."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._sayings: dict[str, Saying] | None = None
        self._has_news = False

    def get(self, key: str) -> Saying | None:
        """Return what the program with this content said."""
        return self._read().get(key)

    def put(self, key: str, saying: Saying) -> None:
        """Remember it."""
        self._read()[key] = saying
        self._has_news = True

    def save(self) -> None:
        """Write what was added; a folder that cannot be written costs nothing but the next start's time."""
        if self._file is None or not self._has_news:
            return
        newest = dict(list(self._read().items())[-_MOST_ENTRIES:])
        try:
            private_file.replace(
                self._file, msgspec.json.encode(_Kept(sayings=newest)), waits=False
            )
        except (OSError, ConfigError):
            return
        self._has_news = False

    def _read(self) -> dict[str, Saying]:
        if self._sayings is None:
            self._sayings = {}
            try:
                data = private_file.read(self._file) if self._file is not None else None
                kept = msgspec.json.decode(data, type=_Kept) if data is not None else None
            except (OSError, ConfigError, msgspec.DecodeError, UnicodeDecodeError):
                kept = None
            if kept is not None and kept.version == VERSION:
                self._sayings = kept.sayings
        return self._sayings


def key_of(path: Path) -> str:
    """Return what stands for a program's content: of a very large one its size and time. Raises OSError."""
    status = path.stat()
    if status.st_size > _MOST_HASHED:
        return f"{path} {status.st_size} {status.st_mtime_ns}"
    return sha256(path.read_bytes()).hexdigest()
