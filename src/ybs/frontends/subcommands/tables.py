"""Tables on standard output, for subcommands."""

from collections.abc import Sequence

from ybs.core.wording import first_words
from ybs.frontends.headless.output import write
from ybs.frontends.layout import in_columns
from ybs.frontends.tty import columns

#: A last column has so many characters on every terminal.
_NARROWEST = 20


def write_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; the last column is as long as it is."""
    for line in in_columns(rows):
        write(line)


def write_cut(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, a line for each: of the last column what fits the terminal."""
    before = max(map(len, in_columns([[*row[:-1], "|"] for row in rows])), default=1) - 1
    room = max(columns() - before, _NARROWEST)
    write_table([[*row[:-1], first_words(row[-1], room)] for row in rows])
