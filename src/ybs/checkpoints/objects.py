"""Contents by their digest: those of a session in a file without a name, those that a record names on disk."""

import os
from contextlib import suppress
from pathlib import Path

from ybs.checkpoints.states import State, digest_of
from ybs.config import private_file
from ybs.core.errors import YbsError

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


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


class Objects:
    """The contents that records name, each in a file of its own: 0600 in folders of 0700."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: set[str] = set()

    def put(self, digest: str, data: bytes) -> None:
        """Keep a content; one that is there becomes fresh again, so that nobody prunes it. Raises OSError."""
        path = self._path(digest)
        with suppress(FileNotFoundError):
            if path.stat().st_size == len(data):
                os.utime(path)
                return
        if digest[:2] not in self._made:
            for folder in (self._folder, path.parent):
                private_file.make_folder(folder)
            self._made.add(digest[:2])
        fresh = path.with_name(f".{os.urandom(8).hex()}")
        handle = os.open(fresh, _NEW, private_file.FILE_MODE)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 - opened by descriptor
                file.write(data)
            fresh.rename(path)
        except BaseException:
            with suppress(FileNotFoundError):
                fresh.unlink()
            raise

    def get(self, digest: str) -> bytes | None:
        """Return a content; None where it is gone or damaged. Raises Unsafe and OSError."""
        data = private_file.read(self._path(digest))
        return data if data is not None and digest_of(data) == digest else None

    def has(self, digest: str, size: int) -> bool:
        """Return whether the content is there, by its size."""
        try:
            return self._path(digest).stat().st_size == size
        except OSError:
            return False

    def has_state(self, state: State) -> bool:
        """Return whether all is there that the state needs."""
        return not state.digest or self.has(state.digest, state.size)

    def each(self) -> list[tuple[str, os.stat_result]]:
        """Return what is there, by digest; leftovers of a crash have a dot in front."""
        found: list[tuple[str, os.stat_result]] = []
        with suppress(OSError), os.scandir(self._folder) as shards:
            for shard in shards:
                with suppress(OSError), os.scandir(shard.path) as entries:
                    found += [
                        (_digest_at(shard.name, entry.name), entry.stat(follow_symlinks=False))
                        for entry in entries
                    ]
        return found

    def drop(self, digest: str, *, before: float) -> bool:
        """Remove a content that was last wanted before this time; return whether it went."""
        path = self._path(digest)
        with suppress(OSError):
            if path.lstat().st_mtime < before:  # once more: another ybs may want it by now
                path.unlink()
                return True
        return False

    def _path(self, digest: str) -> Path:
        if digest.startswith("."):
            return self._folder / digest[1:3] / f".{digest[3:]}"
        return self._folder / digest[:2] / digest[2:]


def _digest_at(shard: str, name: str) -> str:
    return f".{shard}{name[1:]}" if name.startswith(".") else shard + name
