"""Checkpoints on disk: a record for each turn that changed something, and the contents it names.

They lie in the state folder, for each project apart: `checkpoints/PROJECT/records/SESSION.HEX.record`, a line of JSON and
behind it the contents, once each, in the order in which the line names them first.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import time
from typing import BinaryIO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.checkpoints.states import Change, State, digest_of
from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.decoding import from_json
from ybs.core.errors import YbsError

_RECORD, _NOTE = ".record", ".running"
#: A line that names more paths than fit here was not written by ybs.
_MOST_LINE = private_file.LARGEST_BYTES


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


class TurnRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one turn changed. Paths are relative to the project's folder, or absolute, as `shown_name` spells them.

    `beyond` says why there may be more that commands changed and nothing is known of; empty: there is not.
    `since_ns` is when the turn began; 0 where it ran no commands.
    """

    name: str
    changes: tuple[Change, ...]
    beyond: str = ""
    since_ns: int = 0
    version: int = 2

    @property
    def sizes(self) -> dict[str, int]:
        """The contents that the record names, with their sizes, in the order in which they stand behind it."""
        states = (state for change in self.changes for state in (change.before, change.after))
        return {state.digest: state.size for state in states if state.digest}


class RunningTurn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a turn that has not ended did until now, at the paths that tools name: it is there after a kill too.

    `open` are the paths that a tool was about to change; of them only `before` counts. `has_more` tells that commands
    changed other paths, or may have. `turn` is its number, `record` its checkpoint once it has ended. In the file each
    line has the changes that are new, and behind it the `contents` that are, with their sizes, so that a note of a long
    turn costs no more than one of a short one.
    """

    turn: int
    changes: tuple[Change, ...] = ()
    open: frozenset[str] = frozenset()
    has_more: bool = False
    record: str = ""
    contents: dict[str, int] = {}


class CheckpointStore:
    """The checkpoints of one project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records = folder / "records"

    def make(self) -> None:
        """Make the folders. Raises Unsafe and OSError."""
        for folder in (self.folder.parent, self.folder, self._records):
            private_file.make_folder(folder)

    def add(
        self,
        session: str,
        changes: Iterable[Change],
        get: Callable[[str], bytes | None],
        *,
        beyond: str = "",
        since_ns: int = 0,
    ) -> TurnRecord:
        """Keep a record and the contents that it names. Raises YbsError and OSError."""
        self.make()
        name = f"{session}.{os.urandom(4).hex()}"
        record = TurnRecord(name=name, changes=tuple(changes), beyond=beyond, since_ns=since_ns)
        private_file.replace(self._path(name), _written(record, record.sizes, get))
        return record

    def read(self, name: str, contents: StoredContents | None = None) -> TurnRecord:
        """Return a record; `contents` learns where its contents are. Raises YbsError where there is none that can be read."""
        path = self._path(name)
        try:
            file = private_file.open_to_read(path)
            if file is None:
                raise YbsError(
                    f"The checkpoint {name} no longer exists; its files cannot be restored."
                )
            with file:
                record = from_json(file.readline(_MOST_LINE), TurnRecord)
                if contents is not None:
                    contents.add(path, file, record.sizes)
        except (msgspec.MsgspecError, OSError, ValueError) as error:
            raise YbsError(f"The checkpoint {name} cannot be read: {error}") from error
        return record

    def running(self, session: str, contents: StoredContents | None = None) -> RunningTurn | None:
        """Return what is noted of a session's turn that has not ended; None for nothing. Raises Unsafe and OSError.

        `contents` learns where the contents are that the note has. A line that broke off, or what stands behind it, does
        not count: the tool that it was written for had not begun.
        """
        path = self._running(session)
        file = private_file.open_to_read(path)
        if file is None:
            return None
        contents = StoredContents() if contents is None else contents
        running, changes = None, dict[str, Change]()
        with file, suppress(msgspec.MsgspecError):  # the last line broke off
            while line := file.readline(_MOST_LINE):
                latest = from_json(line, RunningTurn)
                is_whole = contents.add(path, file, latest.contents) and line.endswith(b"\n")
                if not is_whole:
                    break
                running = latest
                changes.update((change.path, change) for change in running.changes)
        if running is None:
            return None
        return replace(running, changes=tuple(changes.values()), contents={})

    def note(
        self,
        session: str,
        running: RunningTurn,
        get: Callable[[str], bytes | None] = lambda _: None,
        *,
        is_first: bool,
    ) -> None:
        """Note what a session's turn did since the last note, or since it began, with the contents that it names.

        Raises YbsError and OSError.
        """
        path, pieces = self._running(session), _written(running, running.contents, get)
        if is_first:
            private_file.replace(path, pieces, waits=False)
            return
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(handle, "wb") as file:  # noqa: PTH123 - opened by descriptor
            file.writelines(pieces)

    def forget(self, session: str) -> None:
        """Forget that note: the turn's end is told."""
        with suppress(OSError):
            private_file.remove(self._running(session))

    def began(self, name: str) -> bool:
        """Return whether an undo or redo that began with this record did not come to its end."""
        return self._began(name).is_file()

    def overwritten(self, name: str, contents: StoredContents | None = None) -> "TurnRecord | None":
        """Return what a forced undo that did not come to its end found; None where none did, or it is gone."""
        with suppress(YbsError, OSError):
            if found := private_file.read(self._began(name)):
                return self.read(found.decode(errors="replace"), contents)
        return None

    def begin(self, name: str, overwritten: str = "") -> None:
        """Note that one begins, and the record of what it overwrites. Raises Unsafe and OSError."""
        private_file.replace(self._began(name), overwritten.encode())

    def finish(self, name: str) -> None:
        """Note that it is done."""
        with suppress(OSError):
            private_file.remove(self._began(name))

    def records(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Yield the files of all records."""
        with suppress(OSError):
            for path in self._records.iterdir():
                with suppress(OSError):
                    yield path, path.lstat()

    def _path(self, name: str) -> Path:
        if "/" in name or name.startswith("."):
            raise YbsError(f"{name!r} is not a checkpoint.")
        return self._records / f"{name}{_RECORD}"

    def _began(self, name: str) -> Path:
        return self._path(name).with_suffix(".began")

    def _running(self, session: str) -> Path:
        return self._path(f"{session}.turn").with_suffix(_NOTE)


def is_record(path: Path) -> bool:
    """Return whether a file of `records` is one; the others are notes of what goes on."""
    return path.suffix == _RECORD


def _written(
    line: Struct, sizes: Mapping[str, int], get: Callable[[str], bytes | None]
) -> Iterator[bytes]:
    """Yield a line and the contents behind it. Raises YbsError where one of them is not there."""
    yield msgspec.json.encode(line) + b"\n"
    for digest, size in sizes.items():
        data = get(digest)
        if data is None or len(data) != size:
            raise YbsError("a kept content was damaged in the meantime")
        yield data


def checkpoints_folder(host: Host) -> Path:
    """Return the folder of all checkpoints: `~/.local/state/ybs/checkpoints`."""
    return host.state_folder / "checkpoints"


def store_of(host: Host, project: Path) -> CheckpointStore:
    """Return the checkpoints of a project's folder."""
    return CheckpointStore(checkpoints_folder(host) / digest_of(os.fsencode(project))[:24])


MOST_BYTES = 2_000_000_000
#: What is younger always stays: another ybs may be about to name it.
GRACE_SECONDS = 86_400.0
_DAY_SECONDS = 86_400.0


def forget(folder: Path, sessions: Collection[str] | None, *, retention_days: float = 30) -> int:
    """Remove the checkpoints in `folder` of other sessions than these (None: of none), old ones, and too many; count them.

    What is younger than a day stays. It may be slow: call it in a thread. It does not raise.
    """
    fresh = time() - GRACE_SECONDS
    oldest = min(time() - retention_days * _DAY_SECONDS, fresh)
    kept: list[tuple[float, int, Path]] = []
    gone = 0
    for store in _stores(folder):
        for path, status in store.records():
            changed_at = status.st_mtime
            session = path.stem.rpartition(".")[0]
            is_gone = sessions is not None and session not in sessions
            if changed_at < oldest or (is_gone and changed_at < fresh):
                gone += _remove(path)
            elif is_record(path):
                kept.append((changed_at, status.st_size, path))
    total = 0
    for changed_at, size, path in sorted(kept, key=lambda record: -record[0]):
        if total + size > MOST_BYTES and changed_at < fresh:
            gone += _remove(path)
        else:
            total += size
    return gone


def _remove(path: Path) -> int:
    with suppress(OSError):
        path.unlink()
        return int(is_record(path))
    return 0


def _stores(base: Path) -> list[CheckpointStore]:
    with suppress(OSError):
        return [CheckpointStore(folder) for folder in base.iterdir()]
    return []
