"""The sandbox of a session: chosen when the first command needs it, the same one until the end."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.config.host import Host, memory_folder
from ybs.core.errors import Refused
from ybs.core.lazy import lazy
from ybs.core.remedies import Remedy
from ybs.security.paths.names import shown_name
from ybs.security.paths.own_code import OWN_CODE as WHY_OWN_CODE
from ybs.security.paths.own_code import code_in
from ybs.security.paths.path_text import quoted
from ybs.security.paths.steps import led_to
from ybs.security.sandbox.launch import GIT_READ_ONLY, Access, Backend, Need, Starter

if TYPE_CHECKING:
    from ybs.security.paths.autorun_changes import AutorunFiles
    from ybs.security.policy.policy import Sandboxing
    from ybs.security.sandbox.attempts import Attempts
    from ybs.security.sandbox.launch import Launch
    from ybs.security.sandbox.places import Places
    from ybs.security.sandbox.resident import Resident
    from ybs.security.sandbox.scratch import PrivateFolder
    from ybs.security.sandbox.shared_network import SharedNetwork
from typing import Final

#: Under the state folder: what commands of sessions have for a home and for temporary files.
#: What the status line says.
WORDS: Mapping[str, str] = {
    "full": "sandbox",
    "held": "reduced sandbox",
    "reduced": "reduced sandbox",
    "none": "no sandbox",
    "off": "no sandbox",
}
#: The states in which something stands around commands.
WALLED: Collection["Sandboxing"] = ("full", "held", "reduced")
#: What programs say when the sandbox denies them something.
_WALLS = lazy(
    r"Read-only file system|Permission denied|Operation not permitted|Network is unreachable"
    r"|Connection refused|Couldn't connect to server|ECONNREFUSED|(?:/tmp/|~).*No such file"
    r"|Temporary failure in name resolution|Could not resolve|Name or service not known"
    r"|No such file or directory: '?/(?:home|root|run|var)|EROFS|EACCES|ENOTFOUND|EAI_AGAIN"
)
_WRITE_REFUSED = lazy(r"Read-only file system|\bEROFS\b")
#: How the sandboxes without mounts say it, and other things too.
_REFUSED = lazy(r"Permission denied|Operation not permitted|\bEACCES\b|\bEPERM\b")
#: What is refused where mounts hold writes: unix sockets, which mounts cannot hold.
_SOCKET_REFUSED = lazy(r"Operation not permitted|\bEPERM\b")
_MOST_NAMED = 3
_LONGEST_LINE = 160
#: What a model can do where the sandbox is in the way.
_OUTSIDE = (
    "with outside: true the person is asked to run it outside the sandbox, as in their own shell"
)
_FOR_KEYS = ", with outside: true for their keys and logins, too"


def _line_at(text: str, place: int) -> str:
    """Return the line around a place in a text, shortened."""
    line = text[text.rfind("\n", 0, place) + 1 :].partition("\n")[0].strip()
    return line if len(line) <= _LONGEST_LINE else f"…{line[1 - _LONGEST_LINE :]}"


def _holds_something(folder: Path) -> bool:
    try:
        return bool(os.listdir(folder))  # noqa: PTH208 - at every start
    except OSError:
        return False


class Sandbox(Starter):
    """Starts the session's commands in the best sandbox that this machine has.

    `folders` may be written beside the project, `blocked` paths stay hidden, `is_open` opens the network for all. Those of them that are
    `blocked_by_project` are not hidden from programs of the person's: else a clone takes away what a guard of theirs reads or runs.
    `is_off`: the person turned the sandbox off, for this run, in their own settings or in the session. `outputs` is the
    folder where long outputs are kept, once there are any: commands may read them. `is_of_copy`: the folder is a copy of the
    project, for a sub-agent.
    """

    def __init__(  # noqa: PLR0913 - each is a choice of its own
        self,
        host: Host,
        folder: Path,
        *,
        blocked: Sequence[str] = (),
        blocked_by_project: Sequence[str] = (),
        folders: Sequence[Path] = (),
        outputs: Path | None = None,
        is_open: bool = False,
        is_off: bool = False,
        in_memory: bool = False,
        is_of_copy: bool = False,
    ) -> None:
        self._host, self._folder = host, folder
        self._blocked, self.is_open = blocked, is_open
        self._persons_blocked = [each for each in blocked if each not in blocked_by_project]
        #: Both are for the person to change at any time.
        self.is_off = is_off
        self._outputs = outputs
        self._backend: Backend | None = None
        self._folders = tuple(path for path in folders if path != folder)
        self.left_out: list[Path] = []
        self._shown: tuple[Path, ...] = ()
        self._shows_outputs = False
        self._in_memory, self._is_of_copy = in_memory, is_of_copy
        self._private: PrivateFolder | None = None
        self._making = Lock()  # several programs may be started at once
        self._autorun_files: AutorunFiles | None = None
        #: How many programs that are not commands, and may write in the project, were started, and whether one of them goes on.
        self.started_others = 0
        self._has_servers = False
        self._shared_network: SharedNetwork | None = None

    @property
    def backend(self) -> "Backend":
        """The sandbox in use. Finding it takes some 30 ms, once."""
        if self.is_off:
            from ybs.security.sandbox.choice import Open

            return Open([str(folder) for folder in (self._folder, *self._folders)])
        if self._backend is None:
            self._backend = self._choose(self._blocked)
        return self._backend

    @backend.setter
    def backend(self, backend: "Backend") -> None:
        """Use this one instead of the best that this machine has."""
        self._backend = backend

    def _choose(self, blocked: Sequence[str]) -> "Backend":
        from ybs.security.sandbox.choice import choose

        try:
            return choose(self._places(blocked), self._private_folder(), self.shared_network)
        except Refused as error:
            return Backend(str(error), error.remedies)

    def switch(self, *, is_off: bool) -> None:
        """Have commands run with or without it from now on."""
        self.is_off = is_off

    def open_network(self, *, is_open: bool) -> None:
        """Open the network to all commands, or close it."""
        self.is_open = is_open

    def add_folder(self, folder: Path) -> None:
        """Let commands write in one more folder: absolute, links resolved. Raises Refused for one that is too much to open."""
        self._see(writable=[folder])
        if folder != self._folder and folder not in self._folders:
            self._folders += (folder,)
            self._backend = None  # the next one has it

    def show(self, folder: Path) -> None:
        """Let commands read one more folder, absolute, links resolved, that ybs itself has judged."""
        if folder not in self._shown:
            self._shown += (folder,)
            self._backend = None  # the next one has it

    @property
    def state(self) -> "Sandboxing":
        """Say what the policy goes by."""
        if self.is_off:
            return "off" if self.holds_code else "none"
        if self.backend.name == "none":
            return "none"
        if not self.backend.is_reduced:
            return "full"
        return "held" if self.backend.holds_reading else "reduced"

    @property
    def holds_code(self) -> bool:
        """Whether no command can change ybs itself, also where the sandbox is off."""
        return self.backend.holds_code

    @property
    def closes_network(self) -> bool:
        """Whether commands have no network unless they are given it."""
        return not self.is_open and self.state in WALLED

    @property
    def may_be_left(self) -> bool:
        """Whether the person may let a command run outside: with a sandbox, and not from a copy of the project."""
        return self.state in WALLED and not self._is_of_copy

    @property
    def word(self) -> str:
        """Say it in a word or two, for a status line."""
        state = self.state
        is_open = self.is_open and state in WALLED
        return f"{WORDS[state]}, network" if is_open else WORDS[state]

    @property
    def opened(self) -> list[str]:
        """The folders that commands may write in; none where no command can be run, or it is too much to open."""
        if (places := self.backend.places) is not None:
            return places.tops
        try:
            return self._see().tops if self.is_off else []
        except Refused:
            return []

    def check(self) -> None:
        """Raise Refused where there is no sandbox and the person did not turn the sandbox off."""
        if not self.is_off and self.backend.name == "none":
            raise Refused(
                f"No command can be run: {self.backend.why}",
                remedies=self.backend.remedies or (Remedy("run_without_sandbox"),),
            )

    def start(
        self, command: Sequence[str], folder: Path, environ: Mapping[str, str], access: Access
    ) -> "Launch":
        """Return what starts a program in the sandbox.

        Whoever gives it more to read has asked `may_show`, or it is ybs's own.
        """
        self._show_outputs()
        if not (access.is_command or access.read_only):
            self._start_other()
        if access.is_command and self.is_open and not access.read_only:
            access = replace(access, network=True)
        return self._showing(access).launch(command, folder, environ, access)

    def start_resident(self, resident: "Resident") -> "Launch":
        """Return what starts a program that runs beside the session. Raises Refused and OSError."""
        from ybs.security.sandbox.resident import start_resident  # few sessions have any

        if resident.project == "write":
            self._start_other()
            self._has_servers = True
        private = Path(self._private_folder().path) if self._in_memory else None
        return start_resident(
            self._host,
            self._folder,
            resident,
            blocked=self._persons_blocked if resident.is_persons else self._blocked,
            private=private,
            may_reuse=self.backend.name == "bubblewrap",
        )

    @property
    def autorun_files(self) -> "AutorunFiles":
        """What is known of the files in the project that run or are read later."""
        from ybs.security.paths.autorun_changes import AutorunFiles  # with the first program

        with self._making:
            self._autorun_files = self._autorun_files or AutorunFiles(self._host)
        return self._autorun_files

    def _start_other(self) -> None:
        """Look at what there is before a program may change it: only what is new afterwards can be told."""
        self.autorun_files.begin(self.opened)
        self.started_others += 1

    def has_started_others(self, *, since: int) -> bool:
        """Return whether such a program runs, or was started since there were so many."""
        return self._has_servers or self.started_others != since

    def _showing(self, access: Access) -> "Backend":
        """Return the sandbox in use, with more to read in it, and for a program of the person's with what only the project's settings hide."""
        backend = self.backend
        if access.is_persons and len(self._persons_blocked) < len(self._blocked):
            backend = backend if self.is_off else self._choose(self._persons_blocked)
        places = backend.places
        if not access.shown or places is None:
            return backend
        from ybs.security.sandbox.choice import choose

        more = filter(None, (led_to(path, places.writable) for path in access.shown))
        shown = (*places.readable, *more)
        return choose(replace(places, readable=shown), self._private_folder(), self.shared_network)

    def holds_reading(self) -> bool:
        """Return whether what is started `read_only`, without network, can neither change nor send anything."""
        return self.state in ("full", "held")

    def denial(self, output: str, *, network: bool = False, read_only: bool = False) -> str:
        """Return the sandbox's denial that made a command fail, as half a sentence; empty if none shows."""
        if self.state not in WALLED:
            return ""
        places = self.backend.places
        shown = [*places.tops, *places.seen, *places.toolchains] if places else []

        denial = denial_of(
            output,
            places.home if places else str(self._host.home),
            shown,
            has_network=network or self.is_open,
            is_read_only=read_only,
            code=() if read_only else self._code(),
        )
        # Where commands have a network in common, a port that refuses is most likely not open yet.
        is_shared = self._shared_network is not None and self._shared_network.is_wanted
        return "" if denial == NO_SERVERS and is_shared else denial

    def _code(self) -> list[str]:
        """Return how commands may name ybs's own code: from the folder that it lies in, and whole."""
        return [
            name
            for top in self.opened
            for path in code_in(top)
            for name in (path, path.removeprefix(f"{top}/"))
        ]

    def remark(self, output: str, *, network: bool = False, read_only: bool = False) -> str:
        """Tell the model about the sandbox where it may be the reason for a failure."""
        if self.state in ("none", "off"):
            return ""

        denial = self.denial(output, network=network, read_only=read_only)
        if denial == OWN_CODE:
            return f"[it failed because a part of the project is read-only: {WHY_OWN_CODE}]"
        if denial == NO_NETWORK:
            return f"[it failed because {NO_NETWORK}; with network: true the person is asked for it{_FOR_KEYS}]"
        if denial in (GIT_READ_ONLY, NO_KEYS):
            return f"[it failed because {denial}; {_OUTSIDE}]"
        if not _WALLS().search(output):
            return ""
        net = (
            ""
            if self.is_open
            else "no network (network: true asks for it) nor this machine's servers, "
        )
        if self.state != "full" and not read_only:
            net += "nothing new can be made directly in a folder that holds .git or the like, "
        written = "only $TMPDIR can be written, for this one command" if read_only else "only the project can be written"  # fmt: skip
        if self._has_unseen:
            net += "not all folders of the project could be looked through, so some are read-only for now, "
        return (
            f"[it ran in a sandbox: {net}{written}, ~ begins empty, /tmp ends with the session, "
            f".git is read-only; {_OUTSIDE}]"
        )

    def need(self, attempts: "Attempts", exit_code: int, said: str) -> Need | None:
        """Return what a command that ran read-only lacked: the project to write in, or a network.

        A file that it opened for writing although it would have been content to read counts where the command failed.
        """
        if changed := [*attempts.changed, *(attempts.opened if exit_code else ())]:
            is_of_git = any("/.git/" in path for path in changed)
            reason = f"it wants to write to {self._named(changed)}"
            reason += f"; {GIT_READ_ONLY}" if is_of_git else ""
            return Need(reason, outside=is_of_git)
        if exit_code and attempts.wants_network:
            return Need("it wants to reach the network", network=True)
        if exit_code and attempts.wants_server:
            return Need("it wants to reach a server of this session")
        is_held_by_mounts = self.backend.name == "bubblewrap"
        if exit_code and is_held_by_mounts and _SOCKET_REFUSED().search(said):
            return Need("it wants to reach a server of this session")
        refused = _WRITE_REFUSED().search(said) or (
            _REFUSED().search(said) if exit_code and not is_held_by_mounts else None
        )
        if refused and (exit_code or not attempts.is_watching):
            wants = "it wants to write" if is_held_by_mounts else "it was refused something"
            return Need(f"{wants}: {_line_at(said, refused.start())!r}")
        return None

    def _named(self, paths: Sequence[str]) -> str:
        """Write paths as the person knows them, a few of them."""
        top = f"{self._folder}/"
        shown = [quoted(shown_name(path.removeprefix(top))) for path in paths[:_MOST_NAMED]]
        more = len(paths) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")

    def _private_folder(self) -> "PrivateFolder":
        """Return the network that the session's commands share; it outlives the sandbox."""
        from ybs.security.sandbox.scratch import PrivateFolder

        with self._making:
            self._private = self._private or PrivateFolder(
                self._host.scratch_folder, in_memory=self._in_memory
            )
        return self._private

    @property
    def shared_network(self) -> "SharedNetwork":
        """The network that commands have in common once one of them runs in the background."""
        if self._shared_network is None:
            from ybs.security.sandbox.shared_network import SharedNetwork  # with the first command

            self._shared_network = SharedNetwork()
        return self._shared_network

    def expect_job(self) -> None:
        """Have later commands reach the servers of what is about to run in the background."""
        self.shared_network.want()

    def listening(self) -> list[int] | None:
        """Return the ports of servers that only /ports leads to; None where they are the machine's. It waits for a process."""
        if self._shared_network is None or not self._shared_network.is_apart:
            return None
        return self._shared_network.listening()

    async def aclose(self) -> None:
        """Remove what the commands left outside of the project: no command runs any more."""
        if self._shared_network is not None:
            self._shared_network.close()
        if self._private is not None:
            from asyncio import to_thread

            await to_thread(self._private.remove)

    def sweep(self) -> None:
        """Remove what sessions left that never came to their end: in a thread, and only where something is there."""
        tops = (self._host.scratch_folder, self._host.copies_folder, memory_folder())
        if any(map(_holds_something, tops)):
            from threading import Thread

            from ybs.security.sandbox.scratch import sweep

            Thread(target=sweep, args=(self._host,), name="ybs-sweep", daemon=True).start()

    @property
    def _has_unseen(self) -> bool:
        from ybs.security.paths.folder_index import index_of

        return any(index_of(folder).look().unseen for folder in self.opened)

    def _show_outputs(self) -> None:
        if not self._shows_outputs and self._outputs is not None and self._outputs.is_dir():
            self._shows_outputs = True
            self._backend = None  # the next one has them

    def _see(self, *, writable: Sequence[Path] = (), readable: Sequence[Path] = ()) -> "Places":
        """Return what is shown with these folders. Raises Refused for one that is too much to open."""
        from ybs.security.sandbox.places import see

        blocked = self._blocked
        return see(self._host, self._folder, writable=writable, readable=readable, blocked=blocked)

    def may_show(self, path: Path) -> bool:
        """Return whether a file or folder outside of the project may be shown to a program."""
        try:
            self._see(readable=[path])
        except Refused:
            return False
        return True

    def _places(self, blocked: Sequence[str]) -> "Places":
        """Return what is shown in the sandbox; folders that no sandbox may open are left out."""
        from ybs.security.sandbox.places import see, switched_on

        readable = [path for path in switched_on(self._host.environ) if self.may_show(path)]
        places = see(self._host, self._folder, readable=readable, blocked=blocked)
        opened: list[Path] = []
        for folder in self._folders:
            try:
                see(self._host, self._folder, writable=[folder], blocked=blocked)
            except Refused:
                self.left_out += [folder] if folder not in self.left_out else []
            else:
                opened += [folder] if folder.is_dir() else []
        if opened:
            places = see(
                self._host, self._folder, writable=opened, readable=readable, blocked=blocked
            )
        # They lie in folders of ybs, which are hidden otherwise: only its own code can say this.
        more = [str(path) for path in self._shown]
        if self._shows_outputs and self._outputs is not None:
            more.append(os.path.realpath(self._outputs))
        return replace(places, readable=(*places.readable, *more)) if more else places


