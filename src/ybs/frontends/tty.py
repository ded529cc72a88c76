"""Properties of the terminal: whether it only takes lines, its colours, its width."""

import os
import sys
from collections.abc import Mapping
from typing import TextIO

#: Narrower terminals get no columns.
NARROW = 60
_ENDLESS = 1_000_000


def is_dumb(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the terminal cannot move its cursor."""
    return environ.get("TERM", "") in ("dumb", "unknown", "")


def has_colour(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the terminal has colours and nobody objects to them (no-color.org)."""
    return not environ.get("NO_COLOR") and not is_dumb(environ)


def columns() -> int:
    """Return the width of the terminal; where there is none, nothing has to fit."""
    from shutil import get_terminal_size  # not on the way to the first prompt

    return get_terminal_size().columns if sys.stdout.isatty() else _ENDLESS


def fit_width(line: str, indent: str | None = None) -> str:
    """Break a line between words where the terminal is too narrow; the rest is indented as it is, or by `indent`."""
    width = columns()
    if len(line) < width:
        return line
    from textwrap import fill  # narrow terminals only

    return fill(
        line,
        max(20, width - 1),
        subsequent_indent=line[: len(line) - len(line.lstrip())] if indent is None else indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def claim_stdio() -> tuple[int, TextIO]:
    """Take standard input and output for the protocol; return where it is read and written from now on.

    The programs that tools start, and whatever prints by mistake, find nothing to read, and standard error to write to.
    """
    read_from, write_to = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for number in (read_from, write_to):
        os.set_blocking(number, True)  # some clients hand over their own ends, which do not block
    return read_from, os.fdopen(write_to, "w", encoding="utf-8", closefd=False)
