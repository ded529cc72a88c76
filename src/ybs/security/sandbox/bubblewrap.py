"""The sandbox of Linux: bubblewrap with an empty root, namespaces of its own, and a system call filter."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ybs.config.paths import SYSTEM
from ybs.security.launcher import BUBBLEWRAP, ask, system_program
from ybs.security.paths.own_code import code_in
from ybs.security.sandbox.launch import PLAIN, Access, Backend, Launch, environment_of
from ybs.security.sandbox.mounts import checked
from ybs.security.sandbox.places import Places, host_secrets, lies_in, system_folders
from ybs.security.sandbox.scratch import PrivateFolder
from ybs.security.sandbox.seccomp import confining, is_known

if TYPE_CHECKING:
    from ybs.security.sandbox.shared_network import SharedNetwork

_NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
)
# Not `--new-session`: whoever spawns makes the session (and so takes the terminal away), the filter refuses to type
# into one, and a second session puts the two processes into scheduler groups of their own, which is most of a start.
_BOUND = ("--die-with-parent", "--cap-drop", "ALL", "--hostname", "ybs")
_NO_MORE_USERS = "--disable-userns"  # bubblewrap 0.8 and later
_TMP = "/tmp"  # noqa: S108 - the sandbox's own
#: Where programs have a place of their own to write to that run read-only or alone: nothing else sees it.
_UNSHARED = "/var/tmp"  # noqa: S108 - the sandbox's own
_TRY_SECONDS = 10
_MOST_PIECES = 200


class Bubblewrap(Backend):
    """Wraps commands with one bwrap program that has been tried."""

    name = "bubblewrap"
    is_reduced = False
    holds_reading = True

    def __init__(
        self,
        places: Places,
        program: str,
        options: tuple[str, ...],
        why: str,
        private: PrivateFolder | None = None,
        network: "SharedNetwork | None" = None,
    ) -> None:
        super().__init__(why)
        self.places: Places = places  # pyright: ignore[reportIncompatibleVariableOverride] - it is never set again
        self.private = private  # without one, every command has a /tmp of its own
        self._network = network  # without one, every command has one of its own
        self._program, self._options = program, options
        self._system = list(_system(places))
        self._system_folders = [folder for folder, _ in system_folders()]
        self._toolchains = places.toolchains

    def launch(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        access: Access = PLAIN,
    ) -> Launch:
        """Return the command line that runs the command in the sandbox. Raises Refused for a folder outside of it."""
        network, read_only = access.network, access.read_only
        inside = self.places.check_folder(folder)
        is_own = read_only or access.is_alone
        temporary, home = _UNSHARED if is_own else _TMP, self.places.inner_home
        variables = environment_of(
            environ,
            home=temporary if home == _TMP else home,
            temporary=temporary,
            network=network,
            declared=access.declared,
        )
        shared = self.private.shared if self.private else ""
        # What nobody was asked about talks to no server of another command either: that could write.
        may_share = self._network is not None and not (network or read_only)
        entering = self._network.prefix(self._program) if self._network and may_share else ()
        arguments = self._arguments(
            shared,
            network=network,
            is_unshared=not (network or entering),
            read_only=read_only,
            is_own=is_own,
        )
        arguments += self.opened(read_only=read_only)
        command = checked(arguments, command)
        # A socket is reached by its name in spite of a mount that is read-only, and of another network.
        descriptor = _filter_file(has_unix_sockets=not (network or read_only))
        told = [access.report.awaited()] if access.report else []
        arguments += [word for each in told for word in ("--json-status-fd", str(each))]
        program = (*entering, self._program, *arguments, "--remount-ro", "/", "--chdir", inside)
        return Launch(
            argv=(*program, "--seccomp", str(descriptor), "--", *command),
            environ=variables,
            descriptors=(descriptor, *told),
            scratch=self.private.path if self.private and shared else "",
            writable=() if read_only else self.places.writable,
        )

    def _arguments(
        self, shared: str, *, network: bool, is_unshared: bool, read_only: bool, is_own: bool
    ) -> list[str]:
        made = [*_NAMESPACES, *self._options, *_BOUND]
        if is_unshared:
            made.append("--unshare-net")
        made += ("--tmpfs", "/", *_temporary(self.places, shared, read_only=read_only))
        made += ("--tmpfs", _UNSHARED) if is_own else ("--symlink", _TMP, _UNSHARED)
        made += self._system
        if network:
            made += _resolver()
        for path, real in self._toolchains.items():
            made += ("--ro-bind", real, path)
        return [*made, *_bind("--ro-bind", self.places.seen)]

    def opened(self, *, read_only: bool) -> Iterator[str]:
        """Yield what sandboxed programs could reach and change, so what has to be looked at again."""
        # A start that runs no command needs none of it.
        from ybs.security.sandbox.protected import machine_sockets, outer_sockets, pipes

        for top in self.places.tops:
            yield from ("--ro-bind", top, top) if read_only else _writable(self.places, top)
            yield from _hidden(pipes(top) if read_only else outer_sockets(top))
        if not read_only:
            yield from _hidden(machine_sockets((*self._system_folders, *self.places.tops, *self._toolchains, *self.places.seen)))  # fmt: skip
        yield from _hidden(self.places.hidden)
        if read_only and self.private is not None and (shared := self.private.shared):
            for path in pipes(shared):
                yield from ("--ro-bind", "/dev/null", f"{_TMP}{path.removeprefix(shared)}")


def find() -> str | None:
    """Return the bwrap program of the system: one that only root can have put there."""
    return system_program(BUBBLEWRAP)


def holding_code(program: str, folders: Iterable[str]) -> tuple[str, ...]:
    """Return what runs a command with all that it has without it, but ybs's own code in the folders, which is read-only."""
    mounts: dict[str, str] = {}
    for folder in folders:
        code = [path for path in code_in(folder) if not Path(path).is_symlink()]
        above = [path for path in _above_in(code, folder) if path != folder]
        mounts |= dict.fromkeys(above, "--dev-bind") | dict.fromkeys(code, "--ro-bind")
    words = [word for path in sorted(mounts) for word in _bind(mounts[path], (path,))]
    return (program, "--dev-bind", "/", "/", *words, "--")


