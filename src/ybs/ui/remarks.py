"""Plain lines, for what is said and asked before the terminal is up, in any width."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ybs.security.gate import put
from ybs.ui.signs import fit_encoding

#: Under this width the second part of a row stands on a line of its own.
_NARROW = 60
_WIDEST_NAME = 30
_ENDLESS = 1_000_000


def show(rows: Sequence[tuple[str, str]], begin: int = 1) -> None:
    """Print a numbered list: a name, and what is to be said of it."""
    widest = min(_WIDEST_NAME, max(len(name) for name, _ in rows))
    gap = "\n     " if columns() < _NARROW else "  "
    for number, (name, detail) in enumerate(rows, begin):
        padded = name.ljust(widest) if gap == "  " and detail else name
        say(f"{number:>3}  {padded}" + (f"{gap}{detail}" if detail else ""))


def columns() -> int:
    """Return the width of the terminal; where there is none, nothing has to fit."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _ENDLESS
    except (OSError, ValueError):
        return _ENDLESS


def say(text: str) -> None:
    """Write lines, broken between words where the terminal is too narrow."""
    width = columns()
    lines = [_wrapped(line, width) if len(line) >= width else line for line in text.split("\n")]
    put(fit_encoding("\n".join(lines), sys.stdout.encoding or "ascii"), sys.stdout)


def _wrapped(line: str, width: int) -> str:
    from textwrap import fill  # narrow terminals only

    indent = line[: len(line) - len(line.lstrip())]
    return fill(
        line,
        max(20, width - 1),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def short(path: Path) -> str:
    """Return a path with the home folder as `~`."""
    from ybs.config.paths import home

    return f"~/{path.relative_to(home())}" if path.is_relative_to(home()) else str(path)
