"""Start the person's own programs (MCP servers, hooks, tools), with their keys, in a project that may be anybody's.

Interpreters and runners take code from the folder that they start in: `python -m X` its `X.py`, `npx` its `node_modules` and
the registry in its `.npmrc`, shims its `.tool-versions`. So until the person trusts the project, such a program starts in an empty
folder of ybs's and learns from variables where the project is; nothing in its environment leads into the project. Into other
folders that tools may write (`--add-dir`) nothing leads ever: trust in a project is not about them. Nor is it where a program is
told of files: formatters load the code that lies beside one, so what counts is the trust in its place (`OwnPrograms.trusts`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from ybs.config import private_file
from ybs.config.host import Host, worked_in
from ybs.core.errors import ConfigError, ToolError
from ybs.security.launcher import away_from
from ybs.security.paths.path_text import lies_in
from ybs.security.paths.roots import Roots
from ybs.security.paths.steps import is_away

#: What an entry says as its `cwd` to have its program start in the project, trusted or not; or never there, nor with what leads there.
IN_PROJECT: Final = "project"
APART: Final = "apart"
WHY_APART: Final = (
    "it started outside of the project: "
    'trust in the project, or "cwd": "project" in its entry, lets it start there'
)
_WHY_CHOSEN: Final = 'it started outside of the project, as "cwd": "apart" in its entry says'
#: Enters the folder that stands before the command. The shell exports the one that it left.
_ENTER = 'cd "$0" && unset OLDPWD && exec "$@"'


class Start(Struct, frozen=True, kw_only=True):
    """The folder that a program starts in, and the variables that it is started with. `is_apart`: the folder is not the project; `is_chosen`: its entry says so."""

    folder: Path
    environ: Mapping[str, str]
    is_apart: bool
    is_chosen: bool = False

    @property
    def why(self) -> str:
        """The end of a message about a program that failed where it had no project around it; empty where it had."""
        if not self.is_apart:
            return ""
        return _WHY_CHOSEN if self.is_chosen else WHY_APART

    def command(self, command: Sequence[str]) -> tuple[str, ...]:
        """Return a command line that runs the command in the folder, for a process that begins in another one."""
        return entering(str(self.folder), command) if self.is_apart else tuple(command)


class OwnPrograms:
    """Says where they start, and of which files they are told. `trusts_project` is asked with each; `original` is the project that the folder is a copy of.

    `trusts_added` says of another folder that tools may write in whether it is a project that the person trusts by itself.
    """

    def __init__(
        self,
        roots: Roots,
        trusts_project: Callable[[], bool],
        original: Path | None = None,
        trusts_added: Callable[[Path], bool] = lambda _: False,
    ) -> None:
        self._roots, self.trusts_project, self._original = roots, trusts_project, original
        self._trusts_added = trusts_added

    def trusts(self, path: Path) -> bool:
        """Return whether the person trusts the place of a path, its links resolved: the project, or the folder that was added."""
        around = [each for each in self._roots.folders if path.is_relative_to(each)]
        inner = max(around, key=lambda each: len(each.parts), default=None)
        if inner == self._roots.folder:  # mostly, and the rest looks at the disk
            return self.trusts_project()
        if self._original and path.is_relative_to(self._original):
            return self.trusts_project()
        return inner is not None and self._trusts_added(inner)

    def start(self, key: str, cwd: str = "") -> Start:
        """Return where a program starts; `key` names its folder, `cwd` is what its entry says.

        Raises ToolError and OSError where the folder cannot be made.
        """
        host, project = self._roots.host, self._roots.folder
        if cwd == IN_PROJECT or (cwd != APART and self.trusts_project()):
            environ = away_from(self._untrusted(), host.environ, but=self._trusted())
            return Start(folder=project, environ=environ, is_apart=False)
        try:
            folder = made_start_folder(host, key)
        except ConfigError as error:
            raise ToolError(str(error)) from error
        environ = away_from(self._untrusted(), host.environ)
        return Start(folder=folder, environ=environ, is_apart=True, is_chosen=cwd == APART)

    @property
    def _own(self) -> tuple[str, ...]:
        """The project's folder, and where it is a copy, that of the project."""
        return tuple(str(each) for each in (self._roots.folder, self._original) if each)

    @property
    def _projects(self) -> tuple[str, ...]:
        """The folders of the project, each with the repository around it, and its other work trees: what is kept out before trust."""
        return self._wholes(map(Path, self._own))

    def _trusted(self) -> list[str]:
        """Return the folders that variables may lead into with the trust: the project and the repository around it, and other work trees of that, unless one, or a part of it, was added."""
        added = [each for each in self._roots.folders if str(each) not in self._own]
        return [
            each
            for each in self._projects
            if any(lies_in(own, each) for own in self._own)
            or not any(lies_in(str(one), each) or lies_in(each, str(one)) for one in added)
        ]

    def _untrusted(self) -> list[str]:
        """Return the folders whose files may be anybody's. One that holds the home folder holds the person's own programs."""
        home = self._roots.host.home.resolve()
        folders = (*self._projects, *self._wholes(self._roots.folders))
        return [each for each in dict.fromkeys(folders) if not home.is_relative_to(each)]

    def _wholes(self, folders: Iterable[Path]) -> tuple[str, ...]:
        host = self._roots.host
        all_of_them = ((each, *host.whole_projects(each)) for each in folders)
        return tuple(dict.fromkeys(str(each) for some in all_of_them for each in some))


def start_folder(host: Host, key: str) -> Path:
    """Return the empty folder in which a program starts: `~/.local/state/ybs/start/KEY`."""
    return host.state_folder / "start" / key


def made_start_folder(host: Host, key: str) -> Path:
    """Make the folder in which a program starts, and return it without links. Raises ConfigError and OSError.

    It lies in no project: programs look upward from where they start.
    """
    folder = start_folder(host, key)
    private_file.make_folder(folder)
    real = folder.resolve()
    if not is_away(str(folder), worked_in):
        raise ConfigError(
            f"ybs's own folder {host.short(str(host.state_folder))} lies in a project, and programs of yours that start there "
            "would take code from it. Set YBS_HOME or XDG_STATE_HOME to another folder."
        )
    return real


def with_git_setting(environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables with which git enters a bare repository only where a command names it.

    Four plain files of a project make a bare repository, and its settings name programs. Variables number the settings
    that they hold (https://git-scm.com/docs/git-config#Documentation/git-config.txt-safebareRepository).
    """
    counted = environ.get("GIT_CONFIG_COUNT", "")
    number = int(counted) if counted.isascii() and counted.isdigit() else 0
    return {
        **environ,
        "GIT_CONFIG_COUNT": str(number + 1),
        f"GIT_CONFIG_KEY_{number}": "safe.bareRepository",
        f"GIT_CONFIG_VALUE_{number}": "explicit",
    }


def entering(folder: str, command: Sequence[str]) -> tuple[str, ...]:
    """Return a command line that enters a folder and runs a command there."""
    return ("/bin/sh", "-c", _ENTER, folder, *command)