def attempt(program: str) -> tuple[tuple[str, ...] | None, str]:
    """Start one process in namespaces, to see whether this machine allows it; return options and reason.

    The options are None where it does not work.
    """
    machine = os.uname().machine
    if not is_known(machine):
        return None, f"there is no system call filter for {machine}"
    said = _try(program, (_NO_MORE_USERS,))
    if not said:
        return (_NO_MORE_USERS,), program
    # Older than 0.8, or a container where that setting cannot be written. The filter refuses namespaces too.
    if not (said := _try(program, ())):
        return (), f"{program} without {_NO_MORE_USERS}"
    return None, f"{program} does not work here: {said}"


def _try(program: str, options: tuple[str, ...]) -> str:
    """Return what bwrap says against it, or nothing."""
    descriptor = _filter_file()
    given = (*_NAMESPACES, "--unshare-net", *options, *_BOUND)
    seen = ("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev")
    trying = ("--seccomp", str(descriptor), "--", "/bin/sh", "-c", ":")
    try:
        code, _, said = ask(
            Launch((program, *given, *seen, *trying), {}, (descriptor,)), _TRY_SECONDS
        )
    except OSError as error:
        return str(error)
    if code == 0:
        return ""
    return os.fsdecode(said).strip() or f"exit code {code}"


def _filter_file(*, has_unix_sockets: bool = True) -> int:
    """Return a descriptor to read the filter from, of a pipe: no limit on files is one on it. Whoever spawns closes it."""
    descriptor, writer = os.pipe()
    try:
        os.write(writer, confining(os.uname().machine, has_unix_sockets=has_unix_sockets))
    finally:
        os.close(writer)
    return descriptor


