"""Templates of commands, in the form of other agents: their text is parsed once, before anything is put into it.

What is put in (arguments, outputs of commands) is data: nothing looks for arguments, commands or files in it again.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from ybs.config.front_matter import BadFrontMatter, Value, fields, split
from ybs.core.lazy import lazy

#: A fenced block whose first line is ```!, or !`command` in a line.
_COMMAND = lazy(
    r"^[ \t]*```![ \t]*\n(?P<block>.*?)\n?^[ \t]*```[ \t]*$|!`(?P<inline>[^`\n]+)`",
    re.DOTALL | re.MULTILINE,
)
_ARGUMENT = lazy(
    r"(?<!\\)\$(?:ARGUMENTS(?:\[(?P<index>\d{1,3})\]|(?!\w))|(?P<place>\d)(?!\w)|\{CLAUDE_PLUGIN_ROOT\})"
)
_PLUGIN_ROOT: Final = "${CLAUDE_PLUGIN_ROOT}"
#: Arguments are separated by spaces; quotes around one keep its own spaces.
_GIVEN = lazy(r"(?<!\S)(?:\"([^\"]*)\"|'([^']*)')(?!\S)|(\S+)")


class Argument(Struct, frozen=True):
    """A place for what the person gives with the command, as it is written there."""

    source: str


class TemplateCommand(Struct, frozen=True):
    """A shell command, of which the output is put in its place."""

    parts: tuple[str | Argument, ...]

    @property
    def source(self) -> str:
        """The command as the template has it."""
        return "".join(each if isinstance(each, str) else each.source for each in self.parts)


TemplatePart: TypeAlias = str | Argument | TemplateCommand


class TemplateArguments:
    """What the person gave with a command, by the places that its template names.

    `$ARGUMENTS` is all of it, `$ARGUMENTS[0]` its first word. `$1` is the first word too, or the second one where
    the template has a `$0`.
    """

    def __init__(self, pieces: Sequence[TemplatePart], given: str, plugin_folder: str = "") -> None:
        self.given, self._plugin_folder = given, plugin_folder
        self._words = [first or second or bare for first, second, bare in _GIVEN().findall(given)]
        self._first = 0 if any(each.source == "$0" for each in arguments_in(pieces)) else 1

    def value(self, argument: Argument) -> str | None:
        """Return what belongs at a place; None where nothing was given for it."""
        if argument.source == _PLUGIN_ROOT:
            return self._plugin_folder
        found = _ARGUMENT().fullmatch(argument.source)
        number = found and (found["index"] or found["place"])
        if not (found and number):
            return self.given or None
        place = int(number) - (0 if found["index"] else self._first)
        return self._words[place] if 0 <= place < len(self._words) else None


def parse(text: str) -> tuple[TemplatePart, ...]:
    """Split a template's text into plain text, places of arguments, and commands."""
    pieces, at = list[TemplatePart](), 0
    for found in _COMMAND().finditer(text):
        command = (found["block"] if found["inline"] is None else found["inline"]).strip()
        pieces += _with_arguments(text[at : found.start()])
        if command:
            pieces.append(TemplateCommand(tuple(_with_arguments(command))))
        at = found.end()
    return (*pieces, *_with_arguments(text[at:]))


def parts_of(data: bytes) -> tuple[dict[str, Value], str]:
    """Return the front matter of a template's file and the words below it; what cannot be read as front matter is part of the words.

    A file with NUL is no text: it is a template without any words.
    """
    text = "" if b"\0" in data else data.decode(errors="replace")
    try:
        head, body = split(text)
        return fields(head), body.strip()
    except BadFrontMatter:
        return {}, text.strip()


def commands_in(data: bytes) -> list[str]:
    """Return the shell commands that a template's file runs, as they stand in it."""
    if b"!`" not in data and b"```!" not in data:  # most have none, and need no reader of YAML
        return []
    pieces = parse(parts_of(data)[1])
    return [each.source for each in pieces if isinstance(each, TemplateCommand)]


def arguments_in(pieces: Sequence[TemplatePart]) -> Iterator[Argument]:
    """Yield all places of arguments, those in commands included."""
    for piece in pieces:
        if isinstance(piece, Argument):
            yield piece
        elif isinstance(piece, TemplateCommand):
            yield from (each for each in piece.parts if isinstance(each, Argument))


def _with_arguments(text: str) -> Iterator[str | Argument]:
    at = 0
    for found in _ARGUMENT().finditer(text):
        if found.start() > at:
            yield text[at : found.start()]
        yield Argument(found[0])
        at = found.end()
    if at < len(text):
        yield text[at:]
