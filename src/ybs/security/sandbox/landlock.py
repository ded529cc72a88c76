"""The reduced sandbox of Linux, where no namespaces can be had: Landlock rules and a wider system call filter.

Landlock only adds up rights below a folder and never takes one away. So a folder that holds something protected is
opened piece by piece, and nothing new can be made directly in it. What stays open where something may be written, measured:
modes and times of the person's own files can be changed, the machine's processes and network interfaces can be listed.
Interface: https://docs.kernel.org/userspace-api/landlock.html
"""

import ctypes
import os
import signal
import stat
import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct

from ybs.core.errors import Refused
from ybs.security.paths.opening import held
from ybs.security.sandbox.launch import PLAIN, Access, Backend, Launch, environment_of
from ybs.security.sandbox.places import Places, host_secrets, lies_in, system_folders
from ybs.security.sandbox.protected import protected
from ybs.security.sandbox.scratch import PrivateFolder
from ybs.security.sandbox.seccomp import is_known, replacing_namespaces

if TYPE_CHECKING:
    from ybs.security.sandbox.launch import SandboxView

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CAPSET = {"x86_64": 126, "aarch64": 91}
_VERSION, _PATH_BENEATH = 1, 1
_PDEATHSIG, _SECCOMP, _BOUNDING_DROP, _NO_NEW_PRIVILEGES, _AMBIENT = 1, 22, 24, 38, 47
_CLEAR_ALL, _FILTER_MODE = 4, 2
_CAPABILITIES = 64
_CAPABILITY_VERSION = 0x20080522
_FIRST_RULESET, _RULESET_WITH_NETWORK = 8, 16  # bytes; what a kernel does not know must not be sent
_EXIT_CODE = 126  # the shell's "found, but cannot be run"
_SORRY = b"ybs: the sandbox could not be entered, so nothing was run\n"

#: A call, its arguments, and whether the sandbox holds without it.
Step = tuple[Callable[..., int], tuple[Any, ...], bool]


class SandboxEntry:
    """Runs in the child between fork and exec: only calls that were looked up before."""

    def __init__(self, steps: list[Step], kept: tuple[object, ...]) -> None:
        self._steps = steps
        self._kept = kept  # buffers that the arguments point into

    def __call__(self) -> None:
        """Enter, or end the process."""
        for call, arguments, may_fail in self._steps:
            if call(*arguments) < 0 and not may_fail:
                _give_up()


def _give_up() -> NoReturn:
    os.write(2, _SORRY)
    os._exit(_EXIT_CODE)


class Kernel(Struct, frozen=True):
    """Landlock's system calls and its version; 0 where there is none."""

    syscall: Callable[..., int]
    prctl: Callable[..., int]
    abi: int

    def create_ruleset(self, rights: int, *, network: int, scopes: int) -> int:
        """Return the descriptor of a new ruleset. Raises OSError."""
        attributes = struct.pack("=QQQ", rights, network, scopes)
        if self.abi < _TCP_ABI:
            attributes = attributes[:_FIRST_RULESET]
        elif self.abi < _SCOPES_ABI:
            attributes = attributes[:_RULESET_WITH_NETWORK]
        return self._done(self.syscall(_CREATE_RULESET, attributes, len(attributes), 0))

    def allow(self, ruleset: int, descriptor: int, rights: int) -> None:
        """Allow rights to what the descriptor stands for. Raises OSError."""
        rule = struct.pack("=Qi", rights, descriptor)
        self._done(self.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))

    def _done(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"Landlock: {os.strerror(number)}")
        return result


