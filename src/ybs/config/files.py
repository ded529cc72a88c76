"""Read a configuration file without trusting it: no devices, no pipes, no giants, nobody else's."""

import os
import stat
from errno import EINVAL
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from ybs.core.errors import ConfigError

#: `own` is the user's or the system's; `project` lies in the project's folder and is never trusted.
Rule: TypeAlias = Literal["own", "project"]

LARGEST_BYTES = 256_000
BYTE_ORDER_MARK = "\ufeff"
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Unusable(ConfigError):
    """The file is there and cannot be used; the text says why and what to do, `line` where it is known."""

    def __init__(self, words: str, line: int = 0) -> None:
        super().__init__(words)
        self.line = line


def place_of(path: Path, error: Unusable) -> str:
    """Name the file, with the line where it is known."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(path))
    return text + (f":{error.line}" if error.line else "")


def read(path: Path, rule: Rule) -> str | None:
    """Return the file's text, or None where there is no such file.

    Raises Unusable.
    """
    try:
        # Looking first keeps devices unopened; looking again at the open file closes the gap between.
        _check(path, path.stat(follow_symlinks=rule == "own"), rule)
        handle = os.open(path, _FLAGS | (0 if rule == "own" else os.O_NOFOLLOW))
        with open(handle, "rb") as file:  # noqa: PTH123 - opened by descriptor
            _check(path, os.fstat(handle), rule)
            data = file.read(LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Unusable(f"cannot be read ({reason})") from error
    if len(data) > LARGEST_BYTES:
        raise Unusable(_TOO_LARGE)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unusable("is not UTF-8 text", line) from error


_TOO_LARGE = f"is larger than {LARGEST_BYTES // 1000} kB, which no configuration needs"


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read it, links followed. Raises OSError, also where it is a pipe or a device, which would be waited for."""
    handle = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(EINVAL, "it is not a regular file", str(path))
    return open(handle, "rb")  # noqa: PTH123 - opened by descriptor


def _check(path: Path, facts: os.stat_result, rule: Rule) -> None:
    if stat.S_ISLNK(facts.st_mode):
        raise Unusable("is a link, and links in a project are not followed")
    if not stat.S_ISREG(facts.st_mode):
        raise Unusable("is not a regular file")
    if facts.st_size > LARGEST_BYTES:
        raise Unusable(_TOO_LARGE)
    owners = {0, os.getuid()}
    if rule == "project":
        # A checkout may belong to somebody else as a whole; a file slipped into /tmp does not.
        owners.add(path.parent.stat().st_uid)
    elif facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(facts.st_mode)
        raise Unusable(f"can be written by others (mode {mode:04o}); run: chmod go-w '{path}'")
    if facts.st_uid not in owners:
        raise Unusable(f"belongs to another user (uid {facts.st_uid})")
