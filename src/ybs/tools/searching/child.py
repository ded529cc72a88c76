"""A program run to its end or to a deadline, in a thread: for searching, which has to be stopped from outside."""

import os
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, TimeoutExpired
from time import monotonic
from typing import IO

from ybs.security.launcher import start
from ybs.security.sandbox.child import OPENING, READING, is_stuck
from ybs.security.sandbox.launch import Launch
from ybs.tools.searching.walk import Deadline

#: What a program may hold of memory that is its own, in bytes. `rg` holds a line as a whole, however long it is.
MOST_MEMORY = 400_000_000
_LOOK_SECONDS = 0.05  # between two looks at the deadline
_STUCK_SECONDS = 0.4  # between two looks at whether a part of it waits at a named pipe


class ChildOutput:
    """What a program wrote, and its exit code: -9 where it was killed."""

    __slots__ = ("code", "errors", "text")

    def __init__(self, text: bytes, errors: bytes, code: int) -> None:
        self.text, self.errors, self.code = text, errors, code


def output_of(
    command: Sequence[str],
    *,
    folder: str | Path,
    deadline: Deadline,
    data: bytes | None = None,
    launch: Launch | None = None,
) -> ChildOutput:
    """Run the program, by `launch` where there is one; at the deadline it is killed.

    Raises OSError where it cannot be started.
    """
    own = Launch(command, {"PATH": os.defpath})
    if launch is not None:
        own = Launch(launch.argv, own.environ, launch.descriptors, bounded(launch.before_exec))
    # Of a pipe each small write of the program would be a read here, which costs as much as the search.
    with (
        _scratch() as written,
        start(
            own,
            folder=folder,
            stdin=DEVNULL if data is None else PIPE,
            stdout=written,
            stderr=PIPE,
            has_own_group=False,
        ) as child,
    ):
        if data is not None and child.stdin is not None:
            # `communicate` forgets what it has not sent when its time is over, so it does not send.
            threading.Thread(target=_send, args=(child.stdin, data), daemon=True).start()
            child.stdin = None
        waiting = _Waiting(child.pid, READING if data is None else OPENING)
        while True:
            try:
                _, errors = child.communicate(timeout=_LOOK_SECONDS)
            except TimeoutExpired:
                if deadline.is_over or waiting.is_stuck:
                    child.kill()
            else:
                written.seek(0)
                return ChildOutput(written.read(), errors, child.returncode)


def bounded(before_exec: Callable[[], None] | None) -> Callable[[], None]:
    """Return what bounds the memory of a program just before it is started; it is ended where it wants more.

    The program and what it starts may have so much each; those of Python that take `data` bound themselves.
    """
    import resource  # only for a search

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)

    def prepare() -> None:
        if before_exec is not None:
            before_exec()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))  # last: this process may have more

    return prepare


class _Waiting:
    """Whether a process hangs at a named pipe; where the system does not say, it does not.

    `places` are those in the system where nothing that it is meant to do makes it wait.
    """

    def __init__(self, pid: int, places: Collection[bytes]) -> None:
        self._pid, self._places = pid, places
        self._next_look, self._was_stuck = monotonic() + _STUCK_SECONDS, False

    @property
    def is_stuck(self) -> bool:
        """Whether it waited at a named pipe now and at the look before."""
        if (now := monotonic()) < self._next_look:
            return False
        was_stuck, self._was_stuck = self._was_stuck, is_stuck(self._pid, self._places)
        self._next_look = now + _STUCK_SECONDS
        return was_stuck and self._was_stuck


def _scratch() -> IO[bytes]:
    """Return a file without a name, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("ybs-search"), "w+b", buffering=0)  # noqa: PTH123 - a descriptor
    from tempfile import TemporaryFile  # Linux does not need it

    return TemporaryFile(buffering=0)


def _send(pipe: IO[bytes], data: bytes) -> None:
    with suppress(OSError), pipe:  # it may have been killed
        pipe.write(data)
