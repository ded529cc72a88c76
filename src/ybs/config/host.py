"""The host: the environment that a program gave ybs, and the folders that it names. It is read once and then passed on.

https://specifications.freedesktop.org/basedir-spec/latest/ (relative values are ignored, as it asks).
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from msgspec import Struct, field

from ybs.config.editables import REPOSITORY_MARKS
from ybs.config.paths import PROJECT_FILE
from ybs.core.leases import Leases

#: The home folder of an account that has none, as Debian names it.
_NOWHERE = Path("/nonexistent")
#: What the folder of copies of projects is called.
COPIES: Final = "ybs-copies"
_MOST_OF_A_PATH = 5_000
#: In memory: where an incognito session keeps what it cannot keep in its process.
MEMORY: Final = "/dev/shm"  # noqa: S108 - in a folder of the person's own
#: Where models and projects may write, without links: the folders that sessions of this process work in, with the repositories around
#: them, and those of commands. One for all hosts: no program in there is run outside of the sandbox, whoever asks for it.
worked_in: set[str] = set()
#: The state folders of this process, in which the commands of all processes are noted; and the folders of incognito sessions, which are named nowhere.
states: set[str] = set()
unnamed: set[str] = set()
#: Files of settings that were asked for by name (`--config`), without links: the person's own, wherever they lie.
asked_for: set[str] = set()


class Host(Struct, frozen=True, kw_only=True, eq=False):
    """The variables and the folders that everything in ybs goes by. Several hosts can live in one process.

    `state_folder` is for checkpoints and kept outputs, `cache_folder` for caches and models. `shared` is what
    sessions of this host share while any of them holds it, such as connections and programs that run; nothing of a session's own is in it.
    """

    environ: Mapping[str, str]
    home: Path
    config_folder: Path
    state_folder: Path
    cache_folder: Path
    shared: Leases = field(default_factory=Leases)

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Self:
        """Return the host that an environment describes: XDG folders, or the one folder that YBS_HOME names."""
        environ = MappingProxyType(dict(environ))
        home, own = _home(environ), own_folder(environ)
        return cls(
            environ=environ,
            home=home,
            config_folder=own or _xdg(environ, "XDG_CONFIG_HOME", home / ".config"),
            state_folder=own / "state"
            if own
            else _xdg(environ, "XDG_STATE_HOME", home / ".local/state"),
            cache_folder=own / "cache" if own else _xdg(environ, "XDG_CACHE_HOME", home / ".cache"),
        )

    def __repr__(self) -> str:
        return f"Host(home={str(self.home)!r})"  # the environment holds keys

    def work_in(self, *folders: Path) -> None:
        """Note folders that hold a project, and those of commands. The home folder, and what lies above it, is the person's, and no project."""
        wholes = {each for one in folders for each in (one.resolve(), *self.whole_projects(one))}
        homes = (self.home, self.home.resolve())
        roots = [e for e in wholes if not any(home.is_relative_to(e) for home in homes)]
        states.add(str(self.state_folder))
        worked_in.update(map(str, roots))
        worked_in.update(map(os.path.realpath, self.command_folders))

    def whole_project(self, folder: Path) -> Path:
        """Return the outermost repository around a folder, or the folder itself: its files came from the same place.

        One that holds the home folder is the person's own, and no project.
        """
        folder, home = folder.resolve(), self.home.resolve()
        above = [each for each in folder.parents if not home.is_relative_to(each)]
        for each in reversed(above):
            if any(os.path.lexists(each / mark) for mark in REPOSITORY_MARKS):
                return each
        return folder

    def whole_projects(self, folder: Path) -> tuple[Path, ...]:
        """Return the whole project of a folder, and those of all other work trees that git has of a repository in it.

        Their files came from the same place. One that holds the home folder is the person's own.
        """
        folder, whole = folder.resolve(), self.whole_project(folder)
        tops = [each for each in (folder, *folder.parents) if each.is_relative_to(whole)]
        trees = [self.whole_project(tree) for top in tops for tree in _work_trees(top)]
        home = self.home.resolve()
        return whole, *(
            e for e in dict.fromkeys(trees) if e != whole and not home.is_relative_to(e)
        )

    def persons(self, names: Iterable[str]) -> tuple[Path, ...]:
        """Return the places of the person's own that names such as those of `config.paths` mean."""
        return tuple(self.expand(name, self.home) for name in names)

    @property
    def user_config_file(self) -> Path:
        """The user's configuration file: `~/.config/ybs/config.json`."""
        return self.config_folder / "config.json"

    @property
    def home_config_file(self) -> Path:
        """The user's short-hand file: `~/.ybs.json`."""
        return self.home / PROJECT_FILE

    @property
    def sessions_folder(self) -> Path:
        """The folder of saved sessions, unless `session.storage_path` names another."""
        return self.config_folder / "sessions"

    @property
    def copies_folder(self) -> Path:
        """The folder of copies of projects that sub-agents work in: `~/.cache/ybs-copies`.

        It is not among ybs's own files, which no tool and no command gets at, and not in /tmp: programs look upward from
        where they start, and others could put something there.
        """
        return _xdg(self.environ, "XDG_CACHE_HOME", self.home / ".cache").with_name(COPIES)

    @property
    def scratch_folder(self) -> Path:
        """The folder of what the commands of each session have as home folder and as /tmp."""
        return self.state_folder / "scratch"

    @property
    def residents_folder(self) -> Path:
        """The folder of the homes of programs in the sandbox that outlive a session, such as MCP servers."""
        return self.state_folder / "residents"

    @property
    def command_folders(self) -> tuple[Path, ...]:
        """Every folder in which programs in the sandbox write, beside those that sessions work in."""
        memory = memory_folder()
        return (self.scratch_folder, self.residents_folder, self.copies_folder, memory)

    @property
    def own_places(self) -> tuple[Path, ...]:
        """The folders and the file that belong to ybs itself: no tool and no command gets at them."""
        return (self.config_folder, self.state_folder, self.cache_folder, self.home_config_file)

    def expand(self, path: str, folder: Path) -> Path:
        """Make a path of a setting absolute: `~` is the home folder, the rest hangs on `folder`.

        `~/.config/ybs` stands for the configuration folder wherever XDG_CONFIG_HOME or YBS_HOME put it.
        Links are not resolved.
        """
        parts = Path(path).parts
        if parts[:3] == ("~", ".config", "ybs"):
            return self.config_folder.joinpath(*parts[3:])
        if parts[:1] == ("~",):
            return self.home.joinpath(*parts[1:])
        return folder.absolute() / path

    @staticmethod
    def is_whole(path: str) -> bool:
        """Return whether a path of a setting means the same in every folder; any other one is the project's, and waits for trust in it."""
        return path.startswith(("/", "~/"))

    def with_home(self, name: str) -> str:
        """Return the name with the home folder for a `~` before it; slashes at its end stay."""
        return f"{self.home}{name[1:]}" if name == "~" or name.startswith("~/") else name

    def short(self, path: str) -> str:
        """Write the home folder as `~`."""
        place, own = Path(path), self.home
        if place == own:
            return "~"
        return f"~/{place.relative_to(own)}" if own in place.parents else path


