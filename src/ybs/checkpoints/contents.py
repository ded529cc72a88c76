"""Contents by their digest: those of a session in a file without a name, those of a turn behind the line that names them."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ybs.checkpoints.states import State, digest_of
from ybs.config import private_file
from ybs.core.errors import YbsError


class NoRoom(YbsError):
    """A content cannot be kept: the disk is full, mostly."""


class Pack:
    """The contents that a session has seen, in one file that has no name and ends with the process.

    So nothing of a project stays behind that no turn changed, even after a kill. The folder must exist. Raises OSError.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / f".pack-{os.urandom(8).hex()}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path, flags, private_file.FILE_MODE)
        self._file = open(handle, "r+b", buffering=0)  # noqa: PTH123, SIM115 - by descriptor, until `close`
        path.unlink()
        self._places: dict[str, tuple[int, int]] = {}
        self.size = 0

    def take(self, data: bytes) -> str:
        """Hold a content and return its digest. Raises NoRoom."""
        digest = digest_of(data)
        if digest not in self._places:
            left, at = memoryview(data), self.size
            try:
                while left:
                    written = os.pwrite(self._file.fileno(), left, at)
                    left, at = left[written:], at + written
            except OSError as error:
                raise NoRoom(f"a copy of the files cannot be kept: {error.strerror}") from error
            self._places[digest] = (self.size, len(data))
            self.size = at
        return digest

    def get(self, digest: str) -> bytes | None:
        """Return a content, or None where it is not here. Raises OSError."""
        if digest not in self._places:
            return None
        at, length = self._places[digest]
        data = os.pread(self._file.fileno(), length, at)
        return data if digest_of(data) == digest else None

    def close(self) -> None:
        """Let go of all of it."""
        self._file.close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # it could not be made
            self.close()


class StoredContents:
    """The contents in the record and note files of some turns. Each is checked against its digest when it is read."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[Path, int, int]] = {}

    def add(self, path: Path, file: BinaryIO, sizes: Mapping[str, int]) -> bool:
        """Add the contents that follow one another from the position of an open file, which is left behind the last one.

        Return whether the file is long enough to hold them all.
        """
        at, end = file.tell(), os.fstat(file.fileno()).st_size
        for digest, size in sizes.items():
            if at + size <= end:  # else a full disk or a kill cut it off
                self._places[digest] = (path, at, size)
            at += size
        file.seek(at)
        return at <= end

    def has(self, state: State) -> bool:
        """Return whether all that the state needs is there, and whole. Raises Unsafe and OSError."""
        return not state.digest or self.get(state.digest) is not None

    def get(self, digest: str) -> bytes | None:
        """Return a content; None where it is gone or damaged. Raises Unsafe and OSError."""
        if digest not in self._places:
            return None
        path, at, size = self._places[digest]
        file = private_file.open_to_read(path)
        if file is None:
            return None
        with file:
            file.seek(at)
            data = file.read(size)
        return data if digest_of(data) == digest else None
