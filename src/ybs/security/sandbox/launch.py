"""The launch of a shell command as a value, so that a sandbox can wrap it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from ybs.security.sandbox.attempts import Attempts

#: Why git's own work goes outside.
GIT_READ_ONLY: Final = ".git is read-only in the sandbox"


class Launch(Struct, frozen=True):
    """A program to start.

    `descriptors` are inherited by it, and closed on this side as soon as it was started or could not be.
    `before_exec` runs in the child before the program does; that is slower to start, so None where it can be.
    `scratch` is a folder of the sandbox's own on this disk, which goes with the session.
    """

    argv: Sequence[str]
    environ: Mapping[str, str]
    descriptors: tuple[int, ...] = ()
    before_exec: Callable[[], None] | None = None
    scratch: str = ""


class Access(Struct, frozen=True, kw_only=True):
    """What a program is given in the sandbox beside the project: `shown` files and folders to read, `declared` variables."""

    network: bool = False
    read_only: bool = False
    shown: tuple[Path, ...] = ()
    declared: Mapping[str, str] = {}


#: Nothing but the project.
PLAIN: Final = Access()


class Need(Struct, frozen=True):
    """Why a command that ran read-only could not do what it wanted.

    `network`: it wanted to reach another machine. `outside`: it cannot work in the sandbox at all.
    """

    reason: str
    network: bool = False
    outside: bool = False


class Starter(Protocol):
    """Says how shell commands are started: as they are, or in a sandbox."""

    @property
    def closes_network(self) -> bool:
        """Whether commands have no network unless they are given it."""
        ...

    @property
    def may_be_left(self) -> bool:
        """Whether something stands around commands that the person may let one run outside of."""
        ...

    def check(self) -> None:
        """Raise Refused where no command can be run, so that nobody is asked about one."""

    def start(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        access: Access,
    ) -> Launch:
        """Return what starts a program, with the project read-only where that is wanted.

        May raise OSError or ToolError.
        """
        ...

    def holds_reading(self) -> bool:
        """Return whether what is started `read_only`, without network, can neither change nor send anything."""
        ...

    def may_show(self, path: Path) -> bool:
        """Return whether a file or folder outside of the project may be shown to a program."""
        ...

    def expect_job(self) -> None:
        """Have later commands reach the servers of what is about to run in the background."""

    def listening(self) -> list[int] | None:
        """Return the ports of those servers; None where they are the machine's own. It may wait for a process."""
        ...

    def denial(self, output: str, *, network: bool = False, read_only: bool = False) -> str:
        """Return what a failed command ran into that stands around it, as half a sentence; empty if nothing."""
        ...

    def remark(self, output: str, *, network: bool = False, read_only: bool = False) -> str:
        """Return what the reader of a failed command's output should know; empty if nothing.

        `network`: the command had it.
        """
        ...

    @property
    def opened(self) -> Sequence[str]:
        """The folders that commands may write in, where something stands around them."""
        ...

    def need(self, attempts: "Attempts", exit_code: int, said: str) -> Need | None:
        """Return what a command that ran read-only lacked; None where that was not in its way. `said` is its output."""
        ...


def outside(command: str, environ: Mapping[str, str]) -> Launch:
    """Return what starts a command as the person's own shell would: with all their variables, and nothing around it.

    It is a plain shell, which reads the command as the policy has read it.
    """
    return Launch(("/bin/sh", "-c", command), environ)


class Bare:
    """Starts the shell as it is, with nothing around it."""

    closes_network = may_be_left = False

    def check(self) -> None:
        """Let everything be run."""

    def start(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        access: Access,
    ) -> Launch:
        """Return the program, without the secrets of ybs's own environment."""
        from ybs.security.sandbox.environment import (
            build_open,  # not needed before the first command
        )

        del folder
        return Launch(tuple(command), build_open(environ, declared=access.declared))

    def holds_reading(self) -> bool:
        """Return False: nothing is held back."""
        return False

    def may_show(self, path: Path) -> bool:
        """Return True: everything is seen anyway."""
        del path
        return True

    def expect_job(self) -> None:
        """Do nothing: all commands have the machine's network."""

    def listening(self) -> None:
        """Return None: the ports of servers are the machine's."""

    def denial(self, output: str, *, network: bool = False, read_only: bool = False) -> str:
        """Return nothing: no sandbox can be the reason."""
        del output, network, read_only
        return ""

    def remark(self, output: str, *, network: bool = False, read_only: bool = False) -> str:
        """Return nothing: no sandbox can be the reason."""
        del output, network, read_only
        return ""

    @property
    def opened(self) -> Sequence[str]:
        """None: nothing stands around commands."""
        return ()

    def need(self, attempts: "Attempts", exit_code: int, said: str) -> Need | None:
        """Return None: no sandbox can be the reason."""
        del attempts, exit_code, said
