"""Typing while a turn runs: words for its next step, lines for its end, and what becomes of them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from stage import staged

from fake_session import FakeSession, hangs, says
from ybs.core.errors import YbsError
from ybs.core.events import TurnFinished, UserSaid
from ybs.session.reply import Outcome, Reply

pytestmark = pytest.mark.integration

UP = "\x1b[A"


class Gate:
    """A cue that plays on when it is opened."""

    def __init__(self, *, reads: bool = False) -> None:
        self.open = asyncio.Event()
        self._reads = reads

    async def __call__(self, session: FakeSession) -> None:
        await self.open.wait()
        if self._reads:
            for words in session.unread():
                session.emit(UserSaid(content=words))
        await says("the answer")(session)


async def test_words_are_echoed_where_the_turn_reads_them() -> None:
    gate = Gate(reads=True)
    session = FakeSession(gate)
    async with staged(session, prompt="go") as stage:
        await stage.until(lambda: session.is_busy)
        stage.keys("use make\r")
        await stage.sees("› use make  (read before the next step)")
        gate.open.set()
        await stage.sees("1.2k in")
        shown = stage.screen
        assert shown.index("› go") < shown.index("› use make\n") < shown.index("the answer")
        assert "next step" not in shown
        assert session.lines == ["go"]


async def test_words_that_came_too_late_are_the_next_line_before_all_that_wait() -> None:
    gate = Gate()
    session = FakeSession(gate, says("two"), says("three"))
    async with staged(session, prompt="go") as stage:
        await stage.until(lambda: session.is_busy)
        for keys in ("last\t", "too late\r", "and this\r"):
            stage.keys(keys)
            await stage.sees(f"› {keys[:-1]}  (")
        gate.open.set()
        await stage.until(lambda: stage.screen.count("1.2k in") == 3)
        assert session.lines == ["go", "too late\nand this", "last"]


async def test_up_takes_back_what_waits_and_a_stop_gives_back_the_rest() -> None:
    session = FakeSession(hangs)
    async with staged(session, prompt="go") as stage:
        await stage.sees("so far")
        for keys in ("one\r", "two\r", "three\t"):
            stage.keys(keys)
            await stage.sees(f"› {keys[:-1]}  (")
        for taken in ("three", "two"):
            stage.keys(UP)
            await stage.until(lambda t=taken: stage.terminal.window.draft.text == t)
            stage.keys("\x15")  # Ctrl-U
            await stage.until(lambda: stage.terminal.window.draft.text == "")
        assert session.steered == ["one"]
        stage.keys("\x03")
        await stage.sees("interrupted")
        await stage.until(lambda: stage.terminal.window.draft.text == "one")
        assert session.lines == ["go"]


async def test_a_command_that_shows_something_answers_beside_the_turn_and_others_wait() -> None:
    gate = Gate()
    session = FakeSession(gate)
    session.replies["/clear"] = Reply(text="The conversation was cleared; the session goes on.")
    async with staged(session, prompt="go") as stage:
        await stage.until(lambda: session.is_busy)
        stage.keys("/clear\r")
        await stage.sees("› /clear  (sent when this is done)")
        stage.keys("/status\r")
        await stage.sees("answer to /status")
        assert session.lines == ["go", "/status"]
        gate.open.set()
        await stage.sees("The conversation was cleared; the session goes on.")
        assert session.lines == ["go", "/status", "/clear"]


async def test_an_error_of_the_session_is_a_line_and_the_next_line_is_taken() -> None:
    async def breaks(_session: FakeSession) -> None:
        raise YbsError("the disk is full")

    session = FakeSession(breaks, says("better"))
    async with staged(session, prompt="go") as stage:
        await stage.sees("✗ the disk is full")
        stage.keys("again\r")
        await stage.sees("better")


async def test_a_diff_is_drawn_below_the_text_with_the_names_of_its_files() -> None:
    session = FakeSession()
    diff = (
        "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x\x1b[2J\n+y\n--- /dev/null\n+++ b.py\n@@ -0,0 +1 @@\n+z"
    )
    session.replies["/diff"] = Reply(text="The session changed:\n  a.py  +1 -1", diff=diff)
    async with staged(session) as stage:
        stage.keys("/diff\r")
        await stage.sees("+z")
        shown = stage.screen
    places = [
        shown.index(part)
        for part in ("The session changed:", "--- a.py", "-x␛[2J", "+y", "+++ b.py", "+z")
    ]
    assert places == sorted(places)


async def test_words_with_a_secret_that_is_not_let_go_come_back_before_what_waited() -> None:
    class Refusing(FakeSession):
        async def handle(self, line: str, images: Sequence[Any] = ()) -> Reply | Outcome:
            await super().handle(line)
            return Outcome(finished=TurnFinished(reason="error"), text="", unsent=line)

    session = Refusing(says("x"))
    async with staged(session) as stage:
        stage.keys("my secret\r")
        await stage.until(lambda: stage.terminal.window.draft.text == "my secret")
