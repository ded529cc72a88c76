"""Programs that run beside a session for longer than one command, such as MCP servers: each has a home of its own that stays."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.errors import Refused
from ybs.security.own_programs import Start, entering
from ybs.security.sandbox.choice import choose
from ybs.security.sandbox.launch import Launch
from ybs.security.sandbox.places import Places, see, switched_on
from ybs.security.sandbox.scratch import UNSHARED, PrivateFolder

_HOME = "home"
_TEMPORARY = "temporary"
_WORK = "work"
#: Stands for the project where there is none.
_NOTHING = ".nothing"
#: In bubblewrap the folder of temporary files is mounted at /tmp, and the home folder lies in it.
_HOME_INSIDE = "/tmp/home"  # noqa: S108 - the sandbox's own


class Resident(Struct, frozen=True, kw_only=True):
    """A program to start, and what it is given: beside its own home, the system and toolchains it has nothing else.

    `key` names its home; one that was started before finds there what it left. `shown` may be read, and `own`, which lies in
    a folder of ybs's, `writable` changed, `declared` are variables. `lent` are files of the person's home folder that hold a login: it finds
    them at their places in its own home, and may change them, although no other program sees them. Without a `start` it begins in the project, where it sees that.
    """

    key: str
    command: Sequence[str]
    project: Literal["none", "read", "write"] = "read"
    network: bool = False
    shown: tuple[Path, ...] = ()
    own: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    lent: tuple[Path, ...] = ()
    declared: Mapping[str, str] = {}
    start: Start | None = None


class KeptFolder(PrivateFolder):
    """A home folder and a place for temporary files that stay when the program ends; several sessions may use them at once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._kept = folder

    @property
    def path(self) -> str:
        """The folder, which is made. Raises OSError."""
        if not self._path:
            private_file.make_folder(self._kept)
            for name in (_TEMPORARY, UNSHARED, _WORK):
                (self._kept / name).mkdir(mode=0o700, exist_ok=True)
            (self._kept / _TEMPORARY / _HOME).mkdir(mode=0o700, exist_ok=True)
            self._path = os.path.realpath(self._kept)
        return self._path

    @property
    def shared(self) -> str:
        """What the program has as /tmp."""
        return self.temporary

    @property
    def home(self) -> str:
        """What the program has as home folder."""
        return f"{self.temporary}/{_HOME}"

    @property
    def work(self) -> str:
        """An empty folder to work in, for a program that does not see the project."""
        return f"{self.path}/{_WORK}"

    def remove(self) -> None:
        """Keep it."""


def home_of(host: Host, key: str) -> Path:
    """Return the folder that holds the home of a program: `~/.local/state/ybs/residents/KEY`."""
    return host.state_folder / "residents" / key


def start_resident(
    host: Host, project: Path, resident: Resident, *, blocked: Sequence[str] = ()
) -> Launch:
    """Return what starts the program in the best sandbox of this machine.

    Raises Refused for what no sandbox may open or where there is none, OSError.
    """
    kept = KeptFolder(home_of(host, resident.key))
    if not may_open(
        host, project, blocked
    ):  # the home folder, say: nobody works in it, and nobody sees it
        resident = replace(resident, project="none")
    start = resident.start or Start(folder=project, environ=host.environ, is_apart=False)
    if start.is_apart:
        resident = replace(resident, own=(*resident.own, start.folder))
    lent = _lend(resident.lent, host.home, Path(kept.home))
    places = _places(host, project, resident, blocked, kept.work, start.environ)
    places = replace(places, writable=(*places.writable, *lent))
    backend = choose(places, kept)
    declared = dict(resident.declared)
    if backend.name == "bubblewrap":
        declared.setdefault("HOME", _HOME_INSIDE)
    folder = str(start.folder) if start.is_apart else places.project
    launch = backend.launch(
        entering(kept.work if resident.project == "none" else folder, resident.command),
        Path(kept.work),
        start.environ,
        network=resident.network,
        declared=declared,
    )
    return replace(launch, scratch="")  # its folder stays


def _lend(files: Sequence[Path], person: Path, home: Path) -> list[str]:
    """Put links to files of the person's home folder into another home; return the files, links resolved. Raises OSError.

    A program may have put a file of its own in the place of the link, as it writes a new login: that stays while it is the newer one.
    """
    lent: list[str] = []
    for file in files:
        if not file.is_file():
            continue
        real = os.path.realpath(file)
        lent.append(real)
        place = home / (file.relative_to(person) if file.is_relative_to(person) else file.name)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if place.is_symlink() or place.exists():
            if not place.is_symlink() and place.stat().st_mtime_ns > file.stat().st_mtime_ns:
                continue
            place.unlink()
        place.symlink_to(real)
    return lent


def may_open(host: Host, path: Path, blocked: Sequence[str] = ()) -> bool:
    """Return whether a file or folder may be shown to a program at all."""
    try:
        see(host, path, blocked=blocked)
    except Refused:
        return False
    return True


def _places(
    host: Host,
    project: Path,
    resident: Resident,
    blocked: Sequence[str],
    work: str,
    environ: Mapping[str, str],
) -> Places:
    """Return what it sees. ybs's own folders stay hidden, but for the one to work in."""
    is_seen = resident.project != "none"
    top = project if is_seen else host.home / _NOTHING
    writable = [*([project] if resident.project == "write" else []), *resident.writable]
    chains = [path for path in switched_on(environ) if may_open(host, path, blocked)]
    places = see(host, top, writable=writable, readable=[*chains, *resident.shown], blocked=blocked)
    may_write = tuple(os.path.realpath(path) for path in writable)
    readable = [each for each in places.readable if each not in may_write]
    readable += [os.path.realpath(path) for path in resident.own]
    if is_seen and places.project not in may_write:
        readable.append(places.project)
    return replace(places, writable=(work, *may_write), readable=tuple(readable))
