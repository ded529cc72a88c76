"""Detect attempts of a read-only command to change a file of the project or to reach a server.

The kernel itself says so: a second system call filter, which refuses nothing, passes each such call to this process, which
notes what it is about and lets it go on, to be refused or not by the sandbox. So a program that hides its errors is noticed
as well. What is noted is only for the question to the person: paths are read from the memory of the caller, which may change
them at any time. Interface: https://www.kernel.org/doc/html/latest/userspace-api/seccomp_filter.html (userspace notification).
"""

import array
import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from posixpath import join, normpath
from threading import Thread

from ybs.security.paths.bulk import is_cache
from ybs.security.sandbox.places import lies_in
from ybs.security.sandbox.seccomp import CHANGING, OPENING, changing, is_known, telling

_SYSCALL = {"x86_64": 317, "aarch64": 277}
_NO_NEW_PRIVILEGES = 38
_FILTER_MODE, _NEW_LISTENER = 1, 8
_RECEIVE, _SEND, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082104
_CONTINUE, _SYNC_WAKE_UP = 1, 1
_NOTICE = struct.Struct("=QIIiIQ6Q")  # struct seccomp_notif
_ANSWER = struct.Struct("=QqiI")  # struct seccomp_notif_resp
_HERE = 0xFFFFFF9C  # AT_FDCWD
_LONGEST_PATH = 4096
_UNIX, _INET, _INET6 = 1, 2, 10
_NAME_SERVER_PORT = 53
_WRITE_ONLY, _CREATE, _CUT_OFF, _EXCLUSIVE = 0o1, 0o100, 0o1000, 0o200
#: What pytest names the folder that becomes its cache.
_BECOMING_CACHE = "pytest-cache-files-"
_MOST_KEPT = 200


