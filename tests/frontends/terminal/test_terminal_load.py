"""The terminal under load, and what it may never lose: keys, lines, what was on the screen."""

import asyncio

import pytest
from stage import staged

from fake_session import FakeSession, hangs, says
from ybs.core.events import StateChanged

pytestmark = pytest.mark.integration


async def test_a_thousand_keys_and_a_thousand_lines_are_kept_in_their_order() -> None:
    session = FakeSession(hangs)
    async with staged(session, prompt="go") as stage:
        await stage.sees("so far")
        typed = "".join(f"{number:03}" for number in range(334))
        for start in range(0, len(typed), 100):
            stage.keys(typed[start : start + 100])
        await stage.until(lambda: len(stage.terminal.window.draft.text) == len(typed))
        assert stage.terminal.window.draft.text == typed
    session = FakeSession(hold := Hold())
    async with staged(session, prompt="go") as stage:
        await stage.until(lambda: session.is_busy)
        for number in range(1000):
            stage.terminal.work.queue(f"/do {number}")
        await stage.sees("› 996 more  (sent when this is done)")
        hold.end.set()
        await stage.until(lambda: len(session.lines) == 1001)
    assert session.lines[1:] == [f"/do {number}" for number in range(1000)]


class Hold:
    """A turn that ends when it is told to."""

    def __init__(self) -> None:
        self.end = asyncio.Event()

    async def __call__(self, _session: FakeSession) -> None:
        await self.end.wait()


async def test_ctrl_l_empties_the_screen_and_loses_nothing() -> None:
    session = FakeSession(says("an answer"))
    async with staged(session, prompt="go", rows=12) as stage:
        await stage.sees("1.2k in")
        stage.keys("half a line\x0c")
        await stage.until(lambda: "\x1b[2J" in stage.raw)
        await stage.sees("› half a line")
        assert stage.screen.index("an answer") < stage.screen.index("› half a line")
        assert session.lines == ["go"]


async def test_the_bottom_line_tells_of_jobs_and_that_they_have_ended() -> None:
    session = FakeSession(says("x"))
    async with staged(session) as stage:
        session.jobs = 2
        stage.keys("/do\r")
        await stage.sees("  2 jobs  ")
        session.jobs = 0
        session.emit(StateChanged())  # it is told when one has ended
        await stage.until(lambda: "jobs" not in stage.screen.split("\n")[-1])
