"""Answers of small models that never end: the same line again and again, at most with other numbers."""

import re
from typing import Final

_DIGITS = re.compile(r"\d+")
#: So often, and so many characters of it, before it counts: people ask for twenty lines of one kind too.
FEWEST_TIMES: Final = 25
FEWEST_CHARS: Final = 600
_LONGEST_UNIT = 160
_PROBE = 48
#: How much more text comes before it is looked at again.
EVERY_CHARS: Final = 300


def goes_round(text: str) -> bool:
    """Return whether the end of a text says one thing over and over."""
    end = _DIGITS.sub("0", text[-(FEWEST_TIMES + 1) * _LONGEST_UNIT :])
    probe = end[-_PROBE:]
    before = end.rfind(probe, 0, len(end) - 1)
    unit = len(end) - _PROBE - before
    if before < 0 or unit > _LONGEST_UNIT:
        return False
    span = max(unit * FEWEST_TIMES, FEWEST_CHARS)
    return len(end) >= span + unit and end[-span:] == end[-span - unit : -unit]
