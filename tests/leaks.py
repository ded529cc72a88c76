"""Databases that nobody closed are told of by Python from 3.13 on; for earlier ones this does the same."""

import sqlite3
import sys
import warnings
from functools import partial
from typing import Any


class TellingConnection(sqlite3.Connection):
    """A connection that warns where it is forgotten while it is open."""

    _is_open = False

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self._is_open = True

    def close(self) -> None:
        """Close it."""
        self._is_open = False
        super().close()

    def __del__(self) -> None:
        """Warn in the words of Python 3.13."""
        if self._is_open:
            warnings.warn(
                f"unclosed database in {self!r}", ResourceWarning, stacklevel=2, source=self
            )


def tell_of_open_databases() -> None:
    """Have every connection that is opened from now on tell that it was not closed."""
    if sys.version_info < (3, 13):
        sqlite3.connect = partial(sqlite3.connect, factory=TellingConnection)