NO_NETWORK: Final = "there is no network in the sandbox"
NO_KEYS: Final = "keys and logins are not in the sandbox"
HOME_EMPTY: Final = "the home folder begins empty in the sandbox"
NO_SERVERS: Final = "servers of this machine cannot be reached from the sandbox"
READ_ONLY: Final = "in the sandbox only the project can be written, without the files in it that other programs run"
ALL_READ_ONLY: Final = "what runs without a question has the project read-only"

OWN_CODE: Final = "ybs itself runs from there, so it is read-only in the sandbox"

_NETWORK = lazy(
    r"Network is unreachable|ENETUNREACH|No route to host|EHOSTUNREACH"
    r"|Temporary failure in name resolution|Temporary failure resolving|Could not resolve|Couldn't resolve"
    r"|Name or service not known|nodename nor servname|No address associated with hostname|no such host"
    r"|ENOTFOUND|EAI_AGAIN|getaddrinfo|unable to resolve|failed to lookup address|dns error"
    r"|offline mode|Failed to fetch https?:|unable to access 'https?:"
)
_KEYLESS = lazy(
    r"Permission denied \(publickey|authentication agent|Host key verification failed|gh auth login"
    r"|could not read (?:Username|Password) for|terminal prompts disabled|Authentication failed for 'https?:"
)
_NO_ANSWER = lazy(r"Connection refused|ECONNREFUSED|Couldn't connect to server")
_READ_ONLY = lazy(r"Read-only file system|\bEROFS\b")
_UNWRITABLE = lazy(
    r"Read-only file system|\bEROFS\b|Permission denied|\bEACCES\b|Device or resource busy|\bEBUSY\b|Errno (?:13|16|30)\b"
)
_GIT = lazy(
    r"\.git(?:/[^\n]*)?['\"]?: Read-only file system|could not lock config file|cannot lock ref"
    r"|(?:[Uu]nable|failed) to (?:create|write|open)[^\n]*\.git\b"
)
_MISSING = lazy(r"No such file or directory|not found|ENOENT|does not exist")
_PATH = lazy(r"(?<![\w.~/])(?:~|/)/?[^\s:'\"`]*")


