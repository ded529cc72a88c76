"""A terminal on a stage: keys go in through a pipe, and a real emulator (pyte) shows what would be seen."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import BytesIO, TextIOWrapper

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
        self._history = pyte.HistoryScreen(columns, rows, history=2000)
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
        above = [
            "".join(line[column].data for column in range(self.size.columns)).rstrip()
            for line in self._history.history.top
        ]
        below = (line.rstrip() for line in self._history.display)
        self._text = "\n".join([*above, *below]).rstrip()
        return self._text

    def keys(self, text: str) -> None:
        """Type."""
        self.pipe.send_text(text)

    async def until(self, is_so: Callable[[], object]) -> None:
        """Let the terminal work until something is so."""
        try:
            async with asyncio.timeout(5):
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
