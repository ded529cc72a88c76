"""Errors that nothing caught while the terminal runs: each is one calm line, and too many of them end the session."""

import asyncio
from collections.abc import Callable
from typing import Any

from ybs.frontends.terminal.words import one_line
from ybs.security.gate import put_crash

#: With this one an error that comes again and again, such as one in the drawing, ends the session.
MOST = 5


class Mishaps:
    """Takes the place of the loop's own handler, which would print what it is given past the gate.

    `show` draws a line; `end` ends the session with the error and tells whether it was running.
    """

    def __init__(self, show: Callable[[str], None], end: Callable[[BaseException], bool]) -> None:
        self._show, self._end = show, end
        self._count = 0

    def __call__(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take what the loop reports; what is not an error is nobody's concern."""
        error = context.get("exception")
        if not isinstance(error, BaseException):
            return
        self._count += 1
        if self._count < MOST:
            self._show(f"an error in ybs (a bug): {named(error)}")
        elif not self._end(error):
            put_crash(type(error), error, error.__traceback__)


def named(error: BaseException) -> str:
    """Return one line that says what an error is and where it came up."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = ""
    if trace is not None:
        file = trace.tb_frame.f_code.co_filename.rpartition("/")[2]
        place = f" ({file}, line {trace.tb_lineno})"
    return one_line(f"{type(error).__name__}: {error}")[:200] + place


def put_mishap(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Write down an error that nothing caught, where no screen is drawn."""
    error = context.get("exception")
    if isinstance(error, BaseException):
        put_crash(type(error), error, error.__traceback__)
