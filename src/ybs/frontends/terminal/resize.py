"""Keeps the screen whole when its width changes while lines are drawn that will vanish."""

import os
from collections.abc import Callable
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.layout.screen import Screen

from ybs.frontends.terminal.output import scroll_away


class SteadyApplication(Application[int]):
    """An application that knows how many rows its lines take after the terminal has become narrower.

    Most terminals then break long lines, so the cursor is further down than it was put.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
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

    def _on_resize(self) -> None:
        if self._running_in_terminal:  # an editor has the screen; all is drawn anew when it ends
            return
        self.follow_size()
        super()._on_resize()

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
