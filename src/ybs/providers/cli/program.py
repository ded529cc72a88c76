"""The program behind a CLI agent: started in a process group of its own, read line by line, ended for certain."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from subprocess import PIPE
from typing import Final

from ybs.security.launcher import start_in_loop
from ybs.security.sandbox.launch import Launch

_CHUNK_BYTES: Final = 65_536
LONGEST_LINE_BYTES: Final = 16 * 1024 * 1024
#: So much of what it writes to its standard error is kept: the end.
_STDERR_BYTES: Final = 4_096
#: A program that has said its last word may close its files for so long, in seconds.
_ENDING_SECONDS: Final = 2.0


class TooLong(Exception):
    """A line is longer than any answer."""


class Program:
    """One run of a program. `run` gives its lines; afterwards `stderr` and `exit_code` say how it went."""

    def __init__(self, argv: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
        self._argv, self._folder, self._environ = argv, folder, environ
        self._process: asyncio.subprocess.Process | None = None
        self._stderr = bytearray()
        self.exit_code: int | None = None

    @property
    def stderr(self) -> str:
        """The end of what it wrote to its standard error."""
        return bytes(self._stderr).decode("utf-8", "replace").strip()

    async def run(self, words: bytes, *, silence_seconds: float) -> AsyncGenerator[bytes, None]:
        """Start it with `words` as its standard input and yield its lines, the last one with or without an end.

        Raises OSError where it cannot be started, TimeoutError where it is silent for so long, and TooLong. Closing the generator kills it and all that it started.
        """
        launch = Launch(self._argv, self._environ)
        process = self._process = await start_in_loop(
            launch, folder=self._folder, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        work = [asyncio.create_task(self._feed(words)), asyncio.create_task(self._listen())]
        try:
            async with aclosing(self._lines(process.stdout, silence_seconds)) as lines:
                async for line in lines:
                    yield line
            await self.let_end()
        finally:
            await self._end(work)

    async def _lines(
        self, stdout: asyncio.StreamReader | None, seconds: float
    ) -> AsyncGenerator[bytes, None]:
        assert stdout is not None  # noqa: S101 - a pipe was asked for
        rest = bytearray()
        while True:
            async with asyncio.timeout(seconds):
                chunk = await stdout.read(_CHUNK_BYTES)
            if not chunk:
                break
            rest += chunk
            if len(rest) > LONGEST_LINE_BYTES:
                raise TooLong
            if b"\n" in chunk:
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    yield bytes(line)
        if rest:
            yield bytes(rest)

    async def _feed(self, words: bytes) -> None:
        """Write the words; a program that does not read them has its reasons, and says them."""
        assert self._process is not None  # noqa: S101 - started
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        with suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.write(words)
            await self._process.stdin.drain()
        self._process.stdin.close()

    async def _listen(self) -> None:
        assert self._process is not None  # noqa: S101 - started
        assert self._process.stderr is not None  # noqa: S101 - a pipe was asked for
        while chunk := await self._process.stderr.read(_CHUNK_BYTES):
            self._stderr = (self._stderr + chunk)[-_STDERR_BYTES:]

    async def let_end(self) -> None:
        """Give a program that has said its last word the time to write down what it keeps."""
        assert self._process is not None  # noqa: S101 - started
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDING_SECONDS):
                await self._process.wait()

    async def _end(self, work: "Sequence[asyncio.Task[None]]") -> None:
        """Kill the whole group: what the program started must not go on after it."""
        assert self._process is not None  # noqa: S101 - started
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.exit_code = await self._process.wait()
        # What it started and put into another group may hold the pipes: they are not waited for.
        _, waiting = await asyncio.wait(work, timeout=0.1)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
