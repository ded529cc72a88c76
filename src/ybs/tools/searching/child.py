"""Programs run to their end or to a deadline, in a thread: for searching, which has to be stopped from outside."""

import os
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from time import monotonic
from typing import IO, TYPE_CHECKING

from ybs.security.sandbox.stuck import OPENING, READING, is_stuck
from ybs.tools.searching.walk import Deadline

if TYPE_CHECKING:
    from ybs.security.sandbox.launch import Launch

#: What a program may hold of memory that is its own, in bytes. `rg` holds a line as a whole, however long it is.
MOST_MEMORY = 400_000_000
_LOOK_SECONDS = 0.05  # between two looks at the deadline
_IDLE_SECONDS = (
    3.0  # after which a program that does nothing is given up: it waits for a device, say
)
_STUCK_SECONDS = (
    0.4  # between two looks at whether a part of it waits at a named pipe, while others go on
)


class Output:
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
    launch: "Launch | None" = None,
) -> Output:
    """Run the program, by `launch` where there is one; at the deadline it is killed.

    Raises OSError where it cannot be started.
    """
    # Of a pipe each small write of the program would be a read here, which costs as much as the search.
    with (
        _scratch() as written,
        Popen(
            launch.argv if launch else command,
            cwd=folder,
            env={"PATH": os.defpath},
            stdin=DEVNULL if data is None else PIPE,
            stdout=written,
            stderr=PIPE,
            pass_fds=launch.descriptors if launch else (),
            preexec_fn=launch.before_exec if launch else None,
        ) as child,
    ):
        if data is not None and child.stdin is not None:
            # `communicate` forgets what it has not sent when its time is over, so it does not send.
            threading.Thread(target=_send, args=(child.stdin, data), daemon=True).start()
            child.stdin = None
        if data is None:  # the other ones, of Python, bound themselves
            _limit(child.pid)
        idle = _Idleness(child.pid, READING if data is None else OPENING)
        while True:
            try:
                _, errors = child.communicate(timeout=_LOOK_SECONDS)
            except TimeoutExpired:
                if deadline.is_over or idle.is_long or idle.is_stuck:
                    child.kill()
            else:
                written.seek(0)
                return Output(written.read(), errors, child.returncode)


def _limit(pid: int) -> None:
    """Bound the memory of a process, where the system can do that from outside; it is ended where it wants more."""
    import resource  # only for a search

    if prlimit := getattr(resource, "prlimit", None):  # Linux alone has it
        with suppress(OSError):  # it has ended
            prlimit(pid, resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
            prlimit(pid, resource.RLIMIT_CORE, (0, 0))


class _Idleness:
    """Whether a process has used no processor for long, or hangs; where the system does not say, it has not.

    `places` are those in the system where nothing that it is meant to do makes it wait.
    """

    def __init__(self, pid: int, places: Collection[bytes]) -> None:
        self._file, self._pid, self._places = f"/proc/{pid}/stat", pid, places
        self._used: list[bytes] = []
        self._since = monotonic()
        self._next_look, self._was_stuck = self._since + _STUCK_SECONDS, False

    @property
    def is_stuck(self) -> bool:
        """Whether it waited at a named pipe now and at the look before."""
        if (now := monotonic()) < self._next_look:
            return False
        was_stuck, self._was_stuck = self._was_stuck, is_stuck(self._pid, self._places)
        self._next_look = now + _STUCK_SECONDS
        return was_stuck and self._was_stuck

    @property
    def is_long(self) -> bool:
        """Whether it has used none for so long that it does nothing any more."""
        try:
            with open(self._file, "rb") as file:  # noqa: PTH123 - a Path is slower
                used = file.read().rpartition(b")")[2].split()[11:13]
        except OSError:
            return False
        if used != self._used:
            self._used, self._since = used, monotonic()
        return monotonic() - self._since > _IDLE_SECONDS


def _scratch() -> IO[bytes]:
    """Return a file without a name, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("ybs-search"), "w+b", buffering=0)  # noqa: PTH123 - a descriptor
    from tempfile import TemporaryFile  # Linux does not need it

    return TemporaryFile(buffering=0)


def _send(pipe: IO[bytes], data: bytes) -> None:
    with suppress(OSError), pipe:  # it may have been killed
        pipe.write(data)


def outputs_of(
    command: Sequence[str], requests: Sequence[bytes], *, folder: str | Path, deadline: Deadline
) -> list[Output]:
    """Run the program once for each request, side by side. Raises OSError where one cannot be started."""
    outputs: list[Output | OSError] = [OSError("not started")] * len(requests)

    def answer(number: int) -> None:
        try:
            outputs[number] = output_of(
                command, folder=folder, deadline=deadline, data=requests[number]
            )
        except OSError as error:
            outputs[number] = error

    threads = [threading.Thread(target=answer, args=(n,)) for n in range(1, len(requests))]
    for thread in threads:
        thread.start()
    answer(0)
    for thread in threads:
        thread.join()
    done: list[Output] = []
    for output in outputs:
        if isinstance(output, OSError):
            raise output
        done.append(output)
    return done
