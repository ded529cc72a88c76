"""The few signs and colours of the terminal, with an ASCII twin for every sign."""

# ruff: noqa: RUF001 - look-alike signs are what this file is about

import os
from typing import TextIO

from msgspec import Struct
from msgspec.structs import astuple

#: What else our own words contain, for terminals that cannot show it.
_TWINS = str.maketrans(
    {
        "›": ">", "•": "*", "✗": "x", "…": "...", "─": "-", "·": "-", "–": "-", "—": "-", "→": "->",
        "“": '"', "”": '"', "‘": "'", "’": "'", "−": "-", "▌": "|", "│": "|", "┃": "|", "━": "-",
        "┏": "+", "┓": "+", "└": "+", "┘": "+", "├": "+", "┤": "+", "┼": "+", "×": "x", "\u00a0": " ",
        "↳": ">", "☐": "[ ]", "☑": "[x]", "▏": "|", "▎": "|", "▍": "|", "▋": "#", "▊": "#", "▉": "#", "█": "#",
    }
)  # fmt: skip


class Signs(Struct, frozen=True, kw_only=True):
    """The signs of one kind of terminal."""

    prompt: str = "›"
    done: str = "•"
    failed: str = "✗"
    question: str = "?"
    rule: str = "─"
    dot: str = "·"
    more: str = "…"
    folded: str = "↳"
    spinner: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


UNICODE = Signs()
ASCII = Signs(
    prompt=">",
    done="*",
    failed="x",
    question="?",
    rule="-",
    dot="|",
    more="...",
    folded=">",
    spinner="|/-\\",
)


class Paint:
    """Wraps text in ECMA-48 attributes; without colour only bold and dim are left."""

    def __init__(self, *, has_colour: bool) -> None:
        self.has_colour = has_colour

    def dim(self, text: str) -> str:
        """Draw as secondary."""
        return f"\x1b[2m{text}\x1b[22m"

    def bold(self, text: str) -> str:
        """Draw as important."""
        return f"\x1b[1m{text}\x1b[22m"

    def accent(self, text: str) -> str:
        """Draw in the one accent colour."""
        return self._colour(36, text)

    def good(self, text: str) -> str:
        """Draw as added or succeeded."""
        return self._colour(32, text)

    def bad(self, text: str) -> str:
        """Draw as removed or failed."""
        return self._colour(31, text)

    def warn(self, text: str) -> str:
        """Draw as a warning."""
        return self._colour(33, text)

    def ground(self, text: str) -> str:
        """Draw on a grey ground."""
        return f"\x1b[100m{text}\x1b[49m" if self.has_colour else text

    def _colour(self, number: int, text: str) -> str:
        return f"\x1b[{number}m{text}\x1b[39m" if self.has_colour else text


def signs_for(stream: TextIO) -> Signs:
    """Choose the signs that the stream's encoding and the terminal's font can show."""
    if os.environ.get("TERM") == "linux":  # the console font of Linux has few signs
        return ASCII
    try:
        "".join(astuple(UNICODE)).encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def fit_encoding(text: str, encoding: str) -> str:
    """Replace what the encoding cannot show by its twin, or by a question mark."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return text.translate(_TWINS).encode("ascii", "replace").decode("ascii")
    return text
