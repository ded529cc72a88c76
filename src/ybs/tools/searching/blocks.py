"""The text of a file in blocks of whole lines, as UTF-8 where it is UTF-16 or UTF-32 on disk."""

import codecs
import os
from collections.abc import Iterator

from ybs.tools.reading.document import wide_encoding

BLOCK_BYTES = 16_000_000
MOST_OF_LINE = 16_000_000  # what a line has beyond that is left out
_MARK = b"\xef\xbb\xbf"


def blocks(descriptor: int) -> Iterator[bytes]:
    """Yield blocks of whole lines; of a line that does not fit in memory only the beginning. Raises OSError."""
    kept: list[bytes] = []
    size = 0
    was_cut = False
    for piece in _pieces(descriptor):
        end = piece.rfind(b"\n") + 1
        if not end:
            if size < MOST_OF_LINE:
                kept.append(piece)
                size += len(piece)
            else:
                was_cut = True
            continue
        if was_cut:  # the end of the cut line is not a line of its own
            start = piece.find(b"\n")
            kept, piece, end = [b"".join(kept)], piece[start:], end - start
        yield b"".join((*kept, piece[:end]))
        kept, size, was_cut = [piece[end:]], len(piece) - end, False
    if size:
        yield b"".join(kept)


def _pieces(descriptor: int) -> Iterator[bytes]:
    piece = os.read(descriptor, BLOCK_BYTES)
    encoding = wide_encoding(piece)
    decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
    mark = _MARK
    while piece:
        data = decoder.decode(piece).encode("utf-8", "replace") if decoder else piece
        yield data.removeprefix(mark)
        mark = b""
        piece = os.read(descriptor, BLOCK_BYTES)
