"""The files of a project that could make ybs do something: found, and read once, before anybody trusts them.

The bytes in hand are the ones that are hashed, shown and used, so swapping a file in between changes nothing.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ybs.config.document import visible
from ybs.config.paths import PROJECT_SKILLS, SIDECAR
from ybs.config.review import ProjectFile

MCP_FILE = ".mcp.json"
#: The hooks in them count, and nothing else.
CLAUDE_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")
#: Everything below these counts.
FOLDERS = (
    *(".ybs/agents", ".ybs/commands", ".ybs/hooks", ".ybs/skills", ".ybs/tools"),
    *(".claude/agents", ".claude/commands"),
)
SKILLS = ".ybs/skills/"
#: Of a skill in these folders, which several agents share, its words count; the rest of it are files of the project like any other.
SHARED_SKILLS = PROJECT_SKILLS[1:]
SKILL_FILE = "SKILL.md"
#: A folder of this name is common, so it counts only where programs or descriptions of tools lie right in it.
TOOLS_FOLDER = "tools"

MOST_FILES = 400
MOST_BYTES_OF_FILE = 1_000_000
MOST_BYTES = 8_000_000
#: Of larger programs, all together, digests are kept alone.
MOST_BYTES_OF_PROGRAMS = 200_000_000
_DEEPEST = 6
#: What Python writes beside code, which differs with each run of it.
_CACHE = "__pycache__"
_PLAIN_TEXT = (".md", ".txt")
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Untrustable(Exception):
    """Something is there that cannot be bound to its content; the text says what."""


def gather(
    folder: Path, reached: Callable[[Mapping[str, ProjectFile]], Iterable[str]] = lambda _: ()
) -> dict[str, ProjectFile]:
    """Read the files by their path from the folder.

    `reached`, given the files, returns the paths of more files, which settings name. The project's
    settings are not among the files: they are in hand already. Raises Untrustable and OSError.
    """
    reader = _Reader(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    try:
        reader.add(MCP_FILE)
        for name in CLAUDE_SETTINGS:
            with suppress(Untrustable):  # most have nothing for ybs in them
                reader.add(name)
        for name in FOLDERS:
            reader.add_folder(name)
        for name in SHARED_SKILLS:
            reader.add_skills(name)
        reader.add_tools()
        for path in reached(reader.files):
            reader.add(path, may_be_link=True)
        reader.add_beside_tools()
        return _without_plain_skills(reader.files)
    finally:
        os.close(reader.root)


def read_one(folder: Path, path: str) -> ProjectFile | None:
    """Read one such file again; None where it is gone. Raises Untrustable and OSError."""
    reader = _Reader(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    try:
        reader.add(path, may_be_link=True)
    finally:
        os.close(reader.root)
    return reader.files.get(path)


class _Reader:
    """Reads below one folder, each step without following a link."""

    def __init__(self, root: int) -> None:
        self.root, self.files = root, dict[str, ProjectFile]()
        self.bytes_read = self.bytes_of_programs = 0

    def add(self, path: str, *, may_be_link: bool = False) -> None:
        """Read a file if it is there and not a folder. A link may stand for where it leads to, which is bound besides.

        What may be a link is run or loaded by a command, and may be large: nobody reads its bytes here.
        """
        folder = self._open_folder(PurePosixPath(path).parts[:-1])
        if folder is None:
            return
        try:
            name = PurePosixPath(path).name
            try:
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            except OSError:  # it is not there, or its name cannot be a file's
                return
            if may_be_link and stat.S_ISLNK(mode):
                aim = os.readlink(os.fsencode(name), dir_fd=folder)
                self._keep(path, ProjectFile(b"a link to " + aim + b"\n"))
            elif not stat.S_ISDIR(mode):
                self._read(folder, name, path, may_be_large=may_be_link)
        finally:
            os.close(folder)

    def add_folder(self, path: str, *, deepest: int = _DEEPEST) -> None:
        """Read all files below a folder."""
        for entry_path, mode in self._entries(path):
            if not stat.S_ISDIR(mode):
                self.add(entry_path)
            elif deepest:
                self.add_folder(entry_path, deepest=deepest - 1)
            else:
                raise Untrustable(f"{visible(entry_path)} is nested too deep")

    def add_skills(self, path: str) -> None:
        """Read the SKILL.md of each folder that has one. What cannot be bound to its content is left out."""
        with suppress(Untrustable, OSError):
            for entry_path, mode in self._entries(path):
                if stat.S_ISDIR(mode):
                    with suppress(Untrustable):
                        self.add(f"{entry_path}/{SKILL_FILE}")

    def add_tools(self) -> None:
        """Read programs, and descriptions of tools, that lie in the folder of tools."""
        for path, mode in self._entries(TOOLS_FOLDER):
            is_program = bool(mode & 0o111) and not stat.S_ISDIR(mode)
            if is_program or path.endswith(SIDECAR):
                self.add(path)

    def add_beside_tools(self) -> None:
        """Read what tools in the folder of tools may load from beside them. What is too large or too much is left out: no tool sees it."""
        if any(
            path.startswith(f"{TOOLS_FOLDER}/") and (file.is_executable or path.endswith(SIDECAR))
            for path, file in self.files.items()
        ):
            with suppress(Untrustable):
                self._add_beside(TOOLS_FOLDER, _DEEPEST)

    def _add_beside(self, folder: str, deepest: int) -> None:
        for path, mode in self._entries(folder):
            if stat.S_ISREG(mode):
                with suppress(Untrustable):
                    self.add(path)
            elif stat.S_ISDIR(mode) and deepest and not path.endswith(f"/{_CACHE}"):
                self._add_beside(path, deepest - 1)

    def _entries(self, path: str) -> Iterator[tuple[str, int]]:
        folder = self._open_folder(PurePosixPath(path).parts)
        if folder is None:
            return
        try:
            for count, name in enumerate(sorted(os.listdir(folder))):  # noqa: PTH208 - by descriptor
                if count > 4 * MOST_FILES:
                    raise Untrustable(f"{visible(path)} holds too many files")
                facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
                yield f"{path}/{name}", facts.st_mode
        finally:
            os.close(folder)

    def _open_folder(self, parts: tuple[str, ...]) -> int | None:
        handle = os.dup(self.root)
        for index, part in enumerate(parts):
            try:
                below = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=handle)
            except OSError:
                if parts[0] == ".ybs" and _is_link(part, handle):
                    raise Untrustable(_LINK.format(visible("/".join(parts[: index + 1])))) from None
                return None
            finally:
                os.close(handle)
            handle = below
        return handle

    def _read(self, folder: int, name: str, path: str, *, may_be_large: bool) -> None:
        if path in self.files:
            return
        # Looking first keeps devices unopened; looking again at the open file closes the gap between.
        _check(path, os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        handle = os.open(name, _FLAGS, dir_fd=folder)
        with open(handle, "rb") as file:  # noqa: PTH123 - opened by descriptor
            mode = os.fstat(handle).st_mode
            _check(path, mode)
            data = file.read(MOST_BYTES_OF_FILE + 1)
            is_executable = bool(mode & 0o111)
            if len(data) > MOST_BYTES_OF_FILE and may_be_large and not path.endswith(SIDECAR):
                self.bytes_of_programs += (size := os.fstat(handle).st_size)
                if self.bytes_of_programs <= MOST_BYTES_OF_PROGRAMS:
                    from hashlib import file_digest  # few projects have such a program

                    file.seek(0)
                    digest = file_digest(file, "sha256").hexdigest()
                    self._keep(path, ProjectFile(b"", is_executable, digest, size))
                    return
        self.bytes_read += len(data)
        if len(data) > MOST_BYTES_OF_FILE or self.bytes_read > MOST_BYTES:
            raise Untrustable(f"{visible(path)} is too large to be trusted")
        self._keep(path, ProjectFile(data, is_executable))

    def _keep(self, path: str, file: ProjectFile) -> None:
        if path not in self.files and len(self.files) >= MOST_FILES:
            raise Untrustable(f"there are more than {MOST_FILES} files to trust")
        self.files[path] = file


_LINK = "{} is a link, and what a link leads to cannot be trusted"


def _check(path: str, mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise Untrustable(_LINK.format(visible(path)))
    if not stat.S_ISREG(mode):
        raise Untrustable(f"{visible(path)} is not a regular file")


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _without_plain_skills(files: dict[str, ProjectFile]) -> dict[str, ProjectFile]:
    """Leave out files of skills that are words only, but for the SKILL.md; with a script in it, all of a skill counts."""
    scripted = {_skill_of(path) for path, file in files.items() if not _is_words(path, file)}
    return {
        path: file
        for path, file in files.items()
        if not path.startswith(SKILLS) or is_skill(path) or _skill_of(path) in scripted
    }


def is_skill(path: str) -> bool:
    """Return whether a file is the SKILL.md of a skill of the project."""
    folder, _, name = path.rpartition("/")
    return name == SKILL_FILE and folder.rpartition("/")[0] in PROJECT_SKILLS


def _skill_of(path: str) -> str:
    return path.removeprefix(SKILLS).partition("/")[0]


def _is_words(path: str, file: ProjectFile) -> bool:
    return not path.startswith(SKILLS) or (path.endswith(_PLAIN_TEXT) and not file.is_executable)
