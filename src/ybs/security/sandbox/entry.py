"""Enter the reduced sandbox: everything is prepared before the fork, so that the child only makes calls."""

import ctypes
import os
import signal
import struct
from collections.abc import Callable
from typing import Any, NoReturn

from msgspec import Struct

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CAPSET = {"x86_64": 126, "aarch64": 91}
_VERSION, _PATH_BENEATH = 1, 1
_PDEATHSIG, _SECCOMP, _BOUNDING_DROP, _NO_NEW_PRIVILEGES, _AMBIENT = 1, 22, 24, 38, 47
_CLEAR_ALL, _FILTER_MODE = 4, 2
_CAPABILITIES = 64
_CAPABILITY_VERSION = 0x20080522
_FIRST_RULESET, _RULESET_WITH_NETWORK = 8, 16  # bytes; what a kernel does not know must not be sent
_NETWORK_ABI, _SCOPES_ABI = 4, 6
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
        if self.abi < _NETWORK_ABI:
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
