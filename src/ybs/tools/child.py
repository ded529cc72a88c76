"""A program run to its end or to a deadline, in a thread: for searching, which has to be stopped from outside."""

import os
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

from ybs.tools.walk import Deadline

_LOOK_SECONDS = 0.05  # between two looks at the deadline


def output_of(
    command: Sequence[str], *, folder: Path, deadline: Deadline, data: bytes | None = None
) -> tuple[bytes, int]:
    """Return what the program wrote, and its exit code; at the deadline it is killed, which is code -9.

    Raises OSError where it cannot be started.
    """
    with Popen(
        command,
        cwd=folder,
        env={"PATH": os.defpath},
        stdin=DEVNULL if data is None else PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
    ) as child:
        while True:
            try:
                output, _ = child.communicate(data, timeout=_LOOK_SECONDS)
            except TimeoutExpired:
                data = None  # it is on its way
                if deadline.is_over:
                    child.kill()
            else:
                return output, child.returncode
