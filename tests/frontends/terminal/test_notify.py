"""Calling the person: when a question waits, and when long work has ended."""

import asyncio
from typing import Literal

import pytest
from msgspec.structs import replace
from stage import staged

from fake_session import Cue, EndTurn, FakeSession, asks, question_of
from ybs.config.schema import Config, UiSettings

pytestmark = pytest.mark.integration

How = Literal["off", "bell", "desktop"]


def takes(seconds: float, reason: str = "done") -> Cue:
    async def cue(_session: FakeSession) -> None:
        end = EndTurn(reason)
        end.finished = replace(end.finished, duration_seconds=seconds)
        raise end

    return cue


def session_with(how: How, *script: Cue) -> FakeSession:
    return FakeSession(*script, config=Config(ui=UiSettings(notify=how)))


async def rings(how: How, *script: Cue) -> str:
    """Play the turns, answer what is asked, and return what acts on the terminal."""
    session = session_with(how, *script)
    async with staged(session) as stage:
        for _ in script:
            stage.keys("go\r")
            await stage.until(lambda: session.is_busy or not session.script)
            await stage.until(
                lambda: not stage.terminal.work.is_busy or stage.terminal.asking.is_choosing
            )
            stage.clock.now += 1
            if stage.terminal.asking.is_choosing:
                await stage.sees("[y] yes")
                stage.clock.now += 1
                stage.keys("y")
            await stage.until(lambda: not stage.terminal.work.is_busy)
        return "".join(part for part in stage.raw.split("\x1b") if "\x07" in part)


async def test_long_work_rings_once_at_its_end_and_short_or_stopped_work_does_not(monkeypatch):
    for name in ("TMUX", "STY", "VTE_VERSION"):
        monkeypatch.delenv(name, raising=False)
    assert (await rings("bell", takes(20.0))).count("\x07") == 1
    assert await rings("desktop", takes(25.0, "error")) == "]9;ybs is done\x07"
    assert await rings("bell", takes(19.9)) == ""
    assert await rings("bell", takes(60.0, "interrupted")) == ""
    assert await rings("off", takes(60.0)) == ""


async def test_a_question_rings_once_also_when_three_come_together() -> None:
    async def three(session: FakeSession) -> None:
        await asyncio.gather(*(session.confirm(question_of()) for _ in range(3)))

    session = session_with("bell", three)
    async with staged(session, prompt="go") as stage:
        for number in (1, 2, 3):
            await stage.sees(f"({number} of 3)")
            stage.clock.now += 1
            stage.keys("n")
        await stage.until(lambda: not stage.terminal.work.is_busy)
        assert stage.raw.count("\x07") == 1
    assert await rings("off", asks(question_of())) == ""
