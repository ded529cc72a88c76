"""Checkpoints on disk: a record for each turn that changed something, and the contents it names.

They lie in the state folder, for each project apart: `checkpoints/PROJECT/records/SESSION.HEX.json` and `objects/`.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from ybs.config import private_file
from ybs.config.paths import state_folder
from ybs.core.errors import YbsError
from ybs.transcripts.objects import Objects
from ybs.transcripts.states import Change, digest_of


class Record(Struct, frozen=True, kw_only=True):
    """What one turn changed. Paths are relative to the project's folder, or absolute, as `shown_name` spells them."""

    name: str
    changes: tuple[Change, ...]
    version: int = 1

    @property
    def sizes(self) -> dict[str, int]:
        """The contents that the record names, with their sizes."""
        states = (state for change in self.changes for state in (change.before, change.after))
        return {state.digest: state.size for state in states if state.digest}


class Shelf:
    """The checkpoints of one project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects = Objects(folder / "objects")
        self._records = folder / "records"

    def make(self) -> None:
        """Make the folders. Raises Unsafe and OSError."""
        for folder in (base(), self.folder, self._records):
            private_file.make_folder(folder)

    def add(
        self,
        session: str,
        changes: Iterable[Change],
        get: Callable[[str], bytes | None],
    ) -> Record:
        """Keep the contents and then the record that names them. Raises YbsError and OSError."""
        self.make()
        record = Record(name=f"{session}.{os.urandom(4).hex()}", changes=tuple(changes))
        for digest in record.sizes:
            self._put(digest, get)
        private_file.replace(self._path(record.name), msgspec.json.encode(record))
        for digest, size in record.sizes.items():  # another ybs may have pruned in this moment
            if not self.objects.has(digest, size):
                self._put(digest, get)
        return record

    def _put(self, digest: str, get: Callable[[str], bytes | None]) -> None:
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
                    f"The checkpoint {name} is gone; what it kept cannot be brought back."
                )
            return msgspec.json.decode(data, type=Record)
        except (msgspec.MsgspecError, OSError, ValueError) as error:
            raise YbsError(f"The checkpoint {name} cannot be read: {error}") from error

    def began(self, name: str) -> bool:
        """Tell whether an undo or redo that began with this record did not come to its end."""
        return self._began(name).is_file()

    def begin(self, name: str) -> None:
        """Note that one begins. Raises Unsafe and OSError."""
        private_file.replace(self._began(name), b"")

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
            raise YbsError(f"{name!r} is no checkpoint.")
        return self._records / f"{name}.json"

    def _began(self, name: str) -> Path:
        return self._path(name).with_suffix(".began")


def base() -> Path:
    """Return the folder of all checkpoints."""
    return state_folder() / "checkpoints"


def shelf_of(project: Path) -> Shelf:
    """Return the checkpoints of a project's folder."""
    return Shelf(base() / digest_of(os.fsencode(project))[:24])
