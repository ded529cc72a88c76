"""The places of context documents, their size limits, and opening their files without trusting them."""

import os
import stat
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from ybs.config.document import Unusable, open_own
from ybs.core.errors import Refused
from ybs.security.paths.opening import held

#: In the project: nowhere, in its folder `.ybs`, or in each folder from the repository's top down to the project's.
Within: TypeAlias = Literal["", ".ybs", "folders"]

MOST_BYTES = 64_000  # of one file; what is behind them is left out
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class DocumentKind(Struct, frozen=True, kw_only=True):
    """A kind of document: its places, and the tokens that all of its files may have together.

    `is_own`: the person's folder may have one. `instead` is read in a folder of the project that has none.
    `keeps_end`: of a long one the end is kept, since it grows there.
    """

    name: str
    tokens: int
    is_own: bool = True
    within: Within = ""
    instead: str = ""
    keeps_end: bool = False


#: The documents, in the order in which a model reads them. The table in `documents` says what they are for.
DOCUMENTS = (
    DocumentKind(name="AGENT.md", tokens=1_000, within=".ybs"),
    DocumentKind(name="IDENTITY.md", tokens=500, keeps_end=True),
    DocumentKind(name="HUMAN.md", tokens=500),
    DocumentKind(name="FOCUS.md", tokens=300, within=".ybs"),
    DocumentKind(name="preferences.json", tokens=300, within=".ybs"),
    DocumentKind(name="CODE.md", tokens=2_000, is_own=False, within="folders"),
    DocumentKind(name="AGENTS.md", tokens=4_000, within="folders", instead="CLAUDE.md"),
)


class Beginning(Struct, frozen=True, kw_only=True):
    """The first bytes of a document's file. `identity` tells the file from others, whatever its name."""

    data: bytes
    size: int
    identity: tuple[int, int]

    @property
    def is_whole(self) -> bool:
        """Whether that is all there is."""
        return len(self.data) >= self.size


def top_of(folder: Path) -> Path:
    """Return the top of the repository around the resolved folder: the nearest one with `.git`, or the folder itself.

    A `.git` that somebody else put above the project (into /tmp, say) does not count.
    """
    owners = {0, os.getuid(), _owner(folder)}
    for parent in (folder, *folder.parents):
        if _owner(parent / ".git") in owners:
            return parent
    return folder


def folders_of(folder: Path, top: Path) -> list[Path]:
    """List the folders from the top down to the folder, both included."""
    above = [parent for parent in folder.parents if parent.is_relative_to(top)]
    return [*reversed(above), folder]


def read_own(path: Path) -> Beginning | str | None:
    """Read a file of the person's; links are theirs too. None where there is none, or words on why it is not read."""
    try:
        with open_own(path) as file:
            return _begun(file.read(MOST_BYTES), os.fstat(file.fileno()))
    except Unusable as error:
        return f"it {error}" if path.is_file() else None
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def read_in_project(path: Path, top: Path) -> Beginning | None:
    """Read a file of the project, if it really lies in it and nowhere else.

    A link may lead to a Markdown file of the project: not out of it, not to its `.env`. A hard link may be to any file of the person's.
    """
    try:
        is_link = stat.S_ISLNK(path.lstat().st_mode)
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(top) or (is_link and real.suffix.lower() != ".md"):
            return None
        return _read_held(real, top)
    except (OSError, ValueError, Refused):
        return None


def _read_held(real: Path, top: Path) -> Beginning | None:
    with held(real) as place:
        status = place.status()
        if status is None or not stat.S_ISREG(status.st_mode):
            return None
        handle = place.open(_FLAGS)
    with open(handle, "rb") as file:  # noqa: PTH123 - opened by descriptor
        facts = os.fstat(handle)
        is_single = stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1
        if not is_single or facts.st_uid not in {0, os.getuid(), _owner(top)}:
            return None
        return _begun(file.read(MOST_BYTES), facts)


def _begun(data: bytes, facts: os.stat_result) -> Beginning:
    return Beginning(data=data, size=facts.st_size, identity=(facts.st_dev, facts.st_ino))


def _owner(path: Path) -> int:
    try:
        return path.lstat().st_uid
    except OSError:
        return -1
