"""The words of a run without a terminal: the PROMPT argument, and what was piped in."""

import os
import sys
from select import select
from stat import S_ISCHR

from ybs.core.errors import YbsError
from ybs.frontends.headless.output import tell

#: What may be piped in. Larger input fits no model's window; it belongs in a file that tools can search.
MAX_BYTES = 1_000_000
#: After this long without a byte the person is told what ybs waits for.
PATIENCE_SECONDS = 3.0


class UsageError(YbsError):
    """The command was called in a way that makes no sense (exit code 2)."""


def whole_prompt(argument: str | None, piped: str) -> str:
    """Join the argument and the piped text. Raises UsageError when there is neither."""
    words = (argument or "").strip()
    if not words and not piped.strip():
        raise UsageError("there is no prompt: give one as an argument, or pipe one in")
    if not piped.strip():
        return words
    if not words:
        return piped.strip("\n")
    body = piped.rstrip("\n").replace("</stdin>", "&lt;/stdin>")
    return f"{words}\n\n<stdin>\n{body}\n</stdin>"


def read_piped() -> str:
    """Read what was piped in; a terminal is not read. Raises UsageError for binary or too much input."""
    try:
        number = sys.stdin.fileno()
        if S_ISCHR(os.fstat(number).st_mode):  # a terminal, or /dev/null
            return ""
    except (AttributeError, OSError, ValueError):  # no standard input at all
        return ""
    if not select([number], [], [], PATIENCE_SECONDS)[0]:
        tell("ybs: waiting for standard input to end (`< /dev/null` for none)")
    return decoded(_read_all(number))


def decoded(data: bytes) -> str:
    """Decode piped bytes. Raises UsageError when they are not text, or too many."""
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"standard input is larger than {MAX_BYTES // 1000:,} kB; put it in a file and name the file"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"byte {error.start:,}"
        raise UsageError(f"standard input is not UTF-8 text ({place}); convert it first") from None
    if "\0" in text:
        raise UsageError("standard input is binary; put it in a file and name the file")
    return text.replace("\r\n", "\n")


def _read_all(number: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while size <= MAX_BYTES and (piece := os.read(number, 65_536)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)
