"""The file system view of a sandboxed program: the project, other folders, and hidden places in them."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from time import monotonic

from msgspec import Struct

from ybs.config.host import Host, is_in_memory
from ybs.config.paths import KERNEL, SYSTEM, TOOLCHAINS
from ybs.core.errors import Refused
from ybs.core.remedies import Remedy
from ybs.security.paths import credentials
from ybs.security.paths.home_links import targets_in
from ybs.security.paths.path_text import lies_in, lies_in_one
from ybs.security.paths.repository import find_repository
from ybs.security.paths.second_names import second_names
from ybs.security.paths.steps import led_to

#: Those that hold what somebody has published, by the thousand.
_CACHES = (
    *(".cargo/registry", ".cargo/git", ".m2/repository", ".gradle/wrapper", "go/pkg"),
    *(".local/share/pnpm", ".gem/ruby", ".local/bin", ".cargo/bin", "go/bin"),
)
#: Variables that name a toolchain which the person has switched on, and what shows that there is one.
_SWITCHES = {
    "VIRTUAL_ENV": "pyvenv.cfg",
    "CONDA_PREFIX": "conda-meta",
    "JAVA_HOME": "bin/java",
    "GOROOT": "bin/go",
}
#: Folders that no program is let loose on: other people's files and sockets lie in them, or the system does.
_NEVER = (
    *SYSTEM,
    *("/", "/boot", "/dev", "/home", "/proc", "/root", "/run", "/sys", "/tmp", "/var"),  # noqa: S108
    *("/var/tmp", "/var/run", "/var/lib", "/Users", "/Library", "/System"),  # noqa: S108
    *("/Applications", "/private", "/private/tmp", "/private/var"),
)
#: What git reads of the repository of a worktree, and what such a repository's folder is called: nobody calls one of private files so.
_OF_GIT = (
    *("HEAD", "config", "config.worktree", "hooks", "info", "lfs", "logs", "objects"),
    *("packed-refs", "refs", "reftable", "rr-cache", "shallow", "worktrees"),
)
_GIT_ENDS = (".git", "/.bare")


class Places(Struct, frozen=True, kw_only=True):
    """Absolute paths, links resolved. Writable ones include the project; `home` is what the program finds empty.

    `covered` are those of the blocked paths that the other folders would show.
    """

    host: Host
    project: str
    home: str
    writable: tuple[str, ...]
    readable: tuple[str, ...]
    blocked: tuple[str, ...]
    covered: tuple[str, ...]
    uid: int

    @property
    def toolchains(self) -> dict[str, str]:
        """The toolchains of the home folder that lie in no blocked path, and where each of them leads."""
        blocked = frozenset(self.blocked)
        names = (f"{self.home}/{name}" for name in TOOLCHAINS)
        found = {
            path: led_to(path, self.writable)
            for path in names
            if os.path.exists(path)  # noqa: PTH110 - one call for each of forty names
        }
        return {
            path: real for path, real in found.items() if real and not lies_in_one(real, blocked)
        }

    @property
    def tops(self) -> list[str]:
        """The writable folders that lie in no other one.

        Only these are opened by their path: one inside of another could have been swapped for a link by now.
        """
        there = [root for root in self.writable if os.path.exists(root)]  # noqa: PTH110 - asked at every start
        return [
            root
            for root in there
            if not any(root != other and lies_in(root, other) for other in there)
        ]

    @property
    def seen(self) -> list[str]:
        """The readable folders that are still what they were, and lie in no writable one, where they are seen anyway."""
        return [
            folder
            for folder in self.readable
            if not any(lies_in(folder, root) for root in self.writable)
            and os.path.realpath(folder) == folder
        ]

    def roots_in(self, top: str) -> list[str]:
        """Return the writable folders in one of `tops`, itself included, that are still what they were."""
        return [
            root for root in self.writable if lies_in(root, top) and os.path.realpath(root) == root
        ]

    @property
    def hidden(self) -> list[str]:
        """The blocked paths that are there now, and are not links that somebody has put there."""
        return [path for path in self.covered if self._can_be_hidden(path)]

    def _can_be_hidden(self, path: str) -> bool:
        if not os.path.lexists(path):
            return False
        # Where no command can write, a folder on the way may well be a link: a toolchain on another disk.
        is_open = any(lies_in(path, root) for root in self.writable)
        return os.path.realpath(path) == path or not (is_open or os.path.islink(path))  # noqa: PTH114

    @property
    def inner_home(self) -> str:
        """Where the home folder is inside: at its own place, or in /tmp where that belongs to the system."""
        return _inner_home(self.home)

    def check_folder(self, folder: Path) -> str:
        """Return the folder resolved. Raises Refused where it lies in no writable one."""
        real = os.path.realpath(folder)
        if not any(lies_in(real, root) for root in self.writable):
            raise Refused(f"{folder} lies outside the folders that the sandbox opens")
        return real


@cache
def _inner_home(home: str) -> str:
    in_system = any(lies_in(home, folder) for folder in (*SYSTEM, *KERNEL))
    return "/tmp" if in_system or home in ("/", "/tmp", "/var/tmp") else home  # noqa: S108 - named, and nothing is made there


def see(
    host: Host,
    project: Path,
    *,
    writable: Sequence[Path] = (),
    readable: Sequence[Path] = (),
    blocked: Iterable[str | Path] = (),
    uid: int | None = None,
) -> Places:
    """Resolve and judge the folders, which come as they were named (`led_to`). ybs's own folders and the places of keys are blocked unnamed.

    Raises Refused for a folder that is too much to open: the system, the home folder, or one that holds it.
    """
    real_home = os.path.realpath(host.home)
    root = os.path.realpath(project)
    hidden = tuple(os.path.realpath(host.expand(str(path), Path(root))) for path in blocked)
    never = tuple(os.path.realpath(path) for path in host.own_places)
    never += tuple(f"{real_home}/{name}" for name in credentials.HOME)
    opened = (root, *filter(None, (led_to(path, (root,)) for path in writable)))
    seen = tuple(filter(None, (led_to(path, opened) for path in readable)))
    for folder in (*opened, *seen):
        _check(folder, real_home, never)
        if blocking := next((path for path in hidden if lies_in(folder, path)), ""):
            fix = f"leave {blocking} out of safety.sandbox_blocked_paths in your own settings"
            raise Refused(f"{folder} lies in a blocked path", remedies=(Remedy("do", fix),))
    hidden = tuple(dict.fromkeys((*hidden, *never)))
    around = [path for folder in opened for path in _of_repository(folder, real_home, hidden)]
    shown = (*SYSTEM, *(f"{real_home}/{name}" for name in TOOLCHAINS), *opened, *seen)
    kept = _kept_in(shown, real_home, opened)
    minute = int(monotonic()) // 60
    linked = _linked(real_home, never, (*opened, *seen, *around), minute)
    again = _named_again((*hidden, *credentials.SYSTEM), opened, minute)
    folders = frozenset((*shown, *around))
    return Places(
        host=host,
        project=root,
        home=real_home,
        writable=tuple(dict.fromkeys(opened)),
        readable=tuple(dict.fromkeys((*seen, *around))),
        blocked=hidden,
        covered=tuple(
            path
            for path in dict.fromkeys((*hidden, *linked, *kept, *again))
            if lies_in_one(path, folders)
        ),
        uid=os.getuid() if uid is None else uid,
    )


def switched_on(environ: Mapping[str, str]) -> list[Path]:
    """Return the folders of toolchains that the person's own environment names, wherever they lie, links resolved."""
    named = {proof: environ.get(variable, "") for variable, proof in _SWITCHES.items()}
    found = ((Path(path).resolve(), proof) for proof, path in named.items() if path[:1] == "/")
    return [folder for folder, proof in found if (folder / proof).exists()]


