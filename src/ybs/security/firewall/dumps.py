"""Reads the bytes out of dumps of a file: those of `xxd`, `hexdump -C` and `od -t x1`, also with numbered lines."""

import re
from binascii import unhexlify
from collections.abc import Iterator
from typing import Final

from ybs.core.lazy import lazy

#: A longer dump is read in parts of so many lines, each of which begins with the last lines of the one before it: what
#: stands across two of them is whole in one.
MOST_LINES: Final = 4_096
SHARED_LINES: Final = 512
#: The number of a line and an offset, the bytes, and what they are as characters: between bars, or behind two spaces.
_LINE = lazy(
    rb"^(?: {0,8}[0-9]{1,7}(?:[:-]?\t|:))?(?:[0-9a-fA-F]{6,16}:?(?= ))? {0,3}"
    rb"(?:([0-9a-fA-F]{2}(?: {1,2}[0-9a-fA-F]{2}){0,31}) {1,60}\|[^\n]{0,64}\|"
    rb"|((?:[0-9a-fA-F]{2}){1,4}(?: (?:[0-9a-fA-F]{2}){1,4}){0,31})(?: [ >][^\n]{0,90})?)[ \r]{0,9}$",
    re.MULTILINE,
)


def dumped(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield where each dump of some lines stands, and the bytes that it shows; a long one in parts."""
    lines: list[tuple[int, int, bytes]] = []
    for match in _LINE().finditer(data):
        if lines and match.start() != lines[-1][1] + 1:
            yield from _parts(lines)
            lines = []
        said = unhexlify((match[1] or match[2]).replace(b" ", b""))
        lines.append((match.start(), match.end(), said))
    if lines:
        yield from _parts(lines)


def _parts(lines: list[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    for first in range(0, max(1, len(lines) - SHARED_LINES), MOST_LINES - SHARED_LINES):
        part = lines[first : first + MOST_LINES]
        yield part[0][0], part[-1][1], b"".join(said for _, _, said in part)
