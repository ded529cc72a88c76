"""Reads the bytes out of dumps of a file: those of `xxd`, `hexdump -C` and `od -t x1`, also with numbered lines."""

import re
from binascii import unhexlify
from collections.abc import Iterator

from ybs.core.lazy import lazy

#: The number of a line and an offset, the bytes, and what they are as characters: between bars, or behind two spaces.
_LINE = lazy(
    rb"^(?: {0,8}[0-9]{1,7}(?:[:-]?\t|:))?(?:[0-9a-fA-F]{6,16}:?(?= ))? {0,3}"
    rb"(?:([0-9a-fA-F]{2}(?: {1,2}[0-9a-fA-F]{2}){0,31}) {1,60}\|[^\n]{0,64}\|"
    rb"|((?:[0-9a-fA-F]{2}){1,4}(?: (?:[0-9a-fA-F]{2}){1,4}){0,31})(?: [ >][^\n]{0,90})?)[ \r]{0,9}$",
    re.MULTILINE,
)


def dumped(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield where each dump of some lines stands, and the bytes that it shows."""
    start = end = -1
    said = b""
    for match in _LINE().finditer(data):
        if match.start() != end + 1 and said:
            yield start, end, said
            said = b""
        if not said:
            start = match.start()
        end = match.end()
        said += unhexlify((match[1] or match[2]).replace(b" ", b""))
    if said:
        yield start, end, said
