"""How large a model is, as far as its name says it."""

import re
from itertools import pairwise
from typing import Final

from ybs.core.lazy import lazy

#: A model of at most so many billion parameters is a small one wherever it runs.
SMALL_BILLIONS: Final = 4.5
#: One of at most so many is told what it may write next, where its server takes that and where it is sure,
GUIDED_BILLIONS: Final = 2.0
#: and of at most so many always: it makes one change in a turn.
TINY_BILLIONS: Final = 1.0

#: `7b`, `1.5B`, `135M`, `8x7b`, `e4b`: a number that no other word goes into.
_SIZE = lazy(r"(?i)(?<![a-z0-9.])(?:(\d+)x)?e?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")


def billions_of(model: str) -> float | None:
    """Return the parameters in billions that a model's name gives (`qwen2.5-coder:1.5b`), the most of several; else None."""
    if not any(sign.isdigit() and unit in _UNITS for sign, unit in pairwise(model.lower())):
        return None  # most names say nothing
    found = re.findall(_SIZE(), model)
    sizes = [
        int(times or 1) * float(number) * _UNITS[unit.lower()] for times, number, unit in found
    ]
    return max(sizes, default=None)


_UNITS = {"b": 1.0, "m": 0.001}
