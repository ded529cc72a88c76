"""The prompt: its parts beside each other."""

import os

import pytest
from stage import Stage, staged

from fake_session import FakeSession, asks, hangs, question_of, says
from ybs.frontends.terminal.prompt.input import TOGETHER_SECONDS

pytestmark = pytest.mark.integration


async def asked(stage: Stage) -> None:
    await stage.sees("[y] yes")
    stage.clock.now += 1


async def test_a_search_that_a_question_comes_upon_is_over() -> None:
    session = FakeSession(says("ok"), asks(question_of()))
    async with staged(session) as stage:
        stage.keys("first\r")
        await stage.until(lambda: "1.2k in" in stage.screen and not stage.terminal.work.is_busy)
        stage.keys("\x12fir")
        await stage.sees("search: fir")
        stage.terminal.work.submit("go")
        await asked(stage)
        stage.keys("y")
        await stage.until(lambda: session.answers)
        await stage.until(lambda: not stage.terminal.work.is_busy)
        stage.keys("x")
        await stage.sees("› x")
        assert "search: fir" not in stage.screen


async def test_a_paste_is_no_answer_and_in_a_reason_it_is_one_line() -> None:
    session = FakeSession(asks(question_of()))
    async with staged(session, prompt="go") as stage:
        await asked(stage)
        stage.keys("\x1b[200~y\x1b[201~")
        await stage.until(lambda: stage.terminal.window.draft.text == "y")
        assert session.answers == []
        stage.clock.now += 1
        stage.keys("r")
        await stage.sees("because:")
        stage.keys("\x1b[200~too\rslow\x07\n\x1b[201~")
        await stage.sees("because: too slow")
        stage.keys("\r")
        await stage.until(lambda: session.answers)
        assert session.answers[0].reason == "too slow"


async def test_bytes_that_are_no_text_do_not_reach_the_session() -> None:
    session = FakeSession(says("ok"))
    async with staged(session) as stage:
        os.write(stage.pipe.pipe.write_fd, b"caf\xe9\r")  # pyright: ignore[reportAttributeAccessIssue]
        await stage.sees("1.2k in")
        assert session.lines == ["caf\ufffd"]


async def test_escape_waits_for_nothing_and_alt_is_still_one_key() -> None:
    async with staged(FakeSession(hangs)) as stage:
        app = stage.terminal.window.app
        stage.keys("go\r")
        await stage.sees("so far")
        assert app.timeoutlen == TOGETHER_SECONDS
        stage.keys("ab\x1bb")  # Alt-B
        await stage.until(lambda: stage.terminal.window.draft.cursor_position == 0)
        assert stage.session.is_busy
        stage.keys("\x1b")
        await stage.sees("interrupted")
        assert app.timeoutlen == 0 < TOGETHER_SECONDS


async def test_in_incognito_the_prompt_stands_on_a_ground_and_the_bottom_line_begins_with_it():
    session = FakeSession()
    session.is_incognito = True
    async with staged(session) as stage:
        await stage.sees(" incognito  fake scripted  ask")
    assert "\x1b[0;36;100m›" in stage.raw
