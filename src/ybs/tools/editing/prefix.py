"""How far two texts, or two lists of lines, are alike from their beginning."""

from collections.abc import Sequence


def shared(one: Sequence[str], two: Sequence[str]) -> int:
    """Return how many characters, or lines, the two have in common at their beginning."""
    count = 0
    for mine, theirs in zip(one, two, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
