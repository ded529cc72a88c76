"""The sandbox: which sandbox this machine has, and how a program is started in it.

Shell commands, external tools and MCP servers use the same seam: `choose(see(project)).launch(command, ...)`.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ybs.security.paths.own_code import code_in
from ybs.security.sandbox import bubblewrap
from ybs.security.sandbox.launch import PLAIN, Access, Backend, Launch, open_environment_of
from ybs.security.sandbox.places import Places, see
from ybs.security.sandbox.scratch import PrivateFolder

if TYPE_CHECKING:
    from ybs.security.sandbox.landlock import Kernel
    from ybs.security.sandbox.shared_network import SharedNetwork

__all__ = ["Backend", "Launch", "Open", "Places", "choose", "see"]


class Open(Backend):
    """No sandbox, because the person turned it off. The environment is still a built one.

    What of ybs itself lies in one of the folders stays read-only all the same, where bubblewrap can be had.
    """

    def __init__(self, folders: Sequence[str] = ()) -> None:
        super().__init__("you turned it off")
        self._folders = folders

    @property
    def holds_code(self) -> bool:
        """Whether no command can change ybs itself. A link that leads to it cannot be held."""
        code = [path for folder in self._folders for path in code_in(folder)]
        return not code or (has_bubblewrap() and not any(Path(path).is_symlink() for path in code))

    def launch(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        access: Access = PLAIN,
    ) -> Launch:
        """Return the command as it is."""
        variables = open_environment_of(environ, declared=access.declared)
        return Launch((*holding_code(self._folders), *command), variables)


def holding_code(folders: Sequence[str]) -> tuple[str, ...]:
    """Return the words behind which a command cannot change ybs's own code in these folders; none where there is none, or no bubblewrap."""
    folders = [folder for folder in folders if code_in(folder)]
    program = tried_bubblewrap()[0] if folders and sys.platform == "linux" else None
    return bubblewrap.holding_code(program, folders) if program else ()


def choose(
    places: Places, private: PrivateFolder | None = None, shared: "SharedNetwork | None" = None
) -> Backend:
    """Return the best sandbox of this machine; the machine is tried once, which takes some 30 ms.

    `private` is the session's own folder: what its commands have in common outside of the project. `shared` is the network
    that they have in common where they can have one.
    """
    if sys.platform == "darwin":
        return _on_macos(places, private)
    if sys.platform == "linux":
        return _on_linux(places, private, shared)
    return Backend(f"ybs knows no sandbox for {sys.platform}")


def try_machine() -> None:
    """Find out ahead of the first command what this machine allows."""
    if sys.platform == "linux":
        tried_bubblewrap()


def has_bubblewrap() -> bool:
    """Return whether bubblewrap works on this machine, which is tried once."""
    return sys.platform == "linux" and tried_bubblewrap()[0] is not None


def landlock_kernel() -> "Kernel | None":
    """Return the kernel's interface if Landlock can be used."""
    return tried_landlock()[0]


def _on_linux(
    places: Places, private: PrivateFolder | None, shared: "SharedNetwork | None"
) -> Backend:
    program, options, said = tried_bubblewrap()
    if program is not None:
        return bubblewrap.Bubblewrap(places, program, options, said, private, shared)
    from ybs.security.sandbox import landlock  # with ctypes

    kernel, found = tried_landlock()
    if kernel is None:
        return Backend(f"{said}; {found}")
    return landlock.Landlock(places, kernel, f"{said}; {found} stands in for it", private)


def _on_macos(places: Places, private: PrivateFolder | None) -> Backend:
    from ybs.security.sandbox import seatbelt

    program = seatbelt.find()
    if program is None:
        return Backend(f"{seatbelt.PROGRAM} is missing")
    return seatbelt.SandboxExec(places, private)


@cache
def tried_bubblewrap() -> tuple[str | None, tuple[str, ...], str]:
    """Return the program and its options if it works here, and what was said where it does not."""
    program = bubblewrap.find()
    if program is None:
        return None, (), "bubblewrap is not installed for the whole system"
    options, said = bubblewrap.attempt(program)
    return (None, (), said) if options is None else (program, options, said)


@cache
def tried_landlock() -> "tuple[Kernel | None, str]":
    """Return the kernel if it has Landlock, and what is missing where it does not."""
    from ybs.security.sandbox import landlock

    return landlock.attempt(landlock.open_kernel())
