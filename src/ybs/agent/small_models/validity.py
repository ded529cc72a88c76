"""Whether a file that a small model has written can be read as what its name says: it is told at once, and mends it."""

import os
from typing import Final

from ybs.core.errors import Refused, ToolError
from ybs.security.paths.roots import Roots
from ybs.tools.editing.syntax import flaw_in, is_known

#: Larger files are not read for it.
MOST_BYTES: Final = 200_000


def problem_in(path: str, roots: Roots) -> str:
    """Return why a file of Python, JSON or TOML cannot be read as one; nothing where it can, or is something else."""
    if not is_known(path):
        return ""
    try:
        with roots.held(roots.resolve(path)) as place:
            descriptor = place.open(os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (ToolError, Refused, OSError):
        return ""
    flaw = flaw_in(path, data.decode(errors="replace")) if len(data) <= MOST_BYTES else None
    return f"{path} cannot be read: {flaw.why} in line {flaw.line}." if flaw else ""
