"""The pipes of a command: how they are read, and that none is left open."""

import asyncio
import fcntl
import os
from errno import EAGAIN
from typing import Any

import pytest

from processes import open_descriptors
from rows import every_row
from ybs.tools.shell import output as output_module
from ybs.tools.shell import process as room
from ybs.tools.shell.output import Live, Output
from ybs.tools.shell.process import Pump


def live_of(monkeypatch: pytest.MonkeyPatch, shown: list[str]) -> Live:
    monkeypatch.setattr(output_module, "LIVE_CHARS", 3)
    return Live(shown.append)


async def test_one_that_is_abandoned_leaves_nothing_open():
    before = open_descriptors()
    for streams in (1, 2):
        pump = Pump(Output(10), None, streams=streams)
        assert list(pump._reading_ends.values()) == list(range(streams))
        assert len(pump.writing_ends) == streams
        assert not any(os.get_blocking(each) for each in pump._reading_ends)
        pump.stop()
        pump.stop()
        pump.abandon()
        assert (pump.writing_ends, pump._reading_ends) == ([], {})
    assert open_descriptors() == before


async def test_without_a_thread_nothing_is_read(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no more threads")

    before = open_descriptors()
    monkeypatch.setattr(room.threading, "Thread", refuse)
    pump = Pump(Output(10), None, streams=1)
    with pytest.raises(OSError, match=os.strerror(EAGAIN)) as caught:
        pump.listen()
    assert caught.value.errno == EAGAIN
    pump.abandon()
    assert open_descriptors() == before


@every_row(
    ("data", "is_open", "is_widened"),
    [(b"x", True, False), (b"", False, False), (b"x" * 65_536, True, True), (b"x" * 65_535, True, False), (None, True, False)],
)  # fmt: skip
async def test_a_pipe_that_was_full_is_made_to_hold_more(
    monkeypatch: pytest.MonkeyPatch, data: bytes | None, is_open: bool, is_widened: bool
):
    widened: list[int] = []

    def read(_descriptor: int, most: int) -> bytes:
        assert most >= 65_536
        if data is None:
            raise BlockingIOError
        return data

    monkeypatch.setattr(room, "_read_some", read)
    monkeypatch.setattr(room, "_widen", widened.append)
    output = Output(10)
    pump = Pump(output, None, streams=2)
    last = max(pump._reading_ends)
    assert pump._read(last) is is_open
    assert widened == [last] * is_widened
    assert (output.stdout.size, output.stderr.size) == (0, len(data or b""))
    assert (pump._reads > 0, pump._is_busy) == (data is not None, False)
    pump.abandon()


@pytest.mark.skipif(not hasattr(fcntl, "F_GETPIPE_SZ"), reason="NOT TESTED: needs Linux")
def test_a_wide_pipe_holds_a_million_bytes():
    ends = os.pipe()
    room._widen(ends[0])
    assert fcntl.fcntl(ends[0], fcntl.F_GETPIPE_SZ) == 1 << 20
    for end in ends:
        os.close(end)


async def test_what_came_is_told_on_the_loop(monkeypatch: pytest.MonkeyPatch):
    shown: list[str] = []
    live = live_of(monkeypatch, shown)
    pump = Pump(Output(10), live, streams=1)
    assert pump._patience_ms is None
    os.write(pump.writing_ends[0], b"abcd\n")
    pump._read(next(iter(pump._reading_ends)))
    await asyncio.sleep(0)
    assert shown == ["abc\n[only some lines of the rest are shown here]\n"]
    assert pump._patience_ms == 500
    pump._live = None
    assert pump._patience_ms is None
    pump.abandon()


async def test_lines_that_wait_are_shown_when_nothing_more_comes(monkeypatch: pytest.MonkeyPatch):
    shown: list[str] = []
    is_shown = asyncio.Event()

    def show(text: str) -> None:
        shown.append(text)
        if len(shown) == 2:
            is_shown.set()

    live = live_of(monkeypatch, shown)
    live._show = show
    monkeypatch.setattr(room, "LOOK_SECONDS", 0.001)
    pump = Pump(Output(10), live, streams=1)
    writing = os.dup(pump.writing_ends[0])
    pump.listen()
    os.write(writing, b"abcd\nmore\n")
    async with asyncio.timeout(5):
        await is_shown.wait()
    assert shown == ["abc\n[only some lines of the rest are shown here]\n", "\nd\nmore\n"]
    os.close(writing)
    async with asyncio.timeout(5):
        await pump.ended.wait()
    pump.stop()


async def test_the_end_is_waited_for_as_long_as_something_comes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(room, "_MOST_WAITS", 1_000_000_000)  # so many would never end
    pump: Any = Pump(Output(10), None, streams=1)
    assert not await pump.ends(0.001)
    pump._is_busy = True
    asyncio.get_running_loop().call_later(0.004, pump.ended.set)
    assert await pump.ends(0.002)
    pump.abandon()


async def test_it_is_waited_for_while_pieces_come():
    pump: Any = Pump(Output(10), None, streams=1)

    def come() -> None:
        pump._reads += 1

    asyncio.get_running_loop().call_later(0.001, come)
    asyncio.get_running_loop().call_later(0.006, pump.ended.set)
    assert await pump.ends(0.004)
    pump.abandon()
