"""Bytes as they come in, cut into lines."""

from collections.abc import Iterator
from typing import Final

#: A message of more bytes than this is not read.
MOST_BYTES: Final = 32_000_000


class Lines:
    """Cuts what comes in into lines. Of one that is too long nothing is kept."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Yield the lines that are whole now; None for one that was too long."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add(end)
            yield None if self._size > self._most else b"".join(self._pieces)
            self._pieces, self._size = [], 0
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._most:
            self._pieces.append(piece)
        else:
            self._pieces = []
