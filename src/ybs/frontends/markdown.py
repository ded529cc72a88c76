"""A command's reply as Markdown, which editors draw: texts, tables, menus, diffs.

A reply holds words of projects, servers and models, and those could have a part of themselves not drawn (the title of a link,
a comment): all but ybs's own signs are escaped.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ybs.commands.figures import cell_text
from ybs.session.reply import Cell, Column, Menu, MenuItem, Reply, Row, Table

_INDENT: Final = "\u2003"
_RIGHT: Final = ("count", "estimate", "tokens", "usd", "seconds", "share")


#: What may begin a link, code, emphasis, HTML, a formula, a table or the name of a sign; a `_` within a word means nothing.
_MEANS: Final = re.compile(r"[\\`*\[\]<>&|]|\$(?=[^$]*\$)|~~|(?<![^\W_])_|_(?![^\W_])|:(?=\w+:)")
#: What makes a line something else than text: a heading, a rule, an item of a list.
_BEGINS: Final = re.compile(r"^([ \t]*\d*)([#+=.)-])", re.MULTILINE)


def escaped(text: str) -> str:
    """Return Markdown that is drawn as just this text."""
    signs = _MEANS.sub(lambda found: "".join(f"\\{each}" for each in found[0]), text)
    return _BEGINS.sub(r"\1\\\2", signs)


def fenced(text: str, language: str = "") -> str:
    """Return a text between fences that it does not hold."""
    fence = "```"
    while fence in text:
        fence += "`"
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{end}{fence}"


def spanned(line: str) -> str:
    """Return a line of code between signs that it does not hold."""
    sign, gap = "`", " " * ("`" in line)
    while sign in line:
        sign += "`"
    return f"{sign}{gap}{line}{gap}{sign}"


def markdown_of(reply: Reply) -> str:
    """Return what a command answers; its lines stay lines."""
    pieces = [_lines(reply.text)] if reply.text else []
    pieces += [_menu(reply.menu)] if reply.menu is not None else []
    pieces += ["\n".join(_table(each)) for each in reply.tables if each.rows]
    pieces += [fenced(reply.diff, "diff")] if reply.diff else []
    pieces += [_lines("\n".join(reply.notes))] if any(reply.notes) else []
    return "\n\n".join(pieces)


def _lines(text: str) -> str:
    lines = (f"{escaped(line)}  " if line.strip() else "" for line in text.split("\n"))
    return "\n".join(lines).rstrip()


def _menu(menu: Menu) -> str:
    title = escaped(menu.title if menu.title.endswith((".", ":", "?")) else f"{menu.title}:")
    return "\n".join([title, "", *map(_item, menu.items)])


def _item(item: MenuItem) -> str:
    line = escaped(item.line) if "`" in item.line else f"`{item.line}`"
    said = escaped(f"{item.label}: {item.detail}" if item.detail else item.label)
    return f"- **{line}** {said}" if item.is_current else f"- {line} {said}"


def _table(table: Table) -> Iterator[str]:
    columns = table.columns or (Column(),)
    yield _row([escaped(each.head) for each in columns])
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
    return escaped(text.replace("\n", " ")) if isinstance(cell, str) else text
