"""Errors that nothing caught: a calm line, no raw text, and an end where they do not stop."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from stage import staged

from fake_session import FakeSession, says
from ybs.frontends.terminal.mishaps import MOST, put_mishap
from ybs.session.reply import Outcome, Reply

EVIL = "said \x1b]52;c;QUFB\x07 \u202e\x1b[2J"


async def breaks(_session: FakeSession) -> None:
    raise ValueError(EVIL)


@pytest.mark.integration
async def test_an_error_of_a_turn_a_command_or_a_callback_is_a_line_and_the_work_goes_on() -> None:
    class Broken(FakeSession):
        async def handle(self, line: str, images: Sequence[Any] = ()) -> Reply | Outcome:
            if line == "/status":
                raise RuntimeError(EVIL)
            return await super().handle(line)

    def stumbles() -> None:
        raise LookupError(EVIL)

    session = Broken(breaks, says("ok"))
    async with staged(session, columns=100) as stage:
        stage.keys("go\r")
        await stage.sees("an error in ybs (a bug): ValueError: said ␛]52;c;QUFB␇")
        stage.keys("/status\r")
        await stage.sees("an error in ybs (a bug): RuntimeError: said")
        loop = asyncio.get_running_loop()
        loop.call_soon(stumbles)
        await stage.sees("an error in ybs (a bug): LookupError: said")
        loop.call_exception_handler({"message": EVIL})
        await stage.until(lambda: not stage.terminal.work.is_busy)
        stage.keys("go on\r")
        await stage.sees("1.2k in")
        assert "Press ENTER" not in stage.raw
        assert "\x1b]52" not in stage.raw
        assert "\u202e" not in stage.raw
    assert stage.code == 0


async def test_an_error_that_does_not_stop_ends_the_session(capsys):
    def stumbles() -> None:
        raise LookupError(EVIL)

    async def run() -> None:
        async with staged(FakeSession()) as stage:
            for _ in range(MOST):
                asyncio.get_running_loop().call_soon(stumbles)
            await stage.until(lambda: not stage.terminal.window.app.is_running)

    with pytest.raises(LookupError):
        await run()
    assert capsys.readouterr().err == ""


async def test_where_no_screen_is_drawn_it_is_written_down_in_words_that_act_on_nothing(capsys):
    loop = asyncio.get_running_loop()
    put_mishap(loop, {"message": EVIL})
    assert capsys.readouterr().err == ""
    put_mishap(loop, {"message": EVIL, "exception": ValueError(EVIL)})
    written = capsys.readouterr().err
    assert "ValueError: said" in written
    assert "\x1b" not in written
