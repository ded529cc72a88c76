"""A shell command as a process: no input, a group of its own, its output kept within bounds, its end certain."""

import asyncio
import codecs
import errno
import os
import re
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, Popen

from msgspec import Struct

from ybs.tools.cut import note_of

GRACE_SECONDS = 2.0  # between the polite signal and the other one
PIPE_SECONDS = 0.2  # how long output is waited for when the shell has ended
LIVE_CHARS = 200_000  # beyond this the screen shows no more of one command
_CHUNK = 65_536
_CAN_LOOK = hasattr(
    os, "waitid"
)  # to see that a process ended without burying it; not on every macOS
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|KEY|AUTH|CRED|^YBS_", re.IGNORECASE)
#: Variables that make a shell or an interpreter run something first.
_RUNS_FIRST = frozenset(
    {"BASH_ENV", "ENV", "LD_PRELOAD", "LD_AUDIT", "PYTHONSTARTUP", "NODE_OPTIONS", "PERL5OPT"}
    | {"RUBYOPT", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "PROMPT_COMMAND"}
)
_SET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a command gets: without secrets, and so that nothing waits for a person."""
    kept = {
        name: value
        for name, value in environ.items()
        if not _SECRET.search(name) and name not in _RUNS_FIRST
    }
    return {**kept, **_SET}


_read_some = os.read  # a seam: asyncio itself reads with `os.read`


class Kept:
    """Output of any length: its beginning and its end are kept, in memory that does not grow."""

    def __init__(self, most_chars: int) -> None:
        self._half = max(most_chars // 2, 1)
        self._head = ""
        self._tail: list[str] = []
        self._tail_size = 0
        self.size = self._lines = 0

    def add(self, text: str) -> None:
        """Take the next piece."""
        self.size += len(text)
        self._lines += text.count("\n")
        room = self._half - len(self._head)
        if room > 0:
            self._head, text = self._head + text[:room], text[room:]
        if text:
            self._tail.append(text)
            self._tail_size += len(text)
            if self._tail_size > 4 * self._half + _CHUNK:
                self._tail = ["".join(self._tail)[-self._half :]]
                self._tail_size = self._half

    def text(self, limit: int | None = None) -> str:
        """Return what is kept, or less of it, with a note where something is missing."""
        half = self._half if limit is None else max(min(self._half, limit // 2), 1)
        whole = self._head + "".join(self._tail)
        if self.size <= 2 * half:
            return whole
        head, tail = whole[:half], whole[-half:]
        lines = self._lines - head.count("\n") - tail.count("\n")
        return f"{head}\n{note_of(self.size - 2 * half, lines)}\n{tail}"


class Ended(Struct, frozen=True, kw_only=True):
    """How a command ended. `exit_code` is negative for the signal that ended the shell."""

    exit_code: int
    stdout: Kept
    stderr: Kept
    timed_out: bool = False
    left_running: bool = False


async def run_command(
    command: str,
    *,
    folder: Path,
    environ: Mapping[str, str],
    timeout_seconds: float,
    most_chars: int,
    print_live: Callable[[str], None],
) -> Ended:
    """Run `sh -c command` to its end, or to the end of its time; nothing it started is left in its group.

    Raises OSError where it cannot be started. Cancelling it ends the command first.
    """
    live = _Live(print_live)
    out, err = _Pipe(most_chars, live), _Pipe(most_chars, live)
    timed_out = left_running = False
    shell = _started(command, folder, environ, out, err)
    try:
        async with asyncio.timeout(timeout_seconds):
            await shell.ended.wait()
        left_running = not await _both_end(out, err)
    except TimeoutError:
        timed_out = True
    finally:
        try:
            await shell.end()
            await _both_end(out, err)
        finally:
            out.close()
            err.close()
    return Ended(
        exit_code=shell.exit_code,
        stdout=out.kept,
        stderr=err.kept,
        timed_out=timed_out,
        left_running=left_running,
    )


def _started(
    command: str, folder: Path, environ: Mapping[str, str], out: "_Pipe", err: "_Pipe"
) -> "_Shell":
    try:
        process = Popen(
            ("/bin/sh", "-c", command),
            stdin=DEVNULL,
            stdout=out.writing_end,
            stderr=err.writing_end,
            cwd=folder,
            env=dict(environ),
            start_new_session=True,
        )
        shell = _Shell(process)
    except BaseException:
        out.close()
        err.close()
        raise
    out.listen()
    err.listen()
    return shell


class _Shell:
    """A running shell with a thread that waits for it, whatever becomes of the loop or of the caller.

    The thread leaves the ended shell unburied until nothing will be signalled any more: as long as it lies
    there, the number of its group can mean no other one.
    """

    def __init__(self, process: Popen[bytes]) -> None:
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._may_be_buried = threading.Event()
        self.ended, self._is_buried = asyncio.Event(), asyncio.Event()
        try:
            threading.Thread(target=self._wait, name="ybs-shell", daemon=True).start()
        except RuntimeError as error:  # there may be no more threads
            self._signal(signal.SIGKILL)
            process.wait()
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error

    @property
    def exit_code(self) -> int:
        """The code, or minus the signal, once it has ended."""
        code = self._process.returncode
        return -signal.SIGKILL if code is None else code

    def _wait(self) -> None:
        if _CAN_LOOK:
            with suppress(ChildProcessError):  # somebody else waited for it
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            self._tell(self.ended)
            self._may_be_buried.wait()
        self._process.wait()
        self._tell(self.ended)
        self._tell(self._is_buried)

    def _tell(self, event: asyncio.Event) -> None:
        with suppress(RuntimeError):  # the loop is closed; nobody waits there any more
            self._loop.call_soon_threadsafe(event.set)

    async def end(self) -> None:
        """End the whole group, politely where the shell still runs; nothing of it is left afterwards.

        A cancellation in here only takes the politeness away.
        """
        try:
            if not self.ended.is_set():
                self._signal(signal.SIGTERM)
                with suppress(TimeoutError):
                    async with asyncio.timeout(GRACE_SECONDS):
                        await self.ended.wait()
        finally:
            self._signal(signal.SIGKILL)
            self._may_be_buried.set()
        await self._is_buried.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


class _Live:
    """Passes pieces of output on to the screen, up to a bound."""

    def __init__(self, print_live: Callable[[str], None]) -> None:
        self._print, self._left = print_live, LIVE_CHARS

    def __call__(self, text: str) -> None:
        if self._left <= 0:
            return
        self._print(text[: self._left])
        self._left -= len(text)
        if self._left <= 0:
            self._print("\n[no more of this output is shown here]\n")


class _Pipe:
    """One output of a process, read as it comes."""

    def __init__(self, most_chars: int, live: _Live) -> None:
        self._reading_end, self.writing_end = os.pipe()
        os.set_blocking(self._reading_end, False)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._live = live
        self.kept = Kept(most_chars)
        self.ended = asyncio.Event()

    def listen(self) -> None:
        """Begin to read; from now on only the process holds the other end."""
        os.close(self.writing_end)
        self.writing_end = -1
        asyncio.get_running_loop().add_reader(self._reading_end, self._read)

    def _read(self) -> None:
        try:
            data = _read_some(self._reading_end, _CHUNK)
        except BlockingIOError:
            return
        text = self._decoder.decode(data, final=not data)
        if text:
            self.kept.add(text)
            self._live(text)
        if not data:
            self._stop()

    def _stop(self) -> None:
        asyncio.get_running_loop().remove_reader(self._reading_end)
        self.ended.set()

    def close(self) -> None:
        """Let go of both ends."""
        self._stop()
        for descriptor in (self._reading_end, self.writing_end):
            with suppress(OSError):
                os.close(descriptor)


async def _both_end(out: _Pipe, err: _Pipe) -> bool:
    """Wait a moment for the end of both outputs; tell whether it came."""
    try:
        async with asyncio.timeout(PIPE_SECONDS):
            await out.ended.wait()
            await err.ended.wait()
    except TimeoutError:
        return False
    return True