def open_kernel() -> Kernel | None:
    """Look up the calls and ask for Landlock's version; None where the C library has no such calls."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        syscall, prctl = library.syscall, library.prctl
    except (OSError, AttributeError):
        return None
    syscall.restype = ctypes.c_long
    prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
    return Kernel(syscall, prctl, max(syscall(_CREATE_RULESET, None, 0, _VERSION), 0))


def prepare(kernel: Kernel, ruleset: int, program: bytes) -> SandboxEntry:
    """Return what a child does to be sandboxed by the ruleset and the filter program, with no capability left."""
    prctl = kernel.prctl
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0))
    none = ctypes.create_string_buffer(bytes(24))
    code = ctypes.create_string_buffer(program, len(program))
    filter_ = ctypes.create_string_buffer(
        struct.pack("HP", len(program) // 8, ctypes.addressof(code))
    )
    steps: list[Step] = [(prctl, (_PDEATHSIG, signal.SIGKILL, 0, 0, 0), False)]
    # Not everybody has these to lose, and not every kernel knows all of them.
    steps += [(prctl, (_BOUNDING_DROP, number, 0, 0, 0), True) for number in range(_CAPABILITIES)]
    steps += [
        (prctl, (_AMBIENT, _CLEAR_ALL, 0, 0, 0), True),
        (kernel.syscall, (_CAPSET[os.uname().machine], header, none), False),
        (prctl, (_NO_NEW_PRIVILEGES, 1, 0, 0, 0), False),
        (kernel.syscall, (_RESTRICT_SELF, ruleset, 0), False),
        (_close, (ruleset,), False),
        (prctl, (_SECCOMP, _FILTER_MODE, ctypes.addressof(filter_), 0, 0), False),
    ]
    return SandboxEntry(steps, (header, none, code, filter_))


def prepare_git(kernel: Kernel, ruleset: int) -> SandboxEntry:
    """Return what a child does to be held by the ruleset alone: for ybs's own git, which runs nobody's programs.

    It keeps its capabilities: they open nothing that the ruleset does not, and root's git may work for another user.
    """
    prctl = kernel.prctl
    steps: list[Step] = [
        (prctl, (_PDEATHSIG, signal.SIGKILL, 0, 0, 0), False),
        (prctl, (_NO_NEW_PRIVILEGES, 1, 0, 0, 0), False),
        (kernel.syscall, (_RESTRICT_SELF, ruleset, 0), False),
        (_close, (ruleset,), False),
    ]
    return SandboxEntry(steps, ())


def _close(descriptor: int) -> int:
    os.close(descriptor)
    return 0


_PATH = getattr(os, "O_PATH", 0)  # only Linux has it
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_ALL_OF_FIRST = (1 << 13) - 1
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ALL_FILES = _ALL_OF_FIRST | _REFER | _TRUNCATE  # without a right to control devices
_TCP = 0b11
_SCOPES = 0b11  # abstract unix sockets and signals
_REFER_ABI, _TRUNCATE_ABI, _TCP_ABI, _IOCTL_ABI, _SCOPES_ABI = 2, 3, 4, 5, 6
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
#: Toolchains find themselves by these, since the home folder inside is another one.
_FOUND_BY = {"PYENV_ROOT": ".pyenv", "RUSTUP_HOME": ".rustup", "NVM_DIR": ".nvm"}


class Landlock(Backend):
    """Wraps commands by what their process does to itself between fork and exec."""

    name = "landlock (reduced)"
    #: The filter refuses what Landlock cannot: modes and times of files, truncation and signals where the kernel is older.
    holds_reading = True

    def __init__(
        self, places: Places, kernel: Kernel, why: str, private: PrivateFolder | None = None
    ) -> None:
        super().__init__(why)
        self.places: Places = places  # pyright: ignore[reportIncompatibleVariableOverride] - it is never set again
        self._kernel = kernel
        self.private = private or PrivateFolder(places.host.scratch_folder)

    def launch(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        access: Access = PLAIN,
    ) -> Launch:
        """Return the command line that runs the command in the sandbox. Raises Refused for a folder outside of it."""
        network, read_only = access.network, access.read_only
        self.places.check_folder(folder)
        private = self.private.alone() if access.is_alone else self.private
        variables = environment_of(
            {**self._toolchain_variables(), **environ, "PATH": self._seen_path(environ)},
            **private.folders_for(access),
            network=network,
            declared=access.declared,
        )
        ruleset = self._ruleset(private, network=network, read_only=read_only)
        program = replacing_namespaces(
            os.uname().machine,
            network=network,
            can_deny_truncate=self._kernel.abi >= _TRUNCATE_ABI,
            read_only=read_only,
            can_deny_signals=self._kernel.abi >= _SCOPES_ABI,
        )
        entry: SandboxEntry = prepare(self._kernel, ruleset, program)
        return Launch(
            argv=tuple(command),
            environ=variables,
            descriptors=(ruleset,),
            before_exec=entry,
            scratch=self.private.path,
            writable=() if read_only else self.places.writable,
            clean_up=private.remove if access.is_alone else None,
        )

    def _seen_path(self, environ: Mapping[str, str]) -> str:
        """Return PATH without folders that are not shown: bash takes a program there for the one that is meant, and fails."""
        places = self.places
        shown = [folder for folder, target in system_folders() if not target]
        shown += [*places.toolchains, *places.seen, *places.tops]
        entries = (each for each in environ.get("PATH", os.defpath).split(":") if each[:1] == "/")
        real = ((each, os.path.realpath(each)) for each in entries)
        return ":".join(e for e, r in real if any(lies_in(r, folder) for folder in shown))

    def _toolchain_variables(self) -> dict[str, str]:
        home = self.places.home
        found = {variable: f"{home}/{name}" for variable, name in _FOUND_BY.items()}
        return {variable: path for variable, path in found.items() if Path(path).is_dir()}

    def _ruleset(self, private: PrivateFolder, *, network: bool, read_only: bool) -> int:
        handled = handled_rights(self._kernel.abi)
        with _new_ruleset(self._kernel, network=network) as ruleset:
            rules = _rules(self.places, private, network=network, read_only=read_only)
            if read_only or private is not self.private:
                rules = chain(rules, [(self.private.temporary, _READ)])
            for path, rights in rules:
                self._allow(ruleset, path, rights & handled)
        return ruleset

    def _allow(self, ruleset: int, path: str, rights: int) -> None:
        try:
            with held(Path(path)) as place:
                descriptor = place.open(os.O_PATH)
        except (OSError, Refused):
            return  # gone meanwhile, unreadable, or a link by now: nothing is allowed then
        allow_place(self._kernel, ruleset, descriptor, rights)


def attempt(kernel: Kernel | None) -> tuple[Kernel | None, str]:
    """Return the kernel's interface if Landlock can be used, and the reason."""
    machine = os.uname().machine
    if kernel is None or kernel.abi < 1:
        return None, "the kernel offers no Landlock"
    if not is_known(machine):
        return None, f"there is no system call filter for {machine}"
    return kernel, f"Landlock ABI {kernel.abi}"


