"""A program beside the event loop: its pipes as streams, and its end as soon as it has ended, whoever still holds a pipe.

`asyncio.subprocess` waits for the pipes too (https://github.com/python/cpython/issues/119710), which never close where something
that the program started lives on with them; and it hangs where the loop ends while a program begins
(https://github.com/python/cpython/issues/125502).
"""

import asyncio
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from contextlib import suppress
from threading import Thread
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen


class LoopProcess:
    """A program that runs, or has run. Its streams are there where pipes were asked for."""

    stdin: StreamWriter | None = None
    stdout: StreamReader | None = None
    stderr: StreamReader | None = None

    def __init__(self, process: "Popen[bytes]") -> None:
        self._process, self._ended = process, asyncio.Event()
        self._open: list[asyncio.BaseTransport] = []
        loop = asyncio.get_running_loop()

        def bury() -> None:
            process.wait()
            with suppress(RuntimeError):  # the loop is closed; nobody waits there any more
                loop.call_soon_threadsafe(self._ended.set)

        Thread(target=bury, name="ybs-wait", daemon=True).start()

    @classmethod
    async def of(cls, process: "Popen[bytes]", limit: int) -> "LoopProcess":
        """Take over a program that has just been started, with lines of `limit` bytes at most; cancelled, kill it."""
        made = cls(process)
        pipes = [process.stdin, process.stdout, process.stderr]
        try:
            made.stdin = await made._writer(pipes)
            made.stdout = await made._reader(pipes, limit)
            made.stderr = await made._reader(pipes, limit)
        except BaseException:
            process.kill()
            made.close()
            for pipe in filter(None, pipes):
                pipe.close()
            raise
        return made

    async def _writer(self, pipes: list[IO[bytes] | None]) -> StreamWriter | None:
        if (pipe := pipes.pop(0)) is None:
            return None
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: StreamReaderProtocol(StreamReader()), pipe
        )
        self._open.append(transport)
        return StreamWriter(transport, protocol, None, loop)

    async def _reader(self, pipes: list[IO[bytes] | None], limit: int) -> StreamReader | None:
        if (pipe := pipes.pop(0)) is None:
            return None
        reader = StreamReader(limit)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: StreamReaderProtocol(reader), pipe
        )
        self._open.append(transport)
        return reader

    @property
    def pid(self) -> int:
        """Its number, which is another's once it has ended."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait until it has ended and return its exit code."""
        await self._ended.wait()
        return self._process.returncode

    def give(self, words: bytes) -> None:
        """Have it read these words and no more, as fast as it does; one that does not read them has its reasons."""
        if self.stdin is not None:
            self.stdin.write(words)
            self.stdin.close()  # once all is written

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """Have the system end it."""
        self._process.kill()

    def close(self) -> None:
        """Close its pipes; what nobody read is gone."""
        for transport in self._open:
            transport.close()
