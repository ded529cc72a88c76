"""Reads a text once more with its encodings undone: percent signs, JSON's escapes, base64, and UTF-16's zero bytes."""

import re
from binascii import a2b_base64
from bisect import bisect_right
from collections.abc import Iterator

from ybs.security.firewall.lazy import lazy

#: A part of the data and what it says: start, end, decoded.
Piece = tuple[int, int, bytes]

#: Shorter base64 is not decoded, in characters.
LEAST_BASE64 = 40
_MOST_SHIFTED = 4_096
_ESCAPE = lazy(rb"%[0-9a-fA-F]{2}|\\u00[0-9a-fA-F]{2}")
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_IS_BASE64 = bytes(97 if code in _BASE64 else 32 for code in range(256))
_STANDARD = bytes.maketrans(b"-_", b"+/")
_BREAKS = b" \t\r\n\v\f\"'<>`|"
_IS_BREAK = bytes(32 if code in _BREAKS else 97 for code in range(256))


class View:
    """The decoded pieces of some data as one text, each on a line of its own."""

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = pieces
        self.data = b"\n".join(decoded for _, _, decoded in pieces)
        self._starts: list[int] = []
        place = 0
        for _, _, decoded in pieces:
            self._starts.append(place)
            place += len(decoded) + 1

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return the part of the data that `start` to `end` of this text was decoded from."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, max(start, end - 1)) - 1
        return self._pieces[first][0], self._pieces[last][1]


def views(data: bytes) -> Iterator[View]:
    """Yield what the data says with each kind of encoding undone; nothing where there is none."""
    for pieces in (list(escaped(data)), list(packed(data)), list(wide(data))):
        if pieces:
            yield View(pieces)


def escaped(data: bytes) -> Iterator[Piece]:
    """Yield the words with percent or JSON escapes in them, in parts so small that little is lost with a finding."""
    if b"%" not in data and rb"\u00" not in data:
        return
    breaks = data.translate(_IS_BREAK)
    done = 0
    for match in _ESCAPE().finditer(data):
        if match.start() < done:
            continue
        start = breaks.rfind(b" ", done, match.start()) + 1 or done
        done = breaks.find(b" ", match.end())
        done = len(data) if done < 0 else done
        yield start, done, _ESCAPE().sub(_unescaped, data[start:done])


def _unescaped(match: re.Match[bytes]) -> bytes:
    return bytes((int(match[0][-2:], 16),))


def packed(data: bytes) -> Iterator[Piece]:
    """Yield what base64 of text says; bytes that are no text are left out, as pictures and programs are."""
    mapped = data.translate(_IS_BASE64)
    run = b"a" * LEAST_BASE64
    start = mapped.find(run)
    while start >= 0:
        end = mapped.find(b" ", start)
        end = len(data) if end < 0 else end
        word = data[start:end].translate(_STANDARD)
        # The run may begin with what is no part of it, as a path does.
        for shift in range(4 if len(word) <= _MOST_SHIFTED else 1):
            if decoded := _text_in(word[shift:]):
                yield (
                    start,
                    end + len(data[end : end + 2]) - len(data[end : end + 2].lstrip(b"=")),
                    decoded,
                )
                break
        start = mapped.find(run, end)


def _text_in(word: bytes) -> bytes:
    whole = word[: len(word) // 4 * 4]
    rest = word[len(whole) :]
    decoded = a2b_base64(whole + (rest + b"=" * (4 - len(rest)) if len(rest) > 1 else b""))
    plain = decoded.replace(b"\0", b"")  # UTF-16, as PowerShell takes its commands
    if 2 * len(plain) < len(decoded):
        return b""
    try:
        plain.decode()
    except UnicodeDecodeError:
        return b""
    return plain


def wide(data: bytes) -> Iterator[Piece]:
    """Yield the lines with zero bytes in them without these, as UTF-16 reads."""
    if b"\0" not in data:
        return
    place = 0
    for line in data.split(b"\n"):
        if b"\0" in line:
            yield place, place + len(line), line.replace(b"\0", b"")
        place += len(line) + 1
