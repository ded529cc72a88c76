"""What a test leaves behind: a database that nobody closed, and what belongs to the whole process.

Python tells of open databases from 3.13 on; for earlier ones this does the same. A handler of the root logger, or an
excepthook, has a later test of the same process write to the terminal, and which test that is depends on the order.
"""

import logging
import sqlite3
import sys
import warnings
from functools import partial
from typing import Any

from ybs.config.host import states, unnamed, worked_in
from ybs.security.paths.home_links import hidden_in, read_by_ybs

_HOOK = sys.excepthook


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


def put_back_what_is_process_wide() -> str:
    """Take out what a test left in the root logger and in `sys.excepthook`, and say what it was; empty where nothing was."""
    root = logging.root
    # Where pytest's own plugin for logs is on, its handlers stand there during the run.
    left = [it for it in root.handlers if not type(it).__module__.startswith("_pytest.")]
    found = [f"the root logger's {handler}" for handler in left]
    if root.level != logging.WARNING:
        found.append(f"the root logger's level {logging.getLevelName(root.level)}")
    if sys.excepthook is not _HOOK:
        found.append(f"the excepthook {sys.excepthook}")
    for handler in left:
        root.removeHandler(handler)
    root.setLevel(logging.WARNING)
    sys.excepthook = _HOOK
    states.clear()
    unnamed.clear()
    worked_in.clear()  # what a test works in, and thousands did before it
    hidden_in.cache_clear()  # the home folder of the next test may be the same, and what is in it not
    read_by_ybs.cache_clear()
    return ", ".join(found)