class Attempts:
    """Notes what one command tries. `roots` are the folders that matter, absolute, links resolved.

    Where it is not needed, since the command is made of programs that only read, nothing is noted: putting the filter up takes 4 ms.

    `changed` are the paths in them that it wanted to make, change or remove. `opened` those that it would have been content to
    read: it asked for both, as databases do. `wants_network` and `wants_server`: it tried to reach another machine, or this one.
    """

    def __init__(self, roots: Sequence[str], *, is_needed: bool = True) -> None:
        self._roots, self._is_needed = roots, is_needed
        self.changed: dict[str, None] = {}
        self.opened: dict[str, None] = {}
        self.wants_network = self.wants_server = False
        self._thread: Thread | None = None
        self._is_blind = False
        self._mine: socket.socket | None = None
        self._its: socket.socket | None = None

    def watch(self, before_exec: Callable[[], None] | None) -> Callable[[], None] | None:
        """Return what the child has to do before the command, with the filter after it; as it was where this machine has none."""
        machine = os.uname().machine
        if not self._is_needed or sys.platform != "linux" or not is_known(machine):
            return before_exec
        self._mine, self._its = socket.socketpair()
        return _Install(telling(machine), _SYSCALL[machine], self._its, before_exec)

    @property
    def is_watching(self) -> bool:
        """Whether the kernel told of attempts at all: without, only the command's own words say what it ran into."""
        return self._thread is not None and not self._is_blind

    def begin(self) -> None:
        """Listen: the command was started. To be called also where it could not be."""
        if self._mine is None or self._its is None:
            return
        self._its.close()
        self._thread = Thread(target=self._listen, name="ybs-attempts", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait until all is noted: the command and all that it started have ended."""
        if self._thread is not None:
            self._thread.join(timeout=1)

    def _listen(self) -> None:
        assert self._mine is not None  # noqa: S101 - made before the thread
        with self._mine:
            listener = _received(self._mine)
        if listener is None:
            self._is_blind = True
            return
        numbers = changing(os.uname().machine)
        try:
            with suppress(OSError):  # kernels before 6.6 do not know it
                fcntl.ioctl(listener, _SET_FLAGS, _SYNC_WAKE_UP)
            poll = select.poll()
            poll.register(listener, select.POLLIN)
            while not poll.poll()[0][1] & select.POLLHUP:
                self._answer(listener, numbers)
        finally:
            os.close(listener)

    def _answer(self, listener: int, numbers: dict[int, str]) -> None:
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, notice)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):  # the caller is gone
                return
            raise
        number, pid, _, call, _, _, *arguments = _NOTICE.unpack(notice)
        try:
            with suppress(OSError, ValueError):  # it has ended, or its words make no sense
                name = numbers.get(call, "")
                (self._note if name else self._note_address)(pid, name, arguments)
        finally:
            with suppress(OSError):
                fcntl.ioctl(listener, _SEND, bytearray(_ANSWER.pack(number, 0, 0, _CONTINUE)))

    def _note(self, pid: int, name: str, arguments: list[int]) -> None:
        for folder, place in CHANGING[name][1]:
            path = _path(pid, arguments[place], None if folder is None else arguments[folder])
            if not any(lies_in(path, root) for root in self._roots) or _is_of_cache(path):
                continue
            flags = arguments[OPENING[name]] if name in OPENING else _WRITE_ONLY
            # `git diff` locks its index to keep what it found out about files, and goes on without.
            is_index = "/.git/" in path and path.endswith("/index.lock")
            is_content = is_index or _may_read_instead(pid, path, flags)
            kept = self.opened if is_content else self.changed
            if len(kept) < _MOST_KEPT:
                kept[path] = None

    def _note_address(self, pid: int, _: str, arguments: list[int]) -> None:
        address = _memory(pid, arguments[1], 28)
        family, port = struct.unpack("=H", address[:2])[0], struct.unpack(">H", address[2:4])[0]
        if family not in (_INET, _INET6):
            return
        host = address[4:8] if family == _INET else address[8:24]
        is_here = host[:1] == b"\x7f" if family == _INET else host == bytes(15) + b"\x01"
        if is_here and port != _NAME_SERVER_PORT:
            self.wants_server = True
        else:
            self.wants_network = True


class _Install:
    """Runs in the child between fork and exec: puts the filter up and hands over what listens to it."""

    def __init__(
        self, code: bytes, number: int, into: socket.socket, first: Callable[[], None] | None
    ) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._code = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("HP", len(code) // 8, ctypes.addressof(self._code))
        self._program = ctypes.create_string_buffer(program)
        self._syscall, self._prctl = library.syscall, library.prctl
        self._number, self._into, self._first = number, into, first

    def __call__(self) -> None:
        """Enter the sandbox, where that happens here, and install. Without a filter the command runs all the same."""
        if self._first is not None:
            self._first()
        self._prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        listener = self._syscall(
            self._number, _FILTER_MODE, _NEW_LISTENER, ctypes.byref(self._program)
        )
        if listener >= 0:
            given = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))]
            self._into.sendmsg([b"\0"], given)
            os.close(listener)


def _received(mine: socket.socket) -> int | None:
    """Return the descriptor that the child hands over; None where it had none."""
    try:
        _, given, _, _ = mine.recvmsg(1, socket.CMSG_SPACE(4))
    except OSError:
        return None
    return struct.unpack("i", given[0][2][:4])[0] if given else None


def _path(pid: int, address: int, folder: int | None) -> str:
    """Return an absolute path as the caller means it, links in it as they stand. Raises OSError."""
    path = os.fsdecode(_memory(pid, address, _LONGEST_PATH).partition(b"\0")[0])
    if path.startswith("/"):
        return normpath(path)
    is_here = folder is None or folder & 0xFFFFFFFF == _HERE
    start = f"/proc/{pid}/cwd" if is_here else f"/proc/{pid}/fd/{folder}"
    return normpath(join(os.readlink(start), path))  # noqa: PTH115 - at every call


def _memory(pid: int, address: int, size: int) -> bytes:
    """Return what stands in another process's memory; less at the end of a page that nothing follows. Raises OSError."""
    page = 4096 - address % 4096
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - at every call
        memory.seek(address)
        found = memory.read(min(size, page))
        if len(found) == page and size > page and b"\0" not in found:
            found += memory.read(size - page)
    return found


def _is_of_cache(path: str) -> bool:
    """Return whether a path lies in a cache, or is one: whoever cannot write there works without."""
    parts = path.split("/")
    return any(is_cache(part) or part.startswith(_BECOMING_CACHE) for part in parts)


def _may_read_instead(pid: int, path: str, flags: int) -> bool:
    """Return whether a call asks for reading too and would make nothing new of a file that is there."""
    if flags & (_WRITE_ONLY | _CUT_OFF) or (flags & _CREATE and flags & _EXCLUSIVE):
        return False
    return not flags & _CREATE or os.path.lexists(f"/proc/{pid}/root{path}")
