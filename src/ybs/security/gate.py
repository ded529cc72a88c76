"""The output gate: the only way from ybs to a terminal or a pipe. What acts on a terminal does not pass.

A test sees to it that no frontend writes in another way. What programs read is JSON with such characters escaped.
"""

import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from ybs.security.unicode import has_suspects, printable, replace_hidden

if TYPE_CHECKING:
    from types import TracebackType

#: Attributes that ybs's own drawing uses; "concealed" (8) is none of them.
_OWN_ATTRIBUTES = "(\x1b\\[(?!0*8[;m])(?:[0-9]{1,3}(?:;(?!0*8[;m])[0-9]{1,3}){0,5})?m)"
_JSON_CONTROLS = "[\x00-\x1f\x7f-\x9f]"


def put(text: str, stream: TextIO, end: str = "\n", *, is_dim: bool = False) -> None:
    """Write plain text and flush. Raises OSError, and ValueError for a closed stream."""
    encoding = stream.encoding or "utf-8"
    shown = (f"\x1b[2m{printable(text)}\x1b[22m" if is_dim else printable(text)) + end
    stream.write(shown.encode(encoding, "replace").decode(encoding))
    stream.flush()


def put_crash(
    kind: type[BaseException], error: BaseException, trace: "TracebackType | None"
) -> None:
    """Write down an error that nothing caught, on standard error: a `sys.excepthook` whose words act on nothing."""
    from traceback import format_exception  # only a crash needs it

    with suppress(OSError, ValueError):  # full, or closed
        put("".join(format_exception(kind, error, trace)), sys.stderr, end="")


def put_over(text: str, stream: TextIO, *, columns: int = 0) -> None:
    """Write a short text over the line that the cursor is in; with `columns` by padding, else by erasing."""
    start = "\r" if columns else "\r\x1b[K"
    encoding = stream.encoding or "utf-8"
    shown = " ".join(printable(text).split()).ljust(columns)
    stream.write(start + shown.encode(encoding, "replace").decode(encoding))
    stream.flush()


def put_json(data: bytes, stream: TextIO) -> None:
    """Write JSON in UTF-8, whatever the terminal speaks, and flush. Raises as `put` does."""
    stream.buffer.write(safe_json(data))
    stream.buffer.flush()


def put_utf8(text: str, stream: TextIO) -> None:
    """Write plain text in UTF-8, whatever the terminal speaks, and flush. Raises as `put` does."""
    stream.buffer.write(printable(text).encode())
    stream.buffer.flush()


def safe_json(data: bytes) -> bytes:
    r"""Return the same JSON with what acts on a terminal or hides from the eye as `\u` escapes."""
    if data.isascii() and b"\x7f" not in data:
        return data
    text = data.decode()
    if not has_suspects(text):
        return data
    # Tabs and line ends stand between values only: within texts they are escaped already.
    pieces = re.split("([\t\n]+)", text)
    return "".join(
        piece if piece[:1] in "\t\n" else replace_hidden(piece, _escaped, _JSON_CONTROLS)
        for piece in pieces
    ).encode()


def drawn(text: str) -> str:
    """Return what ybs itself has drawn, with its attributes; nothing else in it acts on a terminal."""
    bare = re.sub(_OWN_ATTRIBUTES, "", text) if "\x1b" in text else text
    if printable(bare) is bare:
        return text
    pieces = re.split(_OWN_ATTRIBUTES, text)
    pieces[::2] = [printable(piece) for piece in pieces[::2]]
    return "".join(pieces)


def ask_line(question: str) -> str:
    """Ask for a line on the terminal. Raises EOFError at the end of input."""
    put(question, sys.stdout, end="")
    return input()


def _escaped(run: str) -> str:
    data = run.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[i]:02x}{data[i + 1]:02x}" for i in range(0, len(data), 2))