def seen_path(environ: Mapping[str, str], home: Path, project: Path) -> str:
    """Return PATH without folders below the home folder and /tmp that are not shown: commands fill those of the session there."""
    shown = [f"{home}/{name}" for name in TOOLCHAINS] + [str(each) for each in switched_on(environ)]
    private = {os.path.realpath(each) for each in (home, "/tmp", "/var/tmp")}  # noqa: S108

    def is_kept(entry: str) -> bool:
        real = os.path.realpath(project / entry)
        is_named = any(lies_in(each, top) for each in (entry, real) for top in shown)
        is_shown = is_named and os.path.isdir(entry)  # noqa: PTH112
        is_private = any(lies_in(each, top) for each in (entry, real) for top in private)
        return is_shown or not is_private or lies_in(real, os.path.realpath(project))

    return ":".join(filter(is_kept, environ.get("PATH", "").split(":")))


def system_folders() -> Iterator[tuple[str, str]]:
    """Yield the system's folders that exist; for one that is a link into another of them, what the link says."""
    for folder in SYSTEM:
        real = os.path.realpath(folder)
        if real != folder and any(lies_in(real, other) for other in SYSTEM):
            yield folder, str(Path(folder).readlink())
        elif Path(folder).is_dir():
            yield folder, ""


def host_secrets() -> list[str]:
    """Return the secrets of the system that this person could read."""
    try:
        keys = [name for name in os.listdir("/etc/ssh") if name.startswith("ssh_host_")]  # noqa: PTH208
    except OSError:
        keys = []
    named = (*credentials.SYSTEM, *(f"/etc/ssh/{name}" for name in keys if name.endswith("_key")))
    return [path for path in named if os.access(path, os.R_OK)]


