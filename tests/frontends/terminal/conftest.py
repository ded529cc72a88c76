"""Fixtures of the terminal's tests."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import pytest
from prompt_toolkit.application import application
from stage import FakeClock

from fake_session import FakeSession
from ybs.frontends.terminal.plain.plain import PlainTerminal

Open = Callable[..., Any]


@pytest.fixture(autouse=True)
def colour_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a terminal with colours."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture(autouse=True, scope="session")
def keys_of_the_library() -> Iterator[None]:
    """Make prompt_toolkit's own key bindings once: a thousand of them, for each of hundreds of terminals."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("load_key_bindings", "load_page_navigation_bindings"):
            patch.setattr(application, name, cache(getattr(application, name)))
        yield


class Talk:
    """A running plain terminal: its keyboard and what it wrote."""

    def __init__(self, writing: int, capsys: pytest.CaptureFixture[str]) -> None:
        self._writing, self._capsys = writing, capsys
        self._text = ""
        self.clock = FakeClock()
        self.code: int | None = None
        self.task: asyncio.Task[int] | None = None

    @property
    def text(self) -> str:
        self._text += self._capsys.readouterr().out
        return self._text

    def types(self, line: str) -> None:
        os.write(self._writing, line.encode())

    async def until(self, is_so: Callable[[], object]) -> None:
        try:
            async with asyncio.timeout(5):
                while not is_so():  # noqa: ASYNC110 - a terminal tells nobody when it has written
                    await asyncio.sleep(0.002)
        except TimeoutError:
            raise AssertionError(f"it never came to be; written:\n{self.text}") from None

    async def sees(self, text: str) -> None:
        await self.until(lambda: text in self.text)


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Put a pipe in the place of standard input; what is written to it is typed."""
    reading, writing = os.pipe()

    class Stdin:
        def fileno(self) -> int:
            return reading

    monkeypatch.setattr(sys, "stdin", Stdin())
    yield writing
    os.close(reading)


@pytest.fixture
def talking(keyboard: int, capsys: pytest.CaptureFixture[str]) -> Open:
    @asynccontextmanager
    async def opened(
        session: FakeSession, prompt: str = "", command: str = ""
    ) -> AsyncGenerator[Talk]:
        talk = Talk(keyboard, capsys)
        terminal = PlainTerminal(session.as_session, clock=talk.clock)
        talk.task = asyncio.create_task(terminal.run(prompt, command))
        await talk.until(lambda: "/help for more" in talk.text)
        yield talk
        os.close(keyboard)  # the end of input
        talk.code = await talk.task

    return opened
