"""The requests of a project's files, and whether the person trusts them: plain data that travels with the settings."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:  # most projects describe no tool
    from ybs.config.tool_definition import Described


class ProjectFile(Struct, frozen=True):
    """One file as it was read. Of a large program the digest of its content and its size are kept, and not the content."""

    data: bytes
    is_executable: bool = False
    large_digest: str = ""
    large_bytes: int = 0

    @property
    def digest(self) -> str:
        """The SHA-256 of the content, marked where the file may be run."""
        from hashlib import sha256  # most projects have no such file

        found = self.large_digest or sha256(self.data).hexdigest()
        return found + "+x" * self.is_executable

    @property
    def size(self) -> int:
        """The size of the content, in bytes."""
        return self.large_bytes or len(self.data)


class Item(Struct, frozen=True, kw_only=True):
    """One thing that the project wants: where it says so, what it would do, in plain words, escaped."""

    place: str
    words: str
    #: False: not worth a question by itself, such as a program in a folder named tools.
    asks: bool = True


class FileDifference(Struct, frozen=True, kw_only=True):
    """A file that is not as it was when the project was trusted; `difference` is a diff, escaped."""

    path: str
    what: str
    difference: str = ""


#: Stands among the differences where the folder itself is another one.
REPLACED: Final = FileDifference(path="The folder", what="was replaced by another one")


class VariableUse(Struct, frozen=True, kw_only=True):
    """A variable of the person's that an MCP server of the project would get, or a tool, which is no `server`. `place`: an origin, or the program."""

    name: str
    server: str
    place: str

    @property
    def words(self) -> str:
        """Where the variable goes, in words."""
        whose = f"the MCP server {self.server}" if self.server else "a tool"
        return f"{self.name} goes to {self.place} ({whose})"


class Review(Struct, frozen=True, kw_only=True):
    """What a project wants, and whether it may.

    `problem` says why it cannot be trusted at all; empty where it can. `once` tells that it was trusted for this
    run alone.
    """

    folder: Path
    items: tuple[Item, ...]
    files: dict[str, ProjectFile]
    is_trusted: bool = False
    once: bool = False
    changes: tuple[FileDifference, ...] = ()
    problem: str = ""
    #: The person's variables that its MCP servers and tools read, those that were granted, and the names of keys that go nowhere else.
    variables: tuple[VariableUse, ...] = ()
    granted: frozenset[VariableUse] = frozenset()
    keys: frozenset[str] = frozenset()
    #: What the question shows of its programs that a file beside them describes as tools, by their paths.
    described: "Mapping[str, Described]" = {}
    #: The rules of `safety.allow` that its settings alone have.
    rules: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        # No content of a file must reach a log by way of a representation.
        return f"Review(folder={self.folder!r}, is_trusted={self.is_trusted!r})"

    @property
    def asks_for_nothing(self) -> bool:
        """Whether trust in it would be about no file and no words, so that nobody has to see any."""
        return not (self.files or self.items or self.problem)

    @property
    def needs_question(self) -> bool:
        """Whether a person should be asked before the first request."""
        asks = REPLACED in self.changes or any(item.asks for item in self.items)
        return asks and not self.is_trusted and not self.problem

    def is_key(self, use: VariableUse) -> bool:
        """Return whether this would give the key of a provider to something of the project's, which no grant allows."""
        return use.name in self.keys

    def why_withheld(self, uses: Collection[VariableUse]) -> str:
        """Return why a server or a tool of the project's, which is not used then, may not have its variables; nothing where it may."""
        if names := [use.name for use in uses if self.is_key(use)]:
            place = next(iter(uses)).place
            return f"it would give the key of a provider, {', '.join(names)}, to {place}"
        missing = [use for use in uses if use not in self.granted]
        if not missing:
            return ""
        is_known = all(use in self.variables for use in missing)
        how = "see: ybs trust" if is_known else "name it in a .tool.json"
        names = ", ".join(use.name for use in missing)
        return f"it reads {names}, which you have not granted to it ({how})"

    @property
    def grantable(self) -> tuple[VariableUse, ...]:
        """The uses of variables that wait for a grant."""
        return tuple(
            use for use in self.variables if use not in self.granted and not self.is_key(use)
        )

    def data(self, path: str) -> bytes | None:
        """Return a trusted file's bytes, those that were hashed; None where there is no trust or no file."""
        file = self.files.get(path)
        return file.data if self.is_trusted and file is not None else None

    def paths(self, folder: str) -> list[str]:
        """List the trusted files below a folder of the project, such as `.ybs/commands`."""
        return [path for path in self.files if self.is_trusted and path.startswith(f"{folder}/")]


class RunTrust(Struct, kw_only=True):
    """Trust in one folder for one run: in what lies there when it is read first (`--trust`)."""

    folder: Path
    digests: dict[str, str] | None = None

    def covers(self, folder: Path, files: Mapping[str, ProjectFile]) -> bool:
        """Return whether these are the files that were there first; `folder` is a real path."""
        if folder != self.folder:
            return False
        digests = {path: file.digest for path, file in files.items()}
        if self.digests is None:
            self.digests = digests
        return digests == self.digests


class PluginFolder(Struct, frozen=True, kw_only=True):
    """Where the plugin lies, and the files of its commands and its kinds of sub-agents and the folders of its skills, as paths within it.

    `tools` has its programs that serve as tools, each with what the file beside it said when the plugin was agreed to; None: it says that itself.
    """

    name: str
    folder: Path
    commands: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    skill_folders: tuple[str, ...] = ()
    tools: "Mapping[str, Described | None]" = {}
