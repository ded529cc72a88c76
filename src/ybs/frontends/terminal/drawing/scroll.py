"""Writes the lines that scroll away above the prompt: those of a moment together, so that a stream draws it seldom."""

import asyncio
from collections.abc import Callable

from ybs.frontends.terminal.resize import SteadyApplication

#: New lines draw the prompt anew this long after it was drawn, if nothing else has: a key, or the next picture of
#: the spinner.
WAIT_SECONDS = 0.15


class Scroll:
    """Takes whole lines and writes them before the prompt is drawn the next time."""

    def __init__(self, app: SteadyApplication, write: Callable[[str], None]) -> None:
        self._app, self._write = app, write
        self._lines: list[str] = []
        self._drawn_at = 0.0
        self._due: asyncio.TimerHandle | None = None
        app.before_render += self._on_render

    def _on_render(self, _app: object) -> None:
        self.draw()

    def put(self, text: str) -> None:
        """Take lines."""
        self._lines.append(text)
        if not self._app.is_running:
            self.draw()
        elif self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_at(self._drawn_at + WAIT_SECONDS, self._app.invalidate)

    def draw(self) -> None:
        """Write the lines in place of the prompt."""
        if self._app.is_running:
            self._drawn_at = asyncio.get_running_loop().time()
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if not self._lines:
            return
        text, self._lines = "".join(self._lines), []
        if self._app.is_running:
            self._app.follow_size()
            self._app.renderer.erase()
        self._write(text)