@lru_cache(8)
def _named_again(closed: tuple[str, ...], folders: tuple[str, ...], _minute: int) -> list[str]:
    return second_names(closed, folders)


@lru_cache(8)
def _linked(home: str, never: tuple[str, ...], folders: tuple[str, ...], _minute: int) -> list[str]:
    """Return what the places of keys and of ybs are links to, and what links in them lead to, where it lies inside of one of the folders.

    That is how people keep their settings in a repository. Never a folder itself: a link must not close a project.
    """
    return [
        path
        for path in (*credentials.resolved(home), *chain.from_iterable(map(targets_in, never)))
        if any(path != folder and lies_in(path, folder) for folder in folders)
    ]


def _kept_in(shown: Iterable[str], home: str, opened: Sequence[str]) -> list[str]:
    """Return the places of keys in what is shown of toolchains: those of the home folder, and those switched on."""
    toolchains = (
        folder
        for folder in shown
        if folder not in SYSTEM and not any(lies_in(folder, root) for root in opened)
    )
    caches = {f"{home}/{name}" for name in _CACHES}
    return [
        path
        for folder in toolchains
        for path in credentials.in_toolchain(folder, is_cache=folder in caches)
    ]


def _of_repository(folder: str, home: str, blocked: tuple[str, ...]) -> Iterator[str]:
    """Yield what git reads of the repository that the folder is a worktree of, where it may be shown.

    It points back to the folder: git writes that for its worktrees, and no command can outside of the project.
    """
    if not os.path.isfile(f"{folder}/.git"):  # noqa: PTH113 - asked at every start
        return
    with suppress(OSError, ValueError, RuntimeError, Refused):
        found = find_repository(Path(folder))
        common = str(found.common_folder)
        if found.git_folder == found.common_folder or not common.endswith(_GIT_ENDS):
            return
        for path in (f"{common}/{name}" for name in _OF_GIT):
            if os.path.exists(path) and not os.path.islink(path):  # noqa: PTH110, PTH114
                _check(path, home, blocked)
                yield path


def _check(folder: str, home: str, blocked: tuple[str, ...]) -> None:
    if lies_in(home, folder):
        raise Refused(
            f"{folder} is your home folder or contains it, and the sandbox cannot protect your files there. "
            "Start ybs in the folder of a project."
        )
    is_systems = any(lies_in(folder, kernel) for kernel in KERNEL) and not is_in_memory(folder)
    if folder in _NEVER or is_systems:
        raise Refused(f"{folder} belongs to the system; start ybs in the folder of a project.")
    if any(lies_in(folder, path) for path in blocked):
        raise Refused(f"{folder} is blocked: keys or ybs's own files are there")
