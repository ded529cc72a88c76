"""Lay out a command's reply: tables in columns that fit the width, bars, and menus as numbered lines."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from ybs.commands.figures import cell_text
from ybs.core.wording import end_within
from ybs.session.reply import Cell, Column, Menu, Reply, Row, Table

#: From one eighth of a character's width to seven.
_EIGHTHS: Final = "▏▎▍▌▋▊▉"
#: Lines with figures stay whole in a terminal of 40 columns; from the other width on, words stand beside them.
_NARROW, _WIDE = 38, 60
_MOST_WORDS: Final = 2 * _NARROW
#: The least width of a column by its kind.
_WIDTHS: Final = {"count": 3, "estimate": 10, "tokens": 5, "usd": 7, "seconds": 4}
_BAR: Final = 5


def bar(share: float, width: int) -> str:
    """Draw a share of `width` characters in eighths; what is not nothing is seen."""
    eighths = min(round(share * width * 8), width * 8)
    if eighths <= 0:
        return _EIGHTHS[0] if share > 0 else ""
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest - 1] if rest else "")


def clipped(text: str, most: int) -> str:
    """Return the beginning of a text that was masked, in one line of at most so many columns."""
    line = " ".join(text[: 8 * most].split())
    end = end_within(line, most)
    return line if end == len(line) else f"{line[:end].rstrip()}…"


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows in columns, each as wide as its longest cell."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def lines_of(reply: Reply, width: int, *, has_bars: bool = True) -> list[str]:
    """Write an answer down in lines; long texts are left to be folded. Without bars shares are in percent."""
    lines = reply.text.split("\n") if reply.text else []
    if reply.menu is not None:
        title = reply.menu.title
        lines += [title if title.endswith((".", ":")) else f"{title}:", *menu_lines(reply.menu)]
    for number, table in enumerate(_aligned(reply.tables)):
        lines += [""] * bool(number)
        lines += _table_lines(table, width, has_bars=has_bars)
    return [*lines, *chain.from_iterable(note.split("\n") for note in reply.notes)]


def menu_lines(menu: Menu) -> list[str]:
    """Write the items down, numbered, the one in use marked; those without numbers with the line to type."""
    if not menu.is_numbered:
        return [f"  {item.line}  {item.label}: {item.detail}" for item in menu.items]
    width = len(str(len(menu.items)))
    return in_columns(
        [
            (f"{'*' if item.is_current else ' '} {number:>{width}}", item.label, item.detail)
            for number, item in enumerate(menu.items, 1)
        ]
    )


def _aligned(tables: Sequence[Table]) -> list[Table]:
    """Give the first columns of tables of plain texts one width."""
    plain = [table for table in tables if all(each.kind == "text" for each in table.columns)]
    rows = [row for each in plain for row in each.rows if len(row.cells) > 1]
    widest = max((len(str(row.cells[0])) for row in rows), default=0)

    def padded(row: Row) -> Row:
        return replace(row, cells=(str(row.cells[0]).ljust(widest), *row.cells[1:]))

    return [
        replace(each, rows=tuple(map(padded, each.rows))) if each in plain else each
        for each in tables
    ]


def _table_lines(table: Table, width: int, *, has_bars: bool) -> list[str]:
    if all(column.kind == "text" for column in table.columns):
        whole = [row for row in table.rows if len(row.cells) == len(table.columns)]
        drawn = iter(in_columns([("", *map(str, row.cells)) for row in whole]))
        # A lone cell says what the rows below are about.
        return [next(drawn) if row in whole else str(row.cells[0]).rstrip() for row in table.rows]
    return list(_Figures(table, width, has_bars=has_bars).lines())


class _Figures:
    """A table with figures: those in columns, and the words behind them or, where there is no room, above them."""

    def __init__(self, table: Table, width: int, *, has_bars: bool) -> None:
        self._table, self._width, self._has_bars = table, width, has_bars
        self._is_narrow = width < _WIDE
        self._names = max(map(_name_width, table.rows), default=0)
        shares = [number for number, each in enumerate(table.columns) if each.kind == "share"]
        #: The bar takes what is left of the line where no figures stand behind it.
        self._is_bar_last = bool(shares) and all(
            each.kind in ("words", "note") for each in table.columns[shares[0] + 1 :]
        )

    def lines(self) -> Iterator[str]:
        """Yield the lines: the heads, if there are any, and the rows."""
        if any(column.head for column in self._table.columns):
            heads = tuple(column.head or None for column in self._table.columns)
            yield from self._row(Row(heads), is_head=True)
        for row in self._table.rows:
            if len(row.cells) == 1:
                yield f"    {clipped(str(row.cells[0]), _NARROW - 4)}"
            else:
                yield from self._row(row)

    def _row(self, row: Row, *, is_head: bool = False) -> Iterator[str]:
        pairs = list(zip(self._table.columns, row.cells, strict=True))
        behind = [(column, cell) for column, cell in pairs if column.kind in ("words", "note")]
        figures = [pair for pair in pairs if pair not in behind]
        is_moved = self._is_narrow and any(column.kind == "words" for column, _ in behind)
        first = self._text(*figures[0], row, room=0, is_head=is_head)
        rest = figures[1:] if is_moved else figures
        line = ""
        for column, cell in rest:
            line += " " * bool(line)
            line += self._text(column, cell, row, room=_NARROW - len(line), is_head=is_head)
        words = " ".join(str(cell) for _, cell in behind if cell)
        if is_moved:
            if not is_head:
                yield f"{first} {clipped(words, _NARROW - 4)}".rstrip()
            yield line.rstrip()
        elif words and not self._is_narrow:
            line = line.ljust(_NARROW) if self._is_bar_last else line
            room = min(self._width - len(line) - 2, _MOST_WORDS)
            yield f"{line}  {clipped(words, room)}"
        else:
            yield line.rstrip()

    def _text(self, column: Column, cell: Cell, row: Row, *, room: int, is_head: bool) -> str:
        if column.kind == "text":
            return f" {'  ' * row.level}{cell or ''}".ljust(self._names + 1)
        if column.kind == "share":
            return self._share_text(cell, room, is_head=is_head)
        least = _WIDTHS.get(column.kind, 0)
        return (str(cell or "") if is_head else cell_text(column.kind, cell)).rjust(least)

    def _share_text(self, cell: Cell, room: int, *, is_head: bool) -> str:
        share = 0.0 if is_head or not isinstance(cell, int | float) else float(cell)
        if not self._has_bars:
            return (f"{share:.0%}" if isinstance(cell, float) and not is_head else "").rjust(4)
        if self._is_bar_last:
            return bar(share, room)
        return bar(share, _BAR).ljust(_BAR)


def _name_width(row: Row) -> int:
    return 2 * row.level + len(str(row.cells[0])) if len(row.cells) > 1 else 0
