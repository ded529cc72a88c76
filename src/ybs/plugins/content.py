"""The files of a plugin in memory: read from a folder within bounds, checked, hashed, and written to one of ybs's own."""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

from ybs.config.document import visible
from ybs.config.private_file import make_folder
from ybs.core.errors import YbsError

MOST_FILES: Final = 2_000
MOST_BYTES: Final = 30_000_000
_LONGEST_PATH = 300
_DEEPEST = 16
#: What is no part of a plugin, wherever it stands.
_LEFT_OUT = frozenset({".git", "__pycache__", ".DS_Store"})


class BadPlugin(YbsError):
    """A plugin cannot be used as it is; the text says why."""


class PluginFile(Struct, frozen=True):
    """One file: its bytes, and whether it may be run."""

    data: bytes
    is_executable: bool = False


class PluginFiles:
    """The files of a plugin by their paths. Whatever would lead out of its folder is refused. Raises BadPlugin."""

    def __init__(self) -> None:
        self.files: dict[str, PluginFile] = {}
        self._links: dict[str, str] = {}
        self._bytes = 0

    def add(self, path: str, data: bytes, *, is_executable: bool = False) -> None:
        """Take a file."""
        name = checked_path(path)
        if name in self.files or name in self._links:
            raise BadPlugin(f"{visible(name)} is in it twice")
        self._bytes += len(data)
        if len(self.files) >= MOST_FILES:
            raise BadPlugin(f"it has more than {MOST_FILES:,} files")
        if self._bytes > MOST_BYTES:
            raise BadPlugin(f"it is larger than {MOST_BYTES // 1_000_000} MB")
        if not _LEFT_OUT.isdisjoint(name.split("/")):
            return
        self.files[name] = PluginFile(data, is_executable)

    def add_link(self, path: str, target: str) -> None:
        """Take a link, which counts as a copy of the file that it leads to."""
        if len(self._links) >= MOST_FILES:
            raise BadPlugin(f"it has more than {MOST_FILES:,} links")
        self._links[checked_path(path)] = target

    @property
    def room(self) -> int:
        """How many bytes may still come."""
        return MOST_BYTES - self._bytes

    def settled(self) -> "PluginFiles":
        """Put files in the places of links. Raises BadPlugin for one that leads out or to no file."""
        for path, target in self._links.items():
            inside = os.path.normpath(str(PurePosixPath(path).parent / target))
            if target.startswith("/") or inside.split("/")[0] == "..":
                raise BadPlugin(f"{visible(path)} is a link that leads out of it")
            file = self.files.get(inside)
            if file is None:
                raise BadPlugin(
                    f"{visible(path)} is a link to {visible(target)}, which is not a file"
                )
            self._bytes += len(file.data)
            self.files[path] = file
        self._links = {}
        if self._bytes > MOST_BYTES:
            raise BadPlugin(f"it is larger than {MOST_BYTES // 1_000_000} MB")
        return self

    def copy(self) -> "PluginFiles":
        """Return another one with the same files."""
        other = PluginFiles()
        other.files.update(self.files)
        return other

    def below(self, folder: str) -> "PluginFiles":
        """Return what lies in one folder of it. Raises BadPlugin where there is none."""
        start = f"{checked_path(folder)}/"
        inner = PluginFiles()
        for path, file in self.files.items():
            if path.startswith(start):
                inner.files[path.removeprefix(start)] = file
        if not inner.files:
            raise BadPlugin(f"there is no folder {visible(folder)} in it")
        return inner

    @property
    def digest(self) -> str:
        """The SHA-256 of all paths, bytes and rights to run."""
        whole = sha256()
        for path, file in sorted(self.files.items()):
            inner = sha256(file.data).hexdigest()
            whole.update(f"{len(path)} {path} {inner} {file.is_executable:d}\n".encode())
        return whole.hexdigest()


def checked_path(path: str) -> str:
    """Return a path in its plain form. Raises BadPlugin for one that leads out, or that nobody should have to read."""
    plain = PurePosixPath(path)
    is_odd = "\\" in path or "\0" in path or not path.isprintable() or len(path) > _LONGEST_PATH
    if is_odd or plain.is_absolute() or ".." in plain.parts or not plain.parts:
        raise BadPlugin(f"it has a file at {visible(path, 200)}, which would lie outside of it")
    if len(plain.parts) > _DEEPEST:
        raise BadPlugin(f"{visible(path, 200)} is nested too deep")
    return str(plain)


def read_folder(folder: Path) -> PluginFiles:
    """Read all files below a folder. Raises BadPlugin and OSError."""
    content = PluginFiles()
    for path, name, facts in _entries(folder, ""):
        if stat.S_ISLNK(facts.st_mode):
            content.add_link(name, str(path.readlink()))
        elif not stat.S_ISREG(facts.st_mode):
            raise BadPlugin(f"{visible(name)} is not a regular file")
        elif facts.st_size > content.room:
            raise BadPlugin(f"it is larger than {MOST_BYTES // 1_000_000} MB")
        else:
            content.add(name, _bytes_of(path), is_executable=bool(facts.st_mode & 0o111))
    return content.settled()


def _bytes_of(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(handle, "rb") as file:  # noqa: PTH123 - opened by descriptor
        return file.read(MOST_BYTES + 1)


def _entries(folder: Path, start: str) -> Iterator[tuple[Path, str, os.stat_result]]:
    if start.count("/") > _DEEPEST:
        raise BadPlugin(f"{visible(start, 200)} is nested too deep")
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name in _LEFT_OUT:
            continue
        name = f"{start}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _entries(folder / entry.name, f"{name}/")
        else:
            yield folder / entry.name, name, entry.stat(follow_symlinks=False)


def write_folder(files: Mapping[str, PluginFile], folder: Path) -> None:
    """Put files into a folder of ybs's own in one step, in the place of what was there. Raises OSError."""
    make_folder(folder.parent)
    new = folder.parent / f".{folder.name}-{os.urandom(4).hex()}"
    try:
        for path, file in files.items():
            place = new / path
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            place.write_bytes(file.data)
            place.chmod(0o700 if file.is_executable else 0o600)
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