def _system(places: Places) -> Iterator[str]:
    """Yield what is the same for every command: the system, its secrets hidden, an empty home."""
    for folder, target in system_folders():
        how = ("--symlink", target) if target else ("--ro-bind", os.path.realpath(folder))
        yield from (*how, folder)
    yield from _hidden(host_secrets())
    yield from ("--proc", "/proc")
    if places.uid == 0:
        # The kernel lets uid 0 write there without any capability: `sys/kernel/core_pattern`, `bus/pci`, `irq`.
        yield from ("--remount-ro", "/proc")
    yield from ("--dev", "/dev", "--dir", "/run")
    yield from _bind("--ro-bind", ("/sys/devices/system/cpu",))
    if places.inner_home == places.home:
        yield from ("--tmpfs", places.home)


def _temporary(places: Places, shared: str, *, read_only: bool) -> Iterator[str]:
    """Yield the session's /tmp."""
    if not shared:
        yield from ("--tmpfs", _TMP)
    else:
        yield from ("--ro-bind" if read_only else "--bind", shared, _TMP)
        for name in _first_names_in_tmp(places):
            # What is mounted below stands in a folder that no command could put there: bubblewrap makes the way to it.
            with suppress(FileExistsError):
                Path(shared, name).mkdir()
            yield from ("--tmpfs", f"{_TMP}/{name}")


def _first_names_in_tmp(places: Places) -> list[str]:
    paths = (places.home, *places.writable, *places.readable)
    found = [path.split("/")[2] for path in paths if lies_in(path, _TMP) and path != _TMP]
    return list(dict.fromkeys(found))


def _bind(how: str, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if os.path.exists(path):  # noqa: PTH110 - dozens of names at every start
            yield from (how, path, path)


def _hidden(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if Path(path).is_dir():
            # Without capabilities even uid 0 cannot write into it.
            yield from ("--perms", "0555", "--tmpfs", path)
        else:
            yield from ("--ro-bind", "/dev/null", path)


def _resolver() -> Iterator[str]:
    """Yield the binding of the name servers' file where it is a link into a folder that is not shown."""
    real = os.path.realpath("/etc/resolv.conf")
    if not any(lies_in(real, folder) for folder in SYSTEM):
        yield from _bind("--ro-bind", (real,))


def _writable(places: Places, top: str) -> Iterator[str]:
    from ybs.security.sandbox.protected import held, held_whole

    yield from ("--bind", top, top)
    roots = places.roots_in(top)
    later = [path for root in roots for path in held(places.host, root)]
    whole = [path for root in roots for path in held_whole(root)]
    kept = [*later, *whole]
    links = {path for path in kept if os.path.islink(path)}  # noqa: PTH114 - there may be hundreds
    # Of what runs later what its links lead to is held: people link `.claude` or `.vscode`, and work beside them.
    in_pieces = {path.rpartition("/")[0] for path in links.intersection(whole)}
    # What is mounted cannot be renamed, to be found bare next time: so the ways to all of these are.
    pins = {*_above_in((*places.hidden, *code_in(top), *later), top)} - {top}
    # In order of depth: a mount covers those that were made below it before.
    for folder in sorted({*in_pieces, *pins}):
        if folder not in in_pieces:
            yield from _bind("--bind", (folder,))
            continue
        # A mount does not hold a link, and what somebody puts in its place would be run or obeyed. So the folder
        # itself is read-only, and what lies in it is writable piece by piece.
        yield from ("--ro-bind", folder, folder)
        yield from _bind("--bind", _chunks(folder))
    yield from _bind("--ro-bind", (path for path in kept if path not in links))


def _above_in(paths: Iterable[str], top: str) -> list[str]:
    """Return the folders in `top` that hold one of the paths, itself among them, each behind those that hold it."""
    way = (
        str(folder)
        for path in paths
        if lies_in(path, top)
        for folder in reversed(Path(path).parents)
        if lies_in(str(folder), top)
    )
    return list(dict.fromkeys(way))


def _chunks(folder: str) -> list[str]:
    """Return what lies in a folder but for links; nothing of a very full one, which is read-only as a whole then."""
    try:
        with os.scandir(folder) as entries:
            pieces = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:
        return []
    return pieces if len(pieces) <= _MOST_PIECES else []