def denial_of(
    said: str,
    home: str,
    shown: Sequence[str] = (),
    *,
    has_network: bool = False,
    is_read_only: bool = False,
    code: Sequence[str] = (),
) -> str:
    """Return the sandbox's denial in an output, as half a sentence; empty if none shows.

    `shown` are the folders that commands see as they are, `code` names of where ybs's own code lies.
    """
    for denial, words in ((NO_NETWORK, _NETWORK), (NO_KEYS, _KEYLESS)):
        if words().search(said) and not (has_network and denial == NO_NETWORK):
            return denial
    if any(path in said for path in code) and _UNWRITABLE().search(said):
        return OWN_CODE
    if _UNWRITABLE().search(said) and _GIT().search(said):
        return GIT_READ_ONLY
    if _READ_ONLY().search(said):
        return ALL_READ_ONLY if is_read_only else READ_ONLY
    if not has_network and _NO_ANSWER().search(said):
        return NO_SERVERS
    missed = (line for line in said.splitlines() if _MISSING().search(line))
    return HOME_EMPTY if any(_is_of_home(line, home, shown) for line in missed) else ""


def _is_of_home(line: str, home: str, shown: Sequence[str]) -> bool:
    """Return whether a line names a path of the home folder that commands do not see as it is."""
    for path in _PATH().findall(line):
        real = home + path[1:] if path.startswith("~") else path
        if real.startswith(f"{home}/") and not any(
            real == top or real.startswith(f"{top}/") for top in shown
        ):
            return True
    return False