def _work_trees(top: Path) -> Iterator[Path]:
    """Yield the work trees of a repository that the top is one of, those that git's folder and the tree itself both say are.

    Where the repository has no work tree of its own, its folder is one of them.
    """
    folder, common = _named_in(top / ".git") or top / ".git", None
    if folder.parent.name == "worktrees" and _named_in(folder / "gitdir") == top / ".git":
        common = folder.parent.parent
        above = (each.parent for each in (common, *common.parents) if each.name == ".git")
        yield next(above, common)
    with suppress(OSError):  # most have none
        for each in os.scandir((common or folder) / "worktrees"):
            mark = _named_in(Path(each.path) / "gitdir")
            if mark is not None and _named_in(mark) == Path(each.path).resolve():
                yield mark.parent


def _named_in(file: Path) -> Path | None:
    """Read the path in a pointer file of git (`.git` of a linked work tree, `gitdir`), with links in its parent folder resolved; None without such a file."""
    try:
        if not file.is_file():
            return None
        with file.open(errors="surrogateescape") as opened:
            text = opened.read(_MOST_OF_A_PATH)
        path = file.parent / text.removeprefix("gitdir:").strip("\n ")
        return path.parent.resolve() / path.name if text and "\0" not in text else None
    except (OSError, ValueError, RuntimeError):
        return None


def memory_folder() -> Path:
    """Return the folder in memory of what incognito sessions write: what their commands do, copies of the project and private files."""
    return Path(MEMORY) / f"ybs-{os.getuid()}"


def is_in_memory(path: str) -> bool:
    """Return whether the path lies in a folder of an incognito session in memory."""
    return path.startswith(f"{MEMORY}/ybs-")


def own_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder that YBS_HOME names, if it is an absolute one.

    A relative one would depend on the folder that ybs starts in, and so on the project.
    """
    named = environ.get("YBS_HOME", "")
    return Path(named) if named.startswith("/") else None


def _home(environ: Mapping[str, str]) -> Path:
    named = environ.get("HOME", "")
    if named.startswith("/"):
        return Path(named)
    import pwd  # almost every environment names the home folder

    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return _NOWHERE


def _xdg(environ: Mapping[str, str], variable: str, fallback: Path) -> Path:
    named = environ.get(variable, "")
    return (Path(named) if named.startswith("/") else fallback) / "ybs"


def system_name() -> str:
    """Return the system, its release and the machine. Python's `platform` would start `uname` for the like."""
    found = os.uname()
    return f"{found.sysname}-{found.release}-{found.machine}"
