"""Programs that run beside a session for longer than one command, such as MCP servers: each has a home of its own that stays."""

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.errors import Refused
from ybs.security.own_programs import Start, entering
from ybs.security.paths.steps import led_to
from ybs.security.sandbox.choice import choose
from ybs.security.sandbox.copied_homes import begin_as_copy, borrow
from ybs.security.sandbox.launch import Access, Launch
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

    `key` names its home; one that was started before finds there what it left, and another one begins with a copy of that of `seed`. With `until` it has a copy of
    the home that nobody else has until that is closed, and what it writes goes with that. `shown` may be read, and `own`, which lies in
    a folder of ybs's, `writable` changed, `declared` are variables. `lent` are files of the person's home folder that hold a login: it finds
    them at their places in its own home, and may change them, although no other program sees them. Without a `start` it begins in the project, where it sees that.
    From one that `is_persons` the project's settings hide nothing.
    """

    key: str
    seed: str = ""
    command: Sequence[str]
    project: Literal["none", "read", "write"] = "read"
    network: bool = False
    shown: tuple[Path, ...] = ()
    own: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    lent: tuple[Path, ...] = ()
    declared: Mapping[str, str] = {}
    start: Start | None = None
    is_persons: bool = False
    until: ExitStack | None = None


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

    def opened_for(self, access: Access) -> Sequence[str]:
        """Return what a program may write in: all of it."""
        del access
        return (self.path,)

    def remove(self) -> None:
        """Keep it."""


def home_of(host: Host, key: str) -> Path:
    """Return the folder that holds the home of a program: `~/.local/state/ybs/residents/KEY`."""
    return host.residents_folder / key


def start_resident(
    host: Host,
    project: Path,
    resident: Resident,
    *,
    blocked: Sequence[str] = (),
    private: Path | None = None,
    may_reuse: bool = False,
) -> Launch:
    """Return what starts the program in the best sandbox of this machine.

    With a `private` folder, its home is a copy there, and what it writes goes with that. `may_reuse`: the sandbox holds each process, so that none outlives the program.

    Raises Refused for what no sandbox may open or where there is none, ConfigError and OSError.
    """
    kept = KeptFolder(_place_of(host, resident, private, may_reuse=may_reuse))
    if not may_open(
        host, project, blocked
    ):  # the home folder, say: nobody works in it, and nobody sees it
        resident = replace(resident, project="none")
    start = resident.start or Start(folder=project, environ=host.environ)
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
        Access(network=resident.network, declared=declared),
    )
    # In a `__pycache__` of the project there may be something else than was compiled of the code that is trusted.
    compiled = {"PYTHONPYCACHEPREFIX": f"{launch.environ['HOME']}/.cache/python"}
    return replace(launch, scratch="", environ={**compiled, **launch.environ})  # its folder stays


def _place_of(host: Host, resident: Resident, private: Path | None, *, may_reuse: bool) -> Path:
    """Return the folder of a program's home, with the copy in it that it begins with."""
    home = home_of(host, resident.key)
    if resident.until is not None and private is None:
        return borrow(home, resident.until, may_reuse=may_reuse)
    place = private / "residents" / home.name if private else home
    for source in (home, *([home_of(host, resident.seed)] if resident.seed else [])):
        begin_as_copy(source, place)
    return place


def _lend(files: Sequence[Path], person: Path, home: Path) -> list[str]:
    """Put links to files of the person's home folder into another home; return the files, links resolved.

    A program may have put a file of its own in the place of the link, as it writes a new login: that stays while it is the newer one. No
    link of its own is followed on the way there, which could lead to the person's files.
    """
    lent: list[str] = []
    for file in files:
        if not file.is_file():
            continue
        real = os.path.realpath(file)
        lent.append(real)
        inside = file.relative_to(person) if file.is_relative_to(person) else Path(file.name)
        with suppress(OSError):  # a link is on the way, or a file
            folder = _opened(home, inside.parts[:-1])
            try:
                _link(real, inside.name, folder, file.stat().st_mtime_ns)
            finally:
                os.close(folder)
    return lent


def _opened(home: Path, parts: Sequence[str]) -> int:
    """Return the descriptor of a folder in a home, which is made where it is not there. Raises OSError where a link is on the way."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(home, flags)
    for part in parts:
        try:
            with suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=folder)
            inner = os.open(part, flags, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _link(real: str, name: str, folder: int, changed_ns: int) -> None:
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode) and status.st_mtime_ns > changed_ns:
            return
        os.unlink(name, dir_fd=folder)
    os.symlink(real, name, dir_fd=folder)


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
    if not is_seen:
        real = project.resolve()
        chains = [path for path in chains if not path.resolve().is_relative_to(real)]
    places = see(host, top, writable=writable, readable=[*chains, *resident.shown], blocked=blocked)
    may_write = tuple(real for path in writable if (real := led_to(path)))
    readable = [each for each in places.readable if each not in may_write]
    readable += [os.path.realpath(path) for path in resident.own]
    if is_seen and places.project not in may_write:
        readable.append(places.project)
    return replace(places, writable=(work, *may_write), readable=tuple(readable))