def handled_rights(abi: int) -> int:
    """Return every right to files that this version of Landlock can withhold."""
    later = ((_REFER_ABI, _REFER), (_TRUNCATE_ABI, _TRUNCATE), (_IOCTL_ABI, _IOCTL_DEV))
    return _ALL_OF_FIRST + sum(right for version, right in later if abi >= version)


def git_ruleset(
    kernel: Kernel, system: Iterable[str], devices: Iterable[str], view: "SandboxView"
) -> int:
    """Return a ruleset with which ybs's own git sees the view, and of the system what it needs. Raises OSError."""
    handled = handled_rights(kernel.abi)
    shown = [pair for path in view.shown for pair in _split(path, view.hidden, _READ)]
    everything = _ALL_FILES if view.is_writing else _READ
    shown += [(path, everything) for path in view.git_folders]
    with _new_ruleset(kernel, network=False) as ruleset:
        for path in system:
            with suppress(OSError):  # there are systems without it
                allow_place(kernel, ruleset, os.open(path, _PATH), _READ & handled)
        for path in devices:
            allow_place(kernel, ruleset, os.open(path, _PATH), (_READ_FILE | _WRITE_FILE) & handled)
        for path, rights in shown:
            with suppress(OSError, Refused), held(Path(path)) as place:  # gone, or a link by now
                allow_place(kernel, ruleset, place.open(os.O_PATH), rights & handled)
    return ruleset


@contextmanager
def _new_ruleset(kernel: Kernel, *, network: bool) -> Generator[int]:
    """Make a ruleset, which is closed where it cannot be filled. Raises OSError."""
    ruleset = kernel.create_ruleset(
        handled_rights(kernel.abi),
        network=0 if network or kernel.abi < _TCP_ABI else _TCP,
        scopes=_SCOPES if kernel.abi >= _SCOPES_ABI else 0,
    )
    try:
        yield ruleset
    except BaseException:
        os.close(ruleset)
        raise


def allow_place(kernel: Kernel, ruleset: int, descriptor: int, rights: int) -> None:
    """Allow rights to what the descriptor stands for, and close it. Raises OSError."""
    try:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        kernel.allow(ruleset, descriptor, rights if is_folder else rights & _OF_FILES)
    finally:
        os.close(descriptor)


def _rules(
    places: Places, private: PrivateFolder, *, network: bool, read_only: bool
) -> Iterator[tuple[str, int]]:
    hidden = places.hidden
    secrets = [*host_secrets(), *dict.fromkeys((*hidden, *map(os.path.realpath, hidden)))]
    shown = [os.path.realpath(folder) for folder, target in system_folders() if not target]
    for folder in (*shown, *places.toolchains.values(), *places.seen, *places.tops):
        yield from _split(folder, secrets, _READ)
    for top in places.tops:
        if not read_only:
            roots = places.roots_in(top)
            kept = [path for root in roots for path in protected(places.host, root)]
            yield from _split(top, [*kept, *secrets], _ALL_FILES)
    own = [private.unshared] if read_only else [private.temporary]
    # A home folder in the folder of temporary files needs no rule, and by now may be a link that a program has put there.
    if not (read_only or lies_in(private.home, private.temporary)):
        own.append(private.home)
    yield from ((path, _ALL_FILES) for path in own)
    yield from ((path, _READ_FILE | _WRITE_FILE | _TRUNCATE) for path in _DEVICES)
    yield from (("/proc", _READ), ("/sys/devices/system/cpu", _READ))
    if network:
        yield os.path.realpath("/etc/resolv.conf"), _READ_FILE


def _split(folder: str, hidden: Iterable[str], rights: int) -> Iterator[tuple[str, int]]:
    """Yield rules for all of a folder but what is hidden: the folder, or its entries one by one."""
    below = [path for path in hidden if lies_in(path, folder)]
    if folder in below:
        return
    if not below:
        yield folder, rights
        return
    yield folder, _READ_DIR
    try:
        with os.scandir(folder) as entries:
            inside = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:
        return
    for path in inside:
        yield from _split(path, below, rights)
