"""SIGHUP means two things: the terminal is gone, or somebody wants tools to be looked for again (`kill -HUP`)."""

import os
from collections.abc import Callable

#: The exit code of a program that ends by the signal.
GONE = 129


def hung_up(submit: Callable[[str], object], leave: Callable[[int], object]) -> None:
    """Reload the tools where the terminal is still there, and leave where it is not."""
    try:
        os.tcgetpgrp(0)
    except OSError:
        leave(GONE)
    else:
        submit("/reload-tools")
