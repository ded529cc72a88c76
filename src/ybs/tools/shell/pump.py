"""The pipes that a process writes into, emptied by a thread, so that neither the process nor the terminal waits."""

import asyncio
import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from errno import EAGAIN

from ybs.tools.shell.output import LOOK_SECONDS, Live, Output

_CHUNK = 1_000_000
_SMALL_PIPE = 65_536  # as the system makes them
_MOST_WAITS = 10  # for output that keeps coming from what was left running
_read_some = os.read  # a seam for tests


class Pump:
    """One pipe for each stream of the output. The thread owns the reading ends and closes them."""

    def __init__(self, output: Output, live: Live | None, *, streams: int) -> None:
        self._output, self._live = output, live
        self._loop = asyncio.get_running_loop()
        self._wake, self._waker = os.pipe()
        self._reading_ends: dict[int, int] = {}
        self.writing_ends: list[int] = []
        for stream in range(streams):
            reading_end, writing_end = os.pipe()
            os.set_blocking(reading_end, False)
            self._reading_ends[reading_end] = stream
            self.writing_ends.append(writing_end)
        self._is_listening = self._is_stopped = self._is_busy = False
        self._reads = 0
        self.ended = asyncio.Event()

    def listen(self) -> None:
        """Begin to read; from now on only the process holds the other ends. Raises OSError."""
        self._close_writing_ends()
        try:
            threading.Thread(target=self._run, name="ybs-output", daemon=True).start()
        except RuntimeError as error:  # there may be no more threads
            raise OSError(EAGAIN, os.strerror(EAGAIN)) from error
        self._is_listening = True

    def stop(self) -> None:
        """Read no more, even if somebody still holds a pipe open. Does not wait; a second time does nothing."""
        if not self._is_stopped:
            self._is_stopped = True
            os.close(self._waker)

    def abandon(self) -> None:
        """Let go of everything: nothing could be started."""
        self.stop()
        self._close_writing_ends()
        if not self._is_listening:
            self._close()

    async def ends(self, seconds: float) -> bool:
        """Wait for the end of the output, a moment longer as long as something comes; return whether it came."""
        for _ in range(_MOST_WAITS):
            before = self._reads
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.ended.wait()
            if self.ended.is_set() or (before == self._reads and not self._is_busy):
                break
        return self.ended.is_set()

    def _run(self) -> None:
        try:
            poll = select.poll()
            poll.register(self._wake, select.POLLIN)
            for descriptor in self._reading_ends:
                poll.register(descriptor, select.POLLIN)
            while self._reading_ends:
                ready = [descriptor for descriptor, _ in poll.poll(self._patience_ms)]
                if not ready and self._live is not None:
                    self._tell(self._live, self._live.look())
                for descriptor in ready:  # before the end too: what was written is not lost
                    if descriptor != self._wake and not self._read(descriptor):
                        poll.unregister(descriptor)
                        os.close(descriptor)
                        del self._reading_ends[descriptor]
                if self._wake in ready:
                    break
        finally:
            self._output.close()
            self._close()
            self._tell(self.ended.set)

    def _read(self, descriptor: int) -> bool:
        """Take what is there; return whether more may come."""
        try:
            data = _read_some(descriptor, _CHUNK)
        except BlockingIOError:
            return True
        self._reads += 1
        stream = self._reading_ends[descriptor]
        if len(data) == _SMALL_PIPE:
            _widen(descriptor)
        if data:
            self._is_busy = True  # the disk may take its time
            self._output.add(stream, data)
            self._is_busy = False
        if self._live is not None and (text := self._live.read(stream, data)):
            self._tell(self._live, text)
        return bool(data)

    @property
    def _patience_ms(self) -> float | None:
        """How long to wait for more before what came is shown."""
        return 1000 * LOOK_SECONDS if self._live is not None and self._live.waits else None

    def _tell(self, function: Callable[..., object], *arguments: str) -> None:
        with suppress(RuntimeError):  # the loop is closed; nobody waits there any more
            self._loop.call_soon_threadsafe(function, *arguments)

    def _close_writing_ends(self) -> None:
        while self.writing_ends:
            os.close(self.writing_ends.pop())

    def _close(self) -> None:
        for descriptor in (*self._reading_ends, self._wake):
            os.close(descriptor)
        self._reading_ends = {}


def _widen(descriptor: int) -> None:
    """Let a pipe that was full hold more, so that less often somebody waits."""
    import fcntl  # only long outputs need it

    # Only Linux has it, and others may use up what the person may have.
    with suppress(OSError, AttributeError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, 1 << 20)
