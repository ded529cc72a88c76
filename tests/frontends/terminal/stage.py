"""A terminal on a stage: keys go in through a pipe, and a real emulator (pyte) shows what would be seen."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import BytesIO, TextIOWrapper
from typing import Any

import pyte
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

from fake_session import FakeSession
from ybs.frontends.terminal.prompt.history import LineHistory
from ybs.frontends.terminal.terminal import Terminal


class FakeClock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Picture(pyte.HistoryScreen):
    """A screen that draws only what is new. Nobody pages back here, so no event has to be told of before and after."""

    __getattribute__ = object.__getattribute__

    def __init__(self, columns: int, rows: int, history: int) -> None:
        super().__init__(columns, rows, history=history)
        self._above: dict[int, tuple[Any, str]] = {}
        self._below = dict.fromkeys(range(rows), "")
        self._width = columns

    def text_of(self, columns: int) -> str:
        """Return what is seen, with what scrolled away above it."""
        if columns != self._width:
            self._width, self._above = columns, {}
        above = [
            self._above.get(id(line)) or (line, _text(line, columns)) for line in self.history.top
        ]
        self._above = {id(line): (line, text) for line, text in above}
        self._below |= {row: _text(self.buffer[row], self.columns) for row in self.dirty}
        self.dirty.clear()
        below = (self._below[row] for row in range(self.lines))
        return "\n".join([*(text for _, text in above), *below]).rstrip()


def _text(line: Any, columns: int) -> str:
    return "".join(line[column].data for column in range(columns)).rstrip()


class Stage:
    """A running terminal, its keyboard and its screen."""

    def __init__(
        self, session: FakeSession, pipe: PipeInput, size: Size, history: LineHistory | None
    ) -> None:
        self.session, self.pipe, self.size = session, pipe, size
        columns, rows = size.columns, size.rows
        self.clock = FakeClock()
        self.file = TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True)
        output = Vt100_Output(self.file, lambda: self.size, term="xterm", enable_cpr=False)
        self.terminal = Terminal(
            session.as_session, put_in=pipe, put_out=output, clock=self.clock, history=history
        )
        self._history = Picture(columns, rows, history=2000)
        self._stream = pyte.Stream(self._history)
        self._seen = (0, 0)
        self._text = ""
        self.code: int | None = None

    @property
    def raw(self) -> str:
        """Everything that was written."""
        buffer = self.file.buffer
        assert isinstance(buffer, BytesIO)
        return buffer.getvalue().decode()

    @property
    def screen(self) -> str:
        """What is seen, with what scrolled away above it."""
        text = self.raw
        if self._seen == (len(text), self.size.columns):  # who waits asks again and again
            return self._text
        self._stream.feed(text[self._seen[0] :])
        self._seen = (len(text), self.size.columns)
        self._text = self._history.text_of(self.size.columns)
        return self._text

    def keys(self, text: str) -> None:
        """Type."""
        self.pipe.send_text(text)

    async def until(self, is_so: Callable[[], object]) -> None:
        """Let the terminal work until something is so."""
        try:
            async with asyncio.timeout(15):
                while not is_so():  # noqa: ASYNC110 - a terminal tells nobody when it has drawn
                    await asyncio.sleep(0.002)
        except TimeoutError:
            raise AssertionError(f"it never came to be; the screen:\n{self.screen}") from None

    async def sees(self, text: str) -> None:
        """Wait until the text stands on the screen."""
        await self.until(lambda: text in self.screen)

    async def settles(self) -> None:
        """Let everything that is due happen."""
        for _ in range(20):
            await asyncio.sleep(0.001)


@asynccontextmanager
async def staged(
    session: FakeSession,
    *,
    columns: int = 80,
    rows: int = 24,
    prompt: str = "",
    command: str = "",
    early: str = "",
    history: LineHistory | None = None,
) -> AsyncIterator[Stage]:
    """Run a terminal; on leaving, it has ended and its exit code is known. `early` is typed before it begins."""
    with create_pipe_input() as pipe:
        pipe.send_text(early)
        stage = Stage(session, pipe, Size(rows=rows, columns=columns), history)
        task = asyncio.create_task(stage.terminal.run(prompt, command))
        await stage.until(lambda: stage.terminal.window.app.is_running)
        try:
            yield stage
        finally:
            if not task.done() and stage.terminal.window.app.is_running:
                stage.terminal.leave()
            stage.code = await task
