"""Expressions that are compiled when they are first needed, so that a start does not pay for them."""

import re
from collections.abc import Callable
from functools import cache
from typing import AnyStr


def lazy(pattern: AnyStr, flags: int = 0) -> Callable[[], re.Pattern[AnyStr]]:
    """Return a function that returns the compiled pattern."""
    return cache(lambda: re.compile(pattern, flags))
