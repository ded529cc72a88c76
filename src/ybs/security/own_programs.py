"""Start the person's own programs (MCP servers, hooks, tools), with their keys, in a project that may be anybody's.

Interpreters and runners take code from the folder that they start in: `python -m X` its `X.py`, `npx` its `node_modules` and
the registry in its `.npmrc`, shims its `.tool-versions`. So until the person trusts the project, such a program starts in `/` and
learns from variables where the project is; nothing in its environment leads into the project. Into other folders that tools may
write (`--add-dir`) nothing leads ever: trust in a project is not about them. Nor is it where a program is told of files:
formatters load the code that lies beside one, so what counts is the trust in its place (`OwnPrograms.trusts`).

All of them look upward as well, from where they start and from the file that they are told of: `npx` for a `package.json`, `uv` for a
`pyproject.toml`. So what lies above counts as what lies there. Above `/` lies nothing, and root alone writes in it. A trusted project is where the
person put it; but of a copy of it, and where a folder above was added, `OwnPrograms` looks at the whole way up.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from ybs.config.document import others_may_write
from ybs.core.errors import ToolError
from ybs.security.launcher import OWN_FOLDER, away_from
from ybs.security.paths.path_text import lies_in
from ybs.security.paths.roots import Roots

#: What an entry says as its `cwd` to have its program start in the project, trusted or not; or never there, nor with what leads there.
IN_PROJECT: Final = "project"
APART: Final = "apart"
WHY_APART: Final = (
    "it started outside of the project: "
    'trust in the project, or "cwd": "project" in its entry, lets it start there'
)
_WHY_OPEN: Final = "it started outside of the project: others, or tools, may write in {folder}, and programs look for code in all folders above theirs"
_NOWHERE: Final = (
    "tools may write in /, so there is no folder for your programs to start in: "
    'start ybs in the folder of a project, or say "cwd": "project" in the entry'
)
_WHY_CHOSEN: Final = 'it started outside of the project, as "cwd": "apart" in its entry says'
#: Enters the folder that stands before the command. The shell exports the one that it left.
_ENTER = 'cd "$0" && unset OLDPWD && exec "$@"'


class Start(Struct, frozen=True, kw_only=True):
    """The folder that a program starts in, and the variables that it is started with. `why` it does not start in the project: the end of a message about one that failed for that."""

    folder: Path
    environ: Mapping[str, str]
    why: str = ""

    @property
    def is_apart(self) -> bool:
        """Whether it does not start in the project."""
        return bool(self.why)

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
        """Return whether the person trusts the place of a path, its links resolved: every folder around it that tools write in."""
        around = [each for each in self._roots.written if path.is_relative_to(each)]
        if self._roots.folder in around and self.opened_above:
            return False
        return bool(around) and all(self._trusts_folder(each, path) for each in around)

    def _trusts_folder(self, folder: Path, path: Path) -> bool:
        project = self._roots.folder
        if folder in (project, self._original):
            return self.trusts_project()
        if path.is_relative_to(project) and folder in project.parents:
            whole = self._roots.host.whole_project(project)  # it came from the same place
            return folder.is_relative_to(whole) or self._trusts_added(folder)
        return self._trusts_added(folder)

    @property
    def opened_above(self) -> Path | None:
        """A folder above a copy of the project in which others than the person and root may write, as in /tmp; None where there is none, and for the project itself."""
        above = self._roots.folder.parents if self._original else ()
        return next((each for each in above if _is_open(each)), None)

    def start(self, cwd: str = "", *, in_sandbox: bool = False) -> Start:
        """Return where a program starts; `cwd` is what its entry says. One `in_sandbox` finds nothing above the project.

        Raises ToolError where tools write in all of the disk, so that it may start nowhere.
        """
        host, project = self._roots.host, self._roots.folder
        is_trusted = cwd != APART and self.trusts(project)
        if is_trusted or (cwd == IN_PROJECT and (in_sandbox or not self.opened_above)):
            environ = away_from(self._untrusted(), host.environ, but=self._trusted())
            return Start(folder=project, environ=environ)
        if OWN_FOLDER in self._roots.written:
            raise ToolError(_NOWHERE)
        why = _WHY_CHOSEN if cwd == APART else WHY_APART
        if cwd != APART and self.trusts_project():
            above = (each for each in self._roots.written if each in project.parents)
            why = _WHY_OPEN.format(folder=host.short(str(self.opened_above or next(above))))
        environ = away_from(self._untrusted(), host.environ)
        return Start(folder=OWN_FOLDER, environ=environ, why=why)

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


def _is_open(folder: Path) -> bool:
    """Return whether others than the person and root may write in a folder, also where they may take nothing away there that is not theirs."""
    try:
        facts = folder.stat()
    except OSError:
        return True
    return facts.st_uid not in (0, os.getuid()) or others_may_write(facts)


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
