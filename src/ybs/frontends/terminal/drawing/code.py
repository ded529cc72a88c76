"""Draws code with its colours and nothing else. Heavy to import (pygments); loaded when first needed."""

from collections.abc import Sequence
from functools import cache

from pygments.lexer import Lexer
from pygments.token import Token
from rich.syntax import Syntax

from ybs.frontends.terminal.words import fold_drawn

MARGIN = "  "
_TAB = 4
#: What can be read on a light and on a dark ground: attributes on and off.
_BOLD, _DIM = (1, 22), (2, 22)
_RED, _GREEN, _MAGENTA, _CYAN = (31, 39), (32, 39), (35, 39), (36, 39)
_COLOURS: dict[object, tuple[int, int]] = {
    Token.Comment: _DIM,
    Token.Keyword: _MAGENTA,
    Token.Operator.Word: _MAGENTA,
    Token.Name.Tag: _MAGENTA,
    Token.Name.Builtin: _CYAN,
    Token.Name.Decorator: _CYAN,
    Token.Name.Attribute: _CYAN,
    Token.Name.Function: _BOLD,
    Token.Name.Class: _BOLD,
    Token.Literal.Number: _CYAN,
    Token.Literal.String: _GREEN,
    Token.Generic.Deleted: _RED,
    Token.Generic.Inserted: _GREEN,
    Token.Generic.Heading: _BOLD,
    Token.Generic.Subheading: _DIM,
    Token.Generic.Prompt: _BOLD,
    Token.Generic.Error: _RED,
}


def code_lines(code: str, language: str, width: int, *, has_colour: bool) -> list[str]:
    """Draw code in at most `width` columns; long lines are folded, never cut."""
    code = code.expandtabs(_TAB)
    lexer = _lexer(language)
    lines = _coloured(code, lexer, has_colour=has_colour) if lexer else code.split("\n")
    room = max(4, width - len(MARGIN))
    return [
        MARGIN + piece if piece else ""
        for line in lines
        for piece in fold_drawn(line.rstrip(), room)
    ]


def spans_of(lines: Sequence[str], name: str) -> list[list[tuple[int, int, int, int]]]:
    """Return for each line of a file its parts that have a colour: from, to, and the attributes on and off."""
    lexer = _lexer(Syntax.guess_lexer(name))
    spans: list[list[tuple[int, int, int, int]]] = [[]]
    place = 0
    for kind, value in lexer.get_tokens("\n".join(lines)) if lexer else ():
        on, off = _attributes(kind)
        for index, text in enumerate(value.split("\n")):
            if index:
                spans.append([])
                place = 0
            if on and text.strip():
                spans[-1].append((place, place + len(text), on, off))
            place += len(text)
    return spans


def _coloured(code: str, lexer: Lexer, *, has_colour: bool) -> list[str]:
    lines: list[str] = []
    line = ""
    for kind, value in lexer.get_tokens(code):
        on, off = _attributes(kind)
        is_plain = not on or (on > 2 and not has_colour)
        first, *rest = value.split("\n")
        for piece in (None, *rest):
            if piece is not None:
                lines.append(line)
                line = ""
            text = first if piece is None else piece
            if text:
                line += text if is_plain or text.isspace() else f"\x1b[{on}m{text}\x1b[{off}m"
    # The lexer ends the last line.
    return [*lines, line] if line or not lines else lines


@cache
def _attributes(kind: object) -> tuple[int, int]:
    while kind is not None and kind not in _COLOURS:
        kind = getattr(kind, "parent", None)
    return _COLOURS.get(kind, (0, 0))


@cache
def _lexer(language: str) -> Lexer | None:
    return Syntax("", language, tab_size=_TAB).lexer if language else None
