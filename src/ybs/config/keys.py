"""Keys of providers: found in the environment, and never shown whole."""

from collections.abc import Mapping, Sequence

SHOWN_CHARACTERS = 4
SHORTEST_SHOWN = 16


def find_variable(names: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the first of these variables that is set, or nothing."""
    return next((name for name in names if environ.get(name, "").strip()), "")


def find_key(names: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the value of the first of these variables that is set, without white space around it."""
    return environ.get(find_variable(names, environ), "").strip() or None


def mask(secret: str) -> str:
    """Return stars, and of a long secret the last four characters, so that it can be told apart."""
    tail = secret[-SHOWN_CHARACTERS:] if len(secret) >= SHORTEST_SHOWN else ""
    return "****" + (tail if tail.isalnum() and tail.isascii() else "")
