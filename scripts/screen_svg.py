"""Draws the cells of a terminal as an SVG that needs no font, address or script of anybody's."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from msgspec import Struct

#: One cell, in the units of the picture. Most fonts of fixed width are 0.6 of their size wide.
WIDTH, HEIGHT, SIZE = 8.4, 18.0, 14
MARGIN = 16
FONT = "ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono','Liberation Mono',monospace"
#: A calm dark ground with an edge: it can be read on a light page and on a dark one.
GROUND, EDGE, INK, FAINT = "#161b22", "#30363d", "#d5dae1", "#8b949e"
COLOURS = {
    "black": "#30363d",
    "red": "#f47067",
    "green": "#7fc37e",
    "brown": "#daaa5b",
    "blue": "#6cb6ff",
    "magenta": "#c39ae8",
    "cyan": "#56c4cf",
    "white": "#c9d1d9",
    "brightblack": "#484f58",
}


class Style(Struct, frozen=True, kw_only=True):
    """How a cell is drawn; the colours are pyte's names, or six hexadecimal digits."""

    ink: str = "default"
    ground: str = "default"
    is_bold: bool = False
    is_dim: bool = False
    is_italic: bool = False
    is_underlined: bool = False
    is_reversed: bool = False


class Cell(Struct, frozen=True):
    """What one column shows; a wide character leaves the text of the next one empty."""

    text: str
    style: Style


class Place(Struct, frozen=True):
    """Where the cursor stands."""

    row: int
    column: int


def draw(rows: Sequence[Sequence[Cell]], columns: int, cursor: Place | None, title: str) -> str:
    """Draw rows of cells; `title` is what is read out in place of the picture."""
    width, height = columns * WIDTH + 2 * MARGIN, len(rows) * HEIGHT + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
        f' width="{width:g}" height="{height:g}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8"'
        f' fill="{GROUND}" stroke="{EDGE}"/>',
        f'<g font-family="{FONT}" font-size="{SIZE}" fill="{INK}" xml:space="preserve">',
    ]
    for number, row in enumerate(rows):
        lines += _row(row, MARGIN + number * HEIGHT)
    if cursor is not None:
        x, y = MARGIN + cursor.column * WIDTH, MARGIN + cursor.row * HEIGHT
        lines.append(_rect(x, y, WIDTH, INK, ' opacity=".6"'))
    return "\n".join([*lines, "</g>", "</svg>", ""])


def _row(row: Sequence[Cell], top: float) -> Iterator[str]:
    """Draw the grounds of a row, then its texts, each piece at its own column."""
    column = 0
    texts: list[str] = []
    for style, cells in groupby(row, key=lambda cell: cell.style):
        piece = list(cells)
        text = "".join(cell.text for cell in piece)
        x, width = MARGIN + column * WIDTH, len(piece) * WIDTH
        ink, ground = _colours(style)
        if ground:
            yield _rect(x, top, width, ground)
        if bare := text.strip():
            x += (len(text) - len(text.lstrip())) * WIDTH
            texts.append(_text(bare, x, top, _attributes(style, ink)))
        column += len(piece)
    yield from texts


def _text(text: str, x: float, top: float, attributes: str) -> str:
    # The length holds the columns where the reader's font has other proportions.
    length = f' textLength="{len(text) * WIDTH:.5g}"' if text.isascii() and len(text) > 1 else ""
    place = f'x="{x:.5g}" y="{top + SIZE - 0.5:.5g}"'
    return f"<text {place}{length}{attributes}>{escape(text, quote=False)}</text>"


def _rect(x: float, y: float, width: float, colour: str, more: str = "") -> str:
    place = f'x="{x:.5g}" y="{y:.5g}" width="{width:.5g}" height="{HEIGHT:g}"'
    return f'<rect {place} fill="{colour}"{more}/>'


def _colours(style: Style) -> tuple[str, str]:
    """Return ink and ground as SVG names them; "" for those of the whole picture."""
    ink, ground = _colour(style.ink), _colour(style.ground)
    if style.is_reversed:
        return ground or GROUND, ink or INK
    return (ink or FAINT if style.is_dim else ink), ground


def _colour(name: str) -> str:
    if name == "default":
        return ""
    return COLOURS.get(name) or COLOURS.get(name.removeprefix("bright")) or f"#{name}"


def _attributes(style: Style, ink: str) -> str:
    parts = [f' fill="{ink}"'] if ink else []
    if style.is_bold:
        parts.append(' font-weight="bold"')
    if style.is_italic:
        parts.append(' font-style="italic"')
    if style.is_underlined:
        parts.append(' text-decoration="underline"')
    if style.is_dim and style.ink != "default":
        parts.append(' opacity=".7"')
    return "".join(parts)
