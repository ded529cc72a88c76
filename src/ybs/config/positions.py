"""Find the line of each key in JSON text; slow and forgiving, so used only when something is wrong.

It reads values that JSON forbids (NaN, numbers out of range, too deep a nest) as `problems`, where the strict and fast
decoder gives up on the whole text.
"""

import re
from typing import Any

import msgspec

from ybs.config.tree import DEEPEST, KeyPath

_DEEPEST_REMEMBERED = 6
_MOST_PROBLEMS = 100

_SPACE = re.compile(r"[ \t\r\n]*+")
_TOKEN = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|[{}\[\],:]|[A-Za-z0-9_+.\-]++')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?\Z")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_MISSING: Any = object()
_TOO_EARLY = "the text ends too early"


class Broken(ValueError):
    """The text is not JSON; `line` and `path` tell where."""

    def __init__(self, words: str, line: int, path: KeyPath) -> None:
        super().__init__(words)
        self.line, self.path = line, path


class Scan:
    """JSON text, read value by value: the value, the line of each key, and what was wrong.

    Raises Broken where the text cannot be read on.
    """

    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[tuple[KeyPath, str]] = []
        self._text, self._at, self._line = text, 0, 1
        self._path: list[str | int] = []
        piece = self._next()
        self.value = self._value(piece)
        if self._next():
            raise self._broken("there is text after the end")

    def _next(self) -> str:
        start = _SPACE.match(self._text, self._at)
        at = start.end() if start else self._at
        self._line += self._text.count("\n", self._at, at)
        self._at = at
        if at == len(self._text):
            return ""
        piece = _TOKEN.match(self._text, at)
        if piece is None:
            what = "a string is not closed" if self._text[at] == '"' else "an unexpected character"
            raise self._broken(what)
        self._at = piece.end()
        return piece.group()

    def _broken(self, words: str) -> Broken:
        return Broken(words, self._line, tuple(self._path))

    def _problem(self, words: str) -> Any:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append((tuple(self._path), words))
        return _MISSING

    def _value(self, piece: str) -> Any:
        if piece in ("{", "["):
            if len(self._path) >= DEEPEST:
                return self._skip()
            return self._object() if piece == "{" else self._array()
        if piece in ("", "}", "]", ",", ":"):
            raise self._broken("a value is missing" if piece else _TOO_EARLY)
        if piece in _WORDS:
            return _WORDS[piece]
        if piece[0] != '"' and not _NUMBER.match(piece):
            return self._problem(f"`{piece[:20]}` is not valid JSON")
        try:
            return msgspec.json.decode(piece)
        except (msgspec.DecodeError, UnicodeError):
            what = "the string contains a character that JSON does not allow"
            return self._problem(what if piece[0] == '"' else "the number is out of range")

    def _skip(self) -> Any:
        depth = 1
        while depth:
            piece = self._next()
            if not piece:
                raise self._broken(_TOO_EARLY)
            depth += (piece in ("{", "[")) - (piece in ("}", "]"))
        return self._problem(f"it is nested deeper than {DEEPEST} levels")

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        piece = self._next()
        while piece != "}":
            name = self._name(piece)
            self._enter(name)
            value = self._value(self._next())
            if value is not _MISSING:
                found[name] = value
            piece = self._step("}")
        return found

    def _name(self, piece: str) -> str:
        if not piece.startswith('"'):
            raise self._broken("a key in double quotes is missing" if piece else _TOO_EARLY)
        try:
            name = msgspec.json.decode(piece, type=str)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise self._broken("a key contains a character that JSON does not allow") from error
        if self._next() != ":":
            raise self._broken("a colon is missing")
        return name

    def _array(self) -> list[Any]:
        found: list[Any] = []
        index = 0
        piece = self._next()
        while piece != "]":
            self._enter(index)
            value = self._value(piece)
            if value is not _MISSING:
                found.append(value)
            index += 1
            piece = self._step("]")
        return found

    def _enter(self, step: str | int) -> None:
        self._path.append(step)
        if len(self._path) <= _DEEPEST_REMEMBERED:
            self.lines[tuple(self._path)] = self._line

    def _step(self, end: str) -> str:
        """Leave a value and return what the next one begins with, or the end."""
        piece = self._next()
        if piece not in (",", end):
            raise self._broken("a comma is missing after this" if piece else _TOO_EARLY)
        if piece == ",":
            piece = self._next()
            if piece in (end, ""):
                raise self._broken("there is a comma too many after this" if piece else _TOO_EARLY)
        self._path.pop()
        return piece
