"""Whether a file that a small model has written can be read as what its name says: it is told at once, and mends it."""

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import PurePath
from typing import Final

from ybs.core.errors import Refused, ToolError
from ybs.security.paths.roots import Roots

#: Larger files are not read for it.
MOST_BYTES: Final = 200_000


def problem_in(path: str, roots: Roots) -> str:
    """Return why a JSON or TOML file cannot be read as one; nothing where it can, or is something else."""
    read = _READERS.get(PurePath(path).suffix)
    if read is None:
        return ""
    try:
        with roots.held(roots.resolve(path)) as place:
            descriptor = place.open(os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (ToolError, Refused, OSError):
        return ""
    if len(data) > MOST_BYTES:
        return ""
    try:
        read(data.decode())
    except (ValueError, RecursionError) as error:
        return f"{path} cannot be read: {error}."
    return ""


_READERS: Final[dict[str, Callable[[str], object]]] = {
    ".json": json.loads,
    ".toml": tomllib.loads,
}
