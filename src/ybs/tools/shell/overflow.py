"""Long outputs on disk: private files in the state folder, within bounds, removed after some days."""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from ybs.config.host import Host
from ybs.security.incognito import WRITES_NOTHING
from ybs.security.paths.roots import Roots

MOST_BYTES = 1_000_000_000  # of one output
MOST_BYTES_OF_ALL = 4_000_000_000  # older ones make room
LEAST_FREE_BYTES = 500_000_000  # what is left for others on the disk
KEPT_DAYS = 7
_LOOK_BYTES = 16_000_000  # between two looks at the room on the disk
_WRITERS = 16  # that may grow by so much at once: commands in the background, sub-agents, other ybs
_LONGEST_NAME = 200
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def outputs_folder(host: Host) -> Path:
    """Return the folder of all kept outputs, links on the way resolved: `~/.local/state/ybs/outputs`."""
    return host.state_folder.resolve() / "outputs"


class Outputs:
    """The kept outputs of one `project`, that of the roots if none is named.

    Its folder may be read by tools; those of other projects may not.
    """

    def __init__(self, roots: Roots, project: Path | None = None) -> None:
        self.folder = outputs_folder(roots.host) / _name_of(str(project or roots.folder))
        #: What whole texts may still take before room is made again.
        self._swept_bytes = 0
        roots.add(self.folder, is_read_only=True)

    def create(self) -> tuple[int, Path]:
        """Make a new private file and open it for writing. Raises OSError."""
        return self._create(_LOOK_BYTES)

    def _create(self, most_bytes: int) -> tuple[int, Path]:
        """Make a file that gets so many bytes at most before the next look at the room on the disk."""
        self._make_folders()
        if most_bytes > self._swept_bytes:
            self.sweep()
            self._swept_bytes = _LOOK_BYTES
        self._swept_bytes -= most_bytes
        path = self.folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}.txt"
        return os.open(path, _FLAGS, 0o600), path

    def place_of(self, name: str) -> Path:
        """Return where a file of this name belongs, which its writer keeps up to date. Raises OSError."""
        self._make_folders()
        return self.folder / name

    def _make_folders(self) -> None:
        every = self.folder.parent
        for folder in (every.parent, every, self.folder):
            _make_private(folder)

    def keep(self, text: str) -> str:
        """Write a whole text down and return its path; an empty one where that fails."""
        data = text.encode(errors="replace")
        try:
            handle, path = self._create(len(data))
            with open(handle, "wb") as file:  # noqa: PTH123 - opened by descriptor
                file.write(data)
        except OSError:
            return ""
        return str(path)

    def sweep(self, being_written: Path | None = None) -> None:
        """Make room: remove old outputs, and the oldest where all together are too large."""
        with suppress(OSError):  # there is no such folder yet
            sweep(self.folder.parent, being_written=being_written)


