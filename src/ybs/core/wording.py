"""Many things in few words: `2 lines`, `a, b and 3 more`."""

from collections.abc import Iterable


def plural(count: int, noun: str) -> str:
    """Return `1 line`, `2 lines`."""
    ending = "" if count == 1 else "es" if noun[-2:] == "ch" else "s"
    return f"{count:,} {noun}{ending}"


def listed(names: Iterable[str], most: int = 5) -> str:
    """Name a few, and say how many more there are."""
    names = list(names)
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def end_within(line: str, most: int) -> int:
    """Return how many characters of a line take so many columns, `…` among them where the line takes more."""
    if line.isascii():
        return len(line) if len(line) <= most else most - 1
    from unicodedata import east_asian_width  # it loads a table

    widths = [1 + (east_asian_width(character) in "WF") for character in line]
    if sum(widths) <= most:
        return len(line)
    return next(end for end in reversed(range(len(line))) if sum(widths[:end]) < most)
