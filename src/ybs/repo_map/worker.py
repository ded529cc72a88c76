"""The process that makes repo maps: it is started before it is needed, and waits for the question."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic, sleep

import msgspec

from ybs.core.decoding import from_json
from ybs.core.time_limits import time_limit
from ybs.repo_map.protocol import MOST_QUERY_CHARS, MapAnswer, MapQuery, MapReady, MapRequest, plain
from ybs.security.launcher import environ_away, python, spawn

#: How much less than others it asks of the processor.
NICE = 10
#: More than this it may not say.
MOST_BYTES = 4_000_000
#: So long the end of a killed one is waited for.
_END_SECONDS = 5.0
#: Handed on as they are: where things lie, the language, and the mark by which a ybs around this one ends all.
_KEPT = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "YBS_HOME", "TMPDIR", "RUN_BY_YBS", "PATH")
_KEPT_XDG = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")


class MapFailed(Exception):
    """There is no map; the words say why."""


class MapCrashed(MapFailed):
    """The process ended in the midst of its work, as where a parser could not bear a file."""


class MapChild:
    """One process. `ask` one question at a time, then `end`; both may be left out, but `kill` or `end` may not."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], job: MapRequest) -> None:
        """Start it, which takes well below a millisecond. Raises MapFailed."""
        self._said = bytearray()
        self._has_ended = self._is_gone = self._is_too_much = self._has_begun = False
        try:
            self.pid, self._in, self._out = _spawn(command, environ)
        except (OSError, ValueError) as error:
            raise MapFailed(f"its process cannot be started ({error})") from error
        self._send(job)

    @property
    def is_ready(self) -> bool:
        """Whether the index is as new as the files, so that an answer takes no longer than its making."""
        self._look()
        return self._has_begun or b"\n" in self._said

    async def ask(self, query: str, tokens: int) -> MapAnswer:
        """Ask and wait for the answer. Raises MapFailed."""
        self._send(MapQuery(query=plain(query[:MOST_QUERY_CHARS]), tokens=tokens))
        try:
            if not self._has_begun:
                from_json(await self._line(), MapReady)
                self._has_begun = True
            return from_json(await self._line(), MapAnswer)
        except msgspec.DecodeError as error:
            raise MapFailed("its process said something else") from error

    def _send(self, words: MapRequest | MapQuery | None) -> None:
        """Write a line. What has ended already says so when its answer is read."""
        data = msgspec.json.encode(words) + b"\n"
        with suppress(BrokenPipeError):
            try:
                is_whole = os.write(self._in, data) == len(data)
            except BlockingIOError:
                is_whole = False
            if not is_whole:
                self.kill()

    async def _line(self) -> bytes:
        while b"\n" not in self._said:
            if self._is_too_much:
                raise MapFailed(f"its process said more than {MOST_BYTES:,} bytes")
            if self._has_ended:
                raise MapCrashed("its process ended without an answer")
            await self._wait()
            self._look()
        line, _, self._said = self._said.partition(b"\n")
        return bytes(line)

    async def _wait(self) -> None:
        """Wait until there is something to read."""
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()
        loop.add_reader(self._out, arrived.set)
        try:
            await arrived.wait()
        finally:
            loop.remove_reader(self._out)

    def _look(self) -> None:
        """Read what there is, without waiting."""
        while not self._has_ended:
            try:
                data = os.read(self._out, 65_536)
            except BlockingIOError:
                return
            self._said += data
            if not data:
                self._has_ended = True
            elif len(self._said) > MOST_BYTES:
                self._has_ended = self._is_too_much = True
                self.kill()

    def kill(self) -> None:
        """End it now, with all that it started in its group."""
        if not self._is_gone:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self, *, grace_seconds: float = 0) -> None:
        """Wait until it has ended, which it may do by itself for so long, and let go of it."""
        if self._is_gone:
            return
        try:
            if grace_seconds:
                self._send(None)
                await self._end_by_itself(grace_seconds)
        finally:
            self.kill()
            self._is_gone = True
            os.close(self._in)
            os.close(self._out)
            await asyncio.to_thread(_reap, self.pid)

    async def _end_by_itself(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with time_limit(seconds):
                while not self._has_ended:
                    await self._wait()
                    self._said.clear()  # nothing more is expected
                    self._look()


def command() -> list[str]:
    """Return what starts the process. Raises MapFailed."""
    try:
        return python("-m", "ybs", "map", "--wait")
    except OSError as error:
        raise MapFailed(error.strerror) from error


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the process: no key, and nothing by which a project could have code run."""
    return environ_away(
        {name: environ[name] for name in (*_KEPT, *_KEPT_XDG) if name in environ}, for_ybs=True
    )


def _spawn(command: Sequence[str], environ: Mapping[str, str]) -> tuple[int, int, int]:
    """Start the command in a group of its own; return its number, its input and its output, which never block."""
    its_in, my_in = os.pipe()
    try:
        my_out, its_out = os.pipe()
    except OSError:
        os.close(its_in)
        os.close(my_in)
        raise
    actions = [
        (os.POSIX_SPAWN_DUP2, its_in, 0),
        (os.POSIX_SPAWN_DUP2, its_out, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        pid = spawn(command, environ, *actions, setpgroup=0)
    except BaseException:
        os.close(my_in)
        os.close(my_out)
        raise
    finally:
        os.close(its_in)
        os.close(its_out)
    with suppress(OSError):  # it may have ended already
        os.setpriority(os.PRIO_PROCESS, pid, NICE)
    for mine in (my_in, my_out):
        os.set_blocking(mine, False)
    return pid, my_in, my_out


def _reap(pid: int) -> None:
    """Wait for the end of a killed process, but not for ever: a disk can hold one up."""
    until = monotonic() + _END_SECONDS
    with suppress(ChildProcessError):  # somebody else waits for every child
        while os.waitpid(pid, os.WNOHANG)[0] == 0 and monotonic() < until:
            sleep(0.002)
