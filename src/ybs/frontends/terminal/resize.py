"""Keeps the screen whole: when its width changes while lines are drawn that will vanish, and when lines scroll away above them."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.layout.screen import Screen

from ybs.frontends.terminal.output import scroll_away

#: Nothing is drawn until the terminal has kept its size for this long: what erases lines while a window grows would
#: arrive when they have moved. tmux tells a new size up to .25 s after it has moved them.
SETTLE_SECONDS = 0.3


class SteadyApplication(Application[int]):
    """An application that knows how many rows its lines take after the terminal has become narrower.

    Most terminals then break long lines, so the cursor is further down than it was put.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._seen_size: Size | None = None
        self._settling: asyncio.TimerHandle | None = None
        self._is_breaking = breaks_lines()
        self._drawn_columns = self._height = 0
        self.before_render += _call(self.follow_size)
        self.before_render += _call(self._clear_moved)
        self.after_render += _call(self._note_size)

    def follow_size(self) -> None:
        """Move the cursor to where it would be if no line had been broken, before lines are erased."""
        columns = self.output.get_size().columns
        screen = self.renderer.last_rendered_screen
        if screen is None or not 0 < columns < self._drawn_columns or not self._is_breaking:
            return
        self._drawn_columns = columns
        cursor = screen.get_cursor_position(self.layout.current_window)
        if extra := rows_above(screen, cursor.x, cursor.y, columns) - cursor.y:
            self.output.cursor_up(extra)

    def clear(self) -> None:
        """Draw on an empty screen; what was on it can be scrolled back to."""
        self.follow_size()
        self.renderer.erase()
        scroll_away(self.output)
        self.renderer.clear()

    def _clear_moved(self) -> None:
        """Erase all lines before they move up or down.

        Some terminals (tmux) break an overwritten line at the width that it once had.
        """
        size = self.output.get_size()
        wanted = self.layout.container.preferred_height(size.columns, size.rows).preferred
        if wanted != self._height and self.renderer.last_rendered_screen is not None:
            self.renderer.erase()
        self._height = wanted

    def _redraw(self, render_as_done: bool = False) -> None:
        if render_as_done or not self._is_settling():
            super()._redraw(render_as_done)

    def _on_resize(self) -> None:
        # When an editor has the screen, all is drawn anew as it ends.
        if self._running_in_terminal or self._is_settling():
            return
        self.follow_size()
        super()._on_resize()

    def _is_settling(self) -> bool:
        """Return whether the size has changed just now; it is drawn anew as soon as it stays."""
        size = self.output.get_size()
        if size != self._seen_size and self._seen_size is not None:
            if self._settling is not None:
                self._settling.cancel()
            self._settling = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._settle)
        self._seen_size = size
        return self._settling is not None

    def _settle(self) -> None:
        self._settling = None
        if self.is_running:
            self._on_resize()

    def _note_size(self) -> None:
        self._drawn_columns = self.output.get_size().columns


def rows_above(screen: Screen, x: int, y: int, columns: int) -> int:
    """Count the rows above a place on the screen when its lines are broken at `columns`."""
    rows = x // columns
    for number in range(y):
        row = screen.data_buffer[number]
        used = max((place + 1 for place, cell in row.items() if cell.char.strip()), default=1)
        rows += -(-used // columns)
    return rows


def breaks_lines() -> bool:
    """Return whether the terminal breaks long lines when it becomes narrower; a few cut them off."""
    environ = os.environ
    return not (
        environ.get("XTERM_VERSION") or environ.get("STY") or environ.get("TERM") == "linux"
    )


def _call(act: Callable[[], None]) -> Callable[[object], None]:
    return lambda _sender: act()


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
