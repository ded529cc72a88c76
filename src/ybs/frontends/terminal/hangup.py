"""SIGHUP means two things: the terminal is gone, or somebody wants tools to be looked for again (`kill -HUP`).

Which one, the terminal says: before the kernel sends the signal for a terminal that was closed, every call on it fails with EIO (Linux, `__tty_hangup`).
Where the shell that leads the session ends first, the terminal is taken away a moment after the signal, so it is asked once more then.
"""

import os
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Final

#: The exit code of a program that ends by the signal.
GONE: Final = 129
#: When the terminal is asked again.
AGAIN_SECONDS = 1.0
RELOAD: Final = "/reload-tools"


def is_gone(terminal: int = 0) -> bool:
    """Return whether a terminal was closed, or is not the one that this process is run from."""
    try:
        os.tcgetpgrp(terminal)
    except OSError:
        return True
    return False


def hung_up(
    loop: AbstractEventLoop,
    submit: Callable[[str], object],
    leave: Callable[[int], object],
    look: Callable[[], bool] = is_gone,
) -> None:
    """Reload the tools where the terminal is still there, and leave where it is not, or is not any more a moment later."""

    def look_again() -> None:
        if look():
            leave(GONE)

    if look():
        leave(GONE)
        return
    submit(RELOAD)
    loop.call_later(AGAIN_SECONDS, look_again)
