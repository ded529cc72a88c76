"""The launch of a shell command as a value, so that a sandbox can wrap it."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ybs.core.errors import Refused, ToolError
from ybs.core.remedies import Remedy

if TYPE_CHECKING:
    from ybs.security.sandbox.attempts import Attempts
    from ybs.security.sandbox.places import Places

#: Why git's own work goes outside.
GIT_READ_ONLY: Final = ".git is read-only in the sandbox"


class Launch(Struct, frozen=True):
    """A program to start.

    `descriptors` are inherited by it, and closed on this side as soon as it was started or could not be.
    `before_exec` runs in the child before the program does; that is slower to start, so None where it can be.
    `scratch` is a folder of the sandbox's own on this disk, which goes with the session. `writable` are the folders in which a
    sandbox lets it change files; empty where there is no sandbox. `clean_up` removes what was made for this start alone: whoever waits
    for the program calls it after the end.
    """

    argv: Sequence[str]
    environ: Mapping[str, str]
    descriptors: tuple[int, ...] = ()
    before_exec: Callable[[], None] | None = None
    scratch: str = ""
    writable: tuple[str, ...] = ()
    clean_up: Callable[[], None] | None = None


class StartReport:
    """Says after the end whether a program began at all: bubblewrap writes down how one ended that did, and its own exit code is no program's.

    Where a sandbox has no such report, a program that did not begin has the exit code 126. Close it.
    """

    def __init__(self) -> None:
        self._descriptor = -1

    def awaited(self) -> int:
        """Return a descriptor to hand on, which is written to (bubblewrap's `--json-status-fd`). Raises OSError."""
        self._descriptor = os.memfd_create("ybs-start")
        return os.dup(self._descriptor)

    @property
    def has_begun(self) -> bool:
        """Whether the program began; it is asked once that has ended."""
        return self._descriptor < 0 or b'"exit-code"' in os.pread(self._descriptor, 4096, 0)

    def close(self) -> None:
        """Forget it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)


class Access(Struct, frozen=True, kw_only=True):
    """What a program is given in the sandbox beside the project: `shown` files and folders to read, `declared` variables.

    `is_command`: it has the network where the person opened that for all commands, which says nothing of hooks, tools and servers. `is_alone`:
    its home folder and its temporary files are those of this start, so it loads nothing that a command or another program left there.
    `is_persons`: a program of the person's own or of a plugin, from which the project's settings hide nothing. `report` is told whether it began.
    """

    network: bool = False
    is_command: bool = False
    read_only: bool = False
    is_alone: bool = False
    is_persons: bool = False
    shown: tuple[Path, ...] = ()
    declared: Mapping[str, str] = {}
    report: StartReport | None = None


#: Nothing but the project.
PLAIN: Final = Access()


class Need(Struct, frozen=True):
    """Why a command that ran read-only could not do what it wanted.

    `network`: it wanted to reach another machine. `outside`: it cannot work in the sandbox at all.
    """

    reason: str
    network: bool = False
    outside: bool = False


class Starter:
    """Says how shell commands are started: as they are, with nothing around them. A sandbox overrides all of it."""

    #: Whether the person turned the sandbox off. They may at any time, so it is asked each time and kept nowhere.
    is_off = False

    @property
    def closes_network(self) -> bool:
        """Whether commands have no network unless they are given it."""
        return False

    @property
    def may_be_left(self) -> bool:
        """Whether something stands around commands that the person may let one run outside of."""
        return False

    @property
    def opened(self) -> Sequence[str]:
        """The folders that commands may write in, where something stands around them."""
        return ()

    def check(self) -> None:
        """Raise Refused where no command can be run, so that nobody is asked about one."""

    def start(
        self, command: Sequence[str], folder: Path, environ: Mapping[str, str], access: Access
    ) -> Launch:
        """Return what starts a program, without the secrets of ybs's own environment, and in a sandbox as `access` says.

        May raise OSError or ToolError.
        """
        return Launch(tuple(command), open_environment_of(environ, declared=access.declared))

    def holds_reading(self) -> bool:
        """Return whether what is started `read_only`, without network, can neither change nor send anything."""
        return False

    def may_show(self, path: Path) -> bool:
        """Return whether a file or folder outside of the project may be shown to a program."""
        return True

    def expect_job(self) -> None:
        """Have later commands reach the servers of what is about to run in the background."""

    def listening(self) -> list[int] | None:
        """Return the ports of those servers; None where they are the machine's own. It may wait for a process."""
        return None

    def denial(self, output: str, *, network: bool = False, read_only: bool = False) -> str:
        """Return what a failed command ran into that stands around it, as half a sentence; empty if nothing."""
        return ""

    def remark(self, output: str, *, network: bool = False, read_only: bool = False) -> str:
        """Return what the reader of a failed command's output should know; empty if nothing.

        `network`: the command had it.
        """
        return ""

    def need(self, attempts: "Attempts", exit_code: int, said: str) -> Need | None:
        """Return what a command that ran read-only lacked; None where that was not in its way. `said` is its output."""
        return None


class Backend:
    """What programs are started in; this one, where no sandbox can be had, refuses every command.

    `name` is what the status line says, `why` how it came to be this one, `remedies` what helps against that. `is_reduced`: what it opens for writing leaves more open
    than the project, so whoever holds it asks before every command. `holds_reading`: what runs `read_only` without network can
    change and send nothing. `holds_code`: no command can change ybs itself. `places` is what programs see in it.
    """

    name: str = "none"
    is_reduced: bool = True
    holds_reading: bool = False
    places: "Places | None" = None

    remedies: Sequence[Remedy] = ()

    def __init__(self, why: str, remedies: Sequence[Remedy] = ()) -> None:
        self.why, self.remedies = why, remedies

    @property
    def holds_code(self) -> bool:
        """Whether no command can change ybs itself."""
        return True

    def launch(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        access: Access = PLAIN,
    ) -> Launch:
        """Return what starts `command` in `folder`, which lies in the project or another writable root.

        `environ` is the whole environment of ybs; what is safe is taken from it. Of `access`, `declared` are variables
        that the person's settings give to this program, and with `read_only` nothing can be written that another program
        will see. Whoever spawns closes `descriptors` afterwards, also when the spawn fails, gives the process no input, and a
        session of its own (`start_new_session`), so that it has no terminal and its group can be killed at the end.
        Raises Refused where it may not or cannot be run, OSError where the system is out of something.
        """
        raise Refused(
            f"There is no sandbox here: {self.why}. Nothing was run. The person can install bubblewrap, "
            "or have commands run without a sandbox.",
            remedies=(Remedy("do", "install bubblewrap"), Remedy("run_without_sandbox")),
        )


def outside(command: str, environ: Mapping[str, str]) -> Launch:
    """Return what starts a command as the person's own shell would: with all their variables, and nothing around it.

    It is a plain shell, which reads the command as the policy has read it.
    """
    return Launch(("/bin/sh", "-c", command), environ)


class SandboxView(Struct, frozen=True, kw_only=True):
    """What one git process sees, as absolute paths without links; it starts in `folder`, which may be empty.

    `shown` are folders and files that it may read but for what is `hidden` in them; `git_folders` it may write where it
    `is_writing`.
    """

    folder: str
    git_folders: tuple[str, ...]
    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    is_writing: bool = False


#: Handed on as they are: language, time zone, who the person is, how wide the screen is, and the mark of a ybs around
#: this one, by which that one ends what it started.
_KEPT = (
    *("LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "COLUMNS", "LINES", "CI"),
    "RUN_BY_YBS",
    *("LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME"),
    *("LC_ADDRESS", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_NAME", "LC_PAPER", "LC_TELEPHONE"),
)
#: Where toolchains lie. Only an absolute path is handed on: nothing else has to be in these.
_KEPT_PATHS = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "GOROOT", "GOPATH", "RUSTUP_HOME", "PYENV_ROOT"),
    *("NVM_DIR", "RBENV_ROOT", "ASDF_DATA_DIR", "VOLTA_HOME", "BUN_INSTALL", "PNPM_HOME"),
)
#: Which of several toolchains: words, never paths.
_KEPT_WORDS = ("PYENV_VERSION", "RUSTUP_TOOLCHAIN", "NODE_ENV", "CONDA_DEFAULT_ENV")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
#: So that nothing waits for a person, draws a screen, or writes where it need not.
_SET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}
#: Without a network more tries are vain, and npm alone would try for longer than a command may take. pip names the
#: network as the reason only when it tries again.
_SET_OFFLINE = {
    "PIP_RETRIES": "1",
    "UV_HTTP_RETRIES": "0",
    "CARGO_NET_RETRY": "0",
    "npm_config_fetch_retries": "0",
}
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_LONGEST_WORD = 100
#: No declaration may set these: they run code before the program does, or say where the sandbox is.
_NEVER = frozenset({"BASH_ENV", "ENV", "GCONV_PATH", "TMPDIR"})
#: The program that makes the sandbox gets the variables, too, and it is the dynamic linker that acts on these: it loads libraries, or writes files.
_NEVER_BEGINNING = ("LD_", "DYLD_")