class OverflowFile:
    """One output: held until it is longer than `after_bytes`, then written to a file as it comes.

    `outputs` is None where nothing may be written. What goes wrong on the disk is told in `problem`; the
    command never feels it.
    """

    def __init__(self, outputs: Outputs | None, after_bytes: int) -> None:
        self._outputs = outputs
        self._room = after_bytes
        self._held: list[bytes] = []
        self._descriptor: int | None = None
        self._next_look = 0
        self.size = self.lines = self.written = 0
        self.path: Path | None = None
        self.problem = ""

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self.size += len(data)
        self.lines += data.count(b"\n")
        if self._descriptor is not None:
            self._write(self._descriptor, data)
        elif self.path is None and not self.problem:
            self._held.append(data)
            if self.size > self._room:
                self._start()

    def _start(self) -> None:
        held, self._held = self._held, []
        if self._outputs is None:
            self.problem = WRITES_NOTHING
            return
        try:
            descriptor, self.path = self._outputs.create()
        except OSError as error:
            self.problem = error.strerror or str(error)
            return
        self._descriptor = descriptor
        self._write(descriptor, b"".join(held))

    def _write(self, descriptor: int, data: bytes) -> None:
        try:
            self._check_room(descriptor)
            view = memoryview(data)[: MOST_BYTES - self.written]
            while view:
                count = os.write(descriptor, view)
                self.written += count
                view = view[count:]
        except OSError as error:
            self._stop(error.strerror or str(error))
        else:
            if self.written >= MOST_BYTES:
                self._stop("it is too long")

    def _check_room(self, descriptor: int) -> None:
        if self.written >= self._next_look:
            self._next_look = self.written + _LOOK_BYTES
            disk = os.fstatvfs(descriptor)
            if disk.f_bavail * disk.f_frsize < LEAST_FREE_BYTES:
                raise OSError("the disk is nearly full")
            if self._outputs is not None and self.written:
                self._outputs.sweep(self.path)

    def _stop(self, problem: str) -> None:
        if self.written < self.size:
            self.problem = problem
        if self.written:
            self.close()
        else:
            self.discard()  # an empty file helps nobody

    def close(self) -> None:
        """Close the file; what is still held is forgotten."""
        self._held = []
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):  # a full disk may be told here
                os.close(descriptor)

    def discard(self) -> None:
        """Remove the file, if there is one: nothing was cut, so nobody needs it."""
        self.close()
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink()
            self.path = None

    def note(self) -> str:
        """Tell the model where the whole is and how large; empty where there is no file and no problem."""
        if self.path is None:
            return f"[the whole output was not kept: {self.problem}]" if self.problem else ""
        size = f"{self.size:,} bytes, {self.lines:,} lines"
        if not self.problem:
            return f"[whole output, {size}: {self.path} - use read_file or search_files on it]"
        return (
            f"[output of {size}; its first {self.written:,} bytes: {self.path}; "
            f"the rest was not kept: {self.problem}]"
        )


def sweep(every: Path, now: float | None = None, *, being_written: Path | None = None) -> None:
    """Remove outputs in `every` older than `KEPT_DAYS`, and the oldest where all together have no room for what is next.

    Between two looks an output grows by `_LOOK_BYTES`, so that much is left free for each that may be written now.
    The one of the caller stays.
    """
    oldest = (time.time() if now is None else now) - KEPT_DAYS * 86_400
    room = MOST_BYTES_OF_ALL - _WRITERS * _LOOK_BYTES
    stays = None if being_written is None else str(being_written)
    for changed, size, path in sorted(_files(every), reverse=True):
        room -= size
        if path != stays and (changed < oldest or room < 0):
            with suppress(OSError):
                Path(path).unlink()


def _files(every: Path) -> list[tuple[float, int, str]]:
    found: list[tuple[float, int, str]] = []
    for folder in _entries(every):
        if not folder.is_dir(follow_symlinks=False):
            continue
        with suppress(OSError):  # another ybs removed it
            for file in _entries(folder.path):
                if file.name.endswith((".txt", ".jsonl")):
                    found += _looked_at(file)
    return found


def _looked_at(file: "os.DirEntry[str]") -> list[tuple[float, int, str]]:
    try:
        status = file.stat(follow_symlinks=False)
    except OSError:  # another ybs removed it
        return []
    return [(status.st_mtime, status.st_size, file.path)]


def _entries(folder: Path | str) -> list["os.DirEntry[str]"]:
    with os.scandir(folder) as entries:
        return [*entries]


def _make_private(folder: Path) -> None:
    """Make the folder, or see that it is one of ours that nobody else can enter. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise OSError(f"{folder} is not a folder of yours")
    folder.chmod(0o700)


def _name_of(project: str) -> str:
    """Return a name that no other project has."""
    name = project.replace("_", "__").replace("/", "_-")
    if len(os.fsencode(name)) <= _LONGEST_NAME:
        return name
    from hashlib import sha256  # slow to load, and long paths are rare

    return sha256(os.fsencode(project)).hexdigest()
