"""Checkpoints on disk: a record for each turn that changed something, and the contents it names.

They lie in the state folder, for each project apart: `checkpoints/PROJECT/records/SESSION.HEX.json` and `objects/`.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.checkpoints.objects import Objects
from ybs.checkpoints.states import Change, digest_of
from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.errors import YbsError

_NOTE = ".running"


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one turn changed. Paths are relative to the project's folder, or absolute, as `shown_name` spells them.

    `beyond` says why there may be more that commands changed and nothing is known of; empty: there is not.
    `since_ns` is when the turn began; 0 where it ran no commands.
    """

    name: str
    changes: tuple[Change, ...]
    beyond: str = ""
    since_ns: int = 0
    version: int = 1

    @property
    def sizes(self) -> dict[str, int]:
        """The contents that the record names, with their sizes."""
        states = (state for change in self.changes for state in (change.before, change.after))
        return {state.digest: state.size for state in states if state.digest}


class Running(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a turn that has not ended did until now, at the paths that tools name: it is there after a kill too.

    `open` are the paths that a tool was about to change; of them only `before` counts. `has_more` tells that commands
    changed other paths, or may have. `turn` is its number, `record` its checkpoint once it has ended. In the file each
    line has the changes that are new, so that a note of a long turn costs no more than one of a short one.
    """

    turn: int
    changes: tuple[Change, ...] = ()
    open: frozenset[str] = frozenset()
    has_more: bool = False
    record: str = ""


class CheckpointStore:
    """The checkpoints of one project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects = Objects(folder / "objects")
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
    ) -> Record:
        """Keep the contents and then the record that names them. Raises YbsError and OSError."""
        self.make()
        name = f"{session}.{os.urandom(4).hex()}"
        record = Record(name=name, changes=tuple(changes), beyond=beyond, since_ns=since_ns)
        for digest in record.sizes:
            self.put(digest, get)
        private_file.replace(self._path(record.name), msgspec.json.encode(record))
        for digest, size in record.sizes.items():  # another ybs may have pruned in this moment
            if not self.objects.has(digest, size):
                self.put(digest, get)
        return record

    def put(self, digest: str, get: Callable[[str], bytes | None]) -> None:
        """Keep a content. Raises YbsError and OSError."""
        data = get(digest)
        if data is None:
            raise YbsError("a kept content was damaged in the meantime")
        self.objects.put(digest, data)

    def read(self, name: str) -> Record:
        """Return a record. Raises YbsError where there is none that can be read."""
        try:
            data = private_file.read(self._path(name))
            if data is None:
                raise YbsError(
                    f"The checkpoint {name} no longer exists; its files cannot be restored."
                )
            return msgspec.json.decode(data, type=Record)
        except (msgspec.MsgspecError, OSError, ValueError) as error:
            raise YbsError(f"The checkpoint {name} cannot be read: {error}") from error

    def running(self, session: str) -> Running | None:
        """Return what is noted of a session's turn that has not ended; None for nothing. Raises Unsafe and OSError."""
        running, changes = None, dict[str, Change]()
        for line in (private_file.read(self._running(session)) or b"").splitlines():
            with suppress(msgspec.MsgspecError):  # the last one broke off
                running = msgspec.json.decode(line, type=Running)
                changes.update((change.path, change) for change in running.changes)
        return None if running is None else replace(running, changes=tuple(changes.values()))

    def note(self, session: str, running: Running, *, is_first: bool) -> None:
        """Note what a session's turn did since the last note, or since it began. Raises Unsafe and OSError."""
        path, line = self._running(session), msgspec.json.encode(running) + b"\n"
        if is_first:
            private_file.replace(path, line, waits=False)
            return
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(handle, "wb") as file:  # noqa: PTH123 - opened by descriptor
            file.write(line)

    def forget(self, session: str) -> None:
        """Forget that note: the turn's end is told."""
        with suppress(OSError):
            private_file.remove(self._running(session))

    def running_digests(self) -> set[str]:
        """Return the contents that notes of running turns name."""
        noted = (self.running(_session_of(path)) for path, _ in self.records() if _is_note(path))
        changes = (change for running in noted if running for change in running.changes)
        return {change.before.digest for change in changes}

    def began(self, name: str) -> bool:
        """Return whether an undo or redo that began with this record did not come to its end."""
        return self._began(name).is_file()

    def overwritten(self, name: str) -> "Record | None":
        """Return what a forced undo that did not come to its end found; None where none did, or it is gone."""
        with suppress(YbsError, OSError):
            if found := private_file.read(self._began(name)):
                return self.read(found.decode(errors="replace"))
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
        return self._records / f"{name}.json"

    def _began(self, name: str) -> Path:
        return self._path(name).with_suffix(".began")

    def _running(self, session: str) -> Path:
        return self._path(f"{session}.turn").with_suffix(_NOTE)


def _is_note(path: Path) -> bool:
    return path.suffix == _NOTE


def _session_of(path: Path) -> str:
    return path.stem.rpartition(".")[0]


def checkpoints_folder(host: Host) -> Path:
    """Return the folder of all checkpoints: `~/.local/state/ybs/checkpoints`."""
    return host.state_folder / "checkpoints"


def store_of(host: Host, project: Path) -> CheckpointStore:
    """Return the checkpoints of a project's folder."""
    return CheckpointStore(checkpoints_folder(host) / digest_of(os.fsencode(project))[:24])
