"""A real terminal that pictures are taken of: the one of the tests, with dim text, and with fixed words for what moves."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pyte
from pyte.screens import Char
from screen_svg import Cell, Place, Style, draw

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from screen import Screen

#: What moves from run to run, and what stands in its place; what stands at the right end of a line stays there.
_MOVING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏](?= )"), "⠹"),
    (re.compile(r"^. shell .*   ?(\d[\d.]* m?s)$"), "0.3 s"),
    (re.compile(r"^. (?!shell).*   ?(\d[\d.]* m?s)$"), "4 ms"),
    (re.compile(r"^⠹ .*  (\d[\d.]* m?s)\b"), "2 s"),
    (re.compile(r"(?<= · )\d[\d.]* m?s\b"), "6.2 s"),
    (re.compile(r"^\(.* out, (\d[\d.]* m?s)\)$"), "6.2 s"),
    (re.compile(r" (\d\.\ds)  the session$"), "6.3s"),
    (re.compile(r"^ +\d .* (\d\.\ds)  "), "2.1s"),
    (re.compile(r"(?<= in )\d\.\d+s$"), "0.001s"),
)


class DimScreen(pyte.HistoryScreen):
    """A screen that knows dim text. pyte does not; here it is what blinks, which nothing of ybs does."""

    def select_graphic_rendition(self, *attrs: int) -> None:
        """Set attributes."""
        if not {38, 48} & set(attrs):  # there a 2 says how a colour is written
            dim = {2: (5,), 22: (22, 25)}
            attrs = tuple(each for attr in attrs for each in dim.get(attr, (attr,)))
        super().select_graphic_rendition(*attrs)


class Film(Screen):
    """The command on a terminal. `home` is shown as `~`; the pictures go to `folder`."""

    def __init__(
        self, *words: str, size: tuple[int, int], environ: Mapping[str, str], folder: Path
    ) -> None:
        columns, rows = size
        super().__init__(*words, columns=columns, rows=rows, environ=environ)
        self._screen = DimScreen(columns, rows, history=1000)
        self._stream = pyte.Stream(self._screen)
        self._home, self._folder = environ["HOME"], folder

    def plays(self, keys: str, pattern: str) -> None:
        """Type, and wait until something is seen and has stood there for as long as a question wants."""
        self.keys(keys)
        self.sees(pattern)
        self.stays(0.5)

    def shoot(self, name: str, title: str) -> None:
        """Take a picture of what the window shows; `title` is read out in its place."""
        buffer, cursor = self._screen.buffer, self._screen.cursor
        rows = [
            normal([cell_of(buffer[row][column]) for column in range(self.columns)], self._home)
            for row in range(self._screen.lines)
        ]
        filled = [number for number, row in enumerate(rows) if _text(row).strip()]
        place = None if cursor.hidden else Place(cursor.y - filled[0], cursor.x)
        picture = draw(rows[filled[0] : filled[-1] + 1], self.columns, place, title)
        (self._folder / f"{name}.svg").write_text(picture, encoding="utf-8")


def normal(row: list[Cell], home: str) -> list[Cell]:
    """Put fixed words for what moves, and `~` for the home folder."""
    patterns = ((re.compile(re.escape(home)), "~"), *_MOVING)
    for pattern, words in patterns:
        if found := pattern.search(_text(row).rstrip()):
            row = _replaced(row, *found.span(pattern.groups), words)
    return row


def _text(row: list[Cell]) -> str:
    return "".join(cell.text or " " for cell in row)


def _replaced(row: list[Cell], start: int, end: int, words: str) -> list[Cell]:
    """Put other words into a row. Behind a gap they end where the old ones ended, else they begin there."""
    style = row[start].style
    blank = Cell(" ", Style())
    new = [Cell(letter, style) for letter in words]
    gap = len(new) - (end - start)
    if _text(row)[max(0, start - 3) : start] == "   " and not _text(row)[end:].strip():
        before = row[: start - gap] if gap >= 0 else [*row[:start], *[blank] * -gap]
        return [*before, *new, *row[end:]]
    return [*row[:start], *new, *row[end:], *[blank] * max(0, -gap)][: len(row)]


def cell_of(char: Char) -> Cell:
    """Return the cell of a character on the emulator's screen."""
    style = Style(
        ink=char.fg,
        ground=char.bg,
        is_bold=char.bold,
        is_dim=char.blink,
        is_italic=char.italics,
        is_underlined=char.underscore,
        is_reversed=char.reverse,
    )
    return Cell(char.data, style)
