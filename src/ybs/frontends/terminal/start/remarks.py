"""Plain lines, for what is said and asked before the terminal is up, in any width."""

import sys
from collections.abc import Sequence

from ybs.frontends.terminal.signs import fit_encoding
from ybs.frontends.tty import NARROW, columns, fit_width
from ybs.security.gate import put

_WIDEST_NAME = 30


def show(rows: Sequence[tuple[str, str]], begin: int = 1) -> None:
    """Print a numbered list: a name, and what is to be said of it."""
    widest = min(_WIDEST_NAME, max(len(name) for name, _ in rows))
    gap = "\n     " if columns() < NARROW else "  "
    for number, (name, detail) in enumerate(rows, begin):
        padded = name.ljust(widest) if gap == "  " and detail else name
        say(f"{number:>3}  {padded}" + (f"{gap}{detail}" if detail else ""))


def say(text: str) -> None:
    """Write lines, broken between words where the terminal is too narrow."""
    lines = "\n".join(fit_width(line) for line in text.split("\n"))
    put(fit_encoding(lines, sys.stdout.encoding or "ascii"), sys.stdout)
