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
