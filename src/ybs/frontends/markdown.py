"""A command's reply as Markdown, which editors draw: texts, tables, menus, diffs."""

from collections.abc import Iterator, Sequence
from typing import Final

from ybs.commands.figures import cell_text
from ybs.session.reply import Cell, Column, Menu, Reply, Row, Table

_INDENT: Final = "\u2003"
_RIGHT: Final = ("count", "estimate", "tokens", "usd", "seconds", "share")


def fenced(text: str, language: str = "") -> str:
    """Return a text between fences that it does not hold."""
    fence = "```"
    while fence in text:
        fence += "`"
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{end}{fence}"


def markdown_of(reply: Reply) -> str:
    """Return what a command answers; its lines stay lines."""
    pieces = [_lines(reply.text)] if reply.text else []
    pieces += [_menu(reply.menu)] if reply.menu is not None else []
    pieces += ["\n".join(_table(each)) for each in reply.tables if each.rows]
    pieces += [fenced(reply.diff, "diff")] if reply.diff else []
    pieces += [_lines("\n".join(reply.notes))] if any(reply.notes) else []
    return "\n\n".join(pieces)


def _lines(text: str) -> str:
    return "\n".join(f"{line}  " if line.strip() else "" for line in text.split("\n")).rstrip()


def _menu(menu: Menu) -> str:
    title = menu.title if menu.title.endswith((".", ":", "?")) else f"{menu.title}:"
    rows = [
        f"- {'**' if each.is_current else ''}`{each.line}`{'**' if each.is_current else ''} {each.label}"
        f"{f': {each.detail}' if each.detail else ''}"
        for each in menu.items
    ]
    return "\n".join([title, "", *rows])


def _table(table: Table) -> Iterator[str]:
    columns = table.columns or (Column(),)
    yield _row([each.head for each in columns])
    yield _row(["--:" if each.kind in _RIGHT else "---" for each in columns])
    for row in table.rows:
        yield _row(_cells(row, columns))


def _cells(row: Row, columns: Sequence[Column]) -> list[str]:
    if len(row.cells) == 1:  # it says what the rows below are about
        return [f"**{_cell(row.cells[0], columns[0])}**", *[""] * (len(columns) - 1)]
    cells = [_cell(cell, column) for cell, column in zip(row.cells, columns, strict=False)]
    return [f"{_INDENT * row.level}{cells[0]}", *cells[1:]]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell, column: Column) -> str:
    text = cell_text(column.kind, cell)
    return text.replace("|", "\\|").replace("\n", " ")