def environment_of(
    environ: Mapping[str, str],
    *,
    home: str,
    temporary: str = "/tmp",  # noqa: S108 - the sandbox's own, not the machine's
    network: bool = False,
    declared: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the variables of a sandboxed program; `environ` is the environment of ybs's own process.

    `declared` are variables that the person's own settings give to one program (a tool, an MCP server).
    Raises ToolError for a declared name or value that cannot be one.
    """
    built = {name: environ[name] for name in _KEPT if name in environ}
    built |= {
        name: value for name in _KEPT_PATHS if (value := environ.get(name, "")).startswith("/")
    }
    built |= {name: value for name in _KEPT_WORDS if _is_word(value := environ.get(name, ""))}
    built |= _proxies(environ) if network else _SET_OFFLINE
    built |= {"HOME": home, "PATH": search_path_of(environ), "TMPDIR": temporary, **_SET}
    return built | _checked(declared or {})


def open_environment_of(
    environ: Mapping[str, str], *, declared: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables of a program that runs in no sandbox: in the person's own home, with the network."""
    home, temporary = environ.get("HOME", "/"), environ.get("TMPDIR", "/tmp")  # noqa: S108 - the machine's own
    return environment_of(environ, home=home, temporary=temporary, network=True, declared=declared)


def search_path_of(environ: Mapping[str, str]) -> str:
    """Return PATH without relative and empty parts, which mean the folder a program happens to be in."""
    parts = environ.get("PATH", "").split(":")
    return ":".join(part for part in parts if part.startswith("/")) or _DEFAULT_PATH


def _is_word(value: str) -> bool:
    return 0 < len(value) <= _LONGEST_WORD and all(
        character.isalnum() or character in ".-_" for character in value
    )


def _proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the proxies that programs need to get out, except those with a password in them."""
    names = [spelled for name in _PROXIES for spelled in (name, name.lower())]
    return {name: value for name in names if (value := environ.get(name)) and "@" not in value}


def _checked(declared: Mapping[str, str]) -> dict[str, str]:
    for name, value in declared.items():
        if not name or "=" in name or "\0" in name + value:
            raise ToolError(
                f"The variable {name!r} cannot be set: the name or the value is invalid."
            )
        if name in _NEVER or name.startswith(_NEVER_BEGINNING):
            raise ToolError(f"The variable {name} cannot be declared: it would change the sandbox.")
    return dict(declared)
