"""Checkpoints on disk: a record for each turn that changed something, and the contents it names.

They lie in the state folder, for each project apart: `checkpoints/PROJECT/records/SESSION.HEX.record`, a line of JSON and
behind it the contents, once each, in the order in which the line names them first.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.checkpoints.contents import StoredContents
from ybs.checkpoints.states import Change, digest_of
from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.errors import YbsError

_RECORD, _NOTE = ".record", ".running"
#: A line that names more paths than fit here was not written by ybs.
_MOST_LINE = private_file.LARGEST_BYTES


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
                record = msgspec.json.decode(file.readline(_MOST_LINE), type=TurnRecord)
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
                latest = msgspec.json.decode(line, type=RunningTurn)
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
