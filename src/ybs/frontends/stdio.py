"""Standard input and output as the pipe of a protocol, which has them alone."""

import os
from typing import TextIO


def claim_stdio() -> tuple[int, TextIO]:
    """Take standard input and output for the protocol; return where it is read and written from now on.

    The programs that tools start, and whatever prints by mistake, find nothing to read, and standard error to write to.
    """
    read_from, write_to = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for number in (read_from, write_to):
        os.set_blocking(number, True)  # some clients hand over their own ends, which do not block
    return read_from, os.fdopen(write_to, "w", encoding="utf-8", closefd=False)
