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


def first_words(text: str, most: int) -> str:
    """Return the beginning of a text in one line of at most so many columns."""
    line = " ".join(text[: 8 * most].split())
    if line.isascii():
        return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
    from unicodedata import east_asian_width  # it loads a table

    widths = [1 + (east_asian_width(character) in "WF") for character in line]
    if sum(widths) <= most:
        return line
    end = next(end for end in reversed(range(len(line))) if sum(widths[:end]) < most)
    return f"{line[:end].rstrip()}…"
