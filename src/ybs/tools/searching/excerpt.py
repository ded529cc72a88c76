"""Lines of files as a search shows them: cut around the match where they are long, with the lines around them."""

import codecs
import os
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ybs.tools.reading.document import TextFile, wide_encoding

LONGEST_SHOWN = 300
_BEFORE_MATCH = 100  # characters shown before a match far out in a line
_MOST_BYTES = 4 * LONGEST_SHOWN  # around a match, before it is decoded


class LineMatch(Struct):
    """One matching line with the lines around it, in their order; its number counts from 1."""

    file: str
    line: int
    context_before: list[str]
    content: str
    context_after: list[str]


def matches_in(
    descriptor: int, name: str, places: Sequence[tuple[int, int]], context: int
) -> list[LineMatch]:
    """Read the lines at the places (line from 1, byte from 0). Lines that are gone by now are left out.

    The descriptor is closed. Raises OSError.
    """
    wanted = {
        near for line, _ in places for near in range(max(line - context, 1), line + context + 1)
    }
    try:
        lines, encoding = _lines(descriptor, wanted)
    finally:
        os.close(descriptor)

    def shown(numbers: Iterable[int]) -> list[str]:
        return [_shown(lines[number], encoding) for number in numbers if number in lines]

    return [
        LineMatch(
            file=name,
            line=line,
            context_before=shown(range(line - context, line)),
            content=_shown(lines[line], encoding, place),
            context_after=shown(range(line + 1, line + context + 1)),
        )
        for line, place in places
        if line in lines
    ]


def _lines(descriptor: int, wanted: set[int]) -> tuple[dict[int, bytes], str]:
    """Return the wanted lines without their ends, and the encoding of the file."""
    lines: dict[int, bytes] = {}
    first, last, encoding = 1, max(wanted, default=0), ""
    for data in blocks(descriptor):
        encoding = encoding or _encoding(data)
        lines.update(_numbered(data, first, wanted))
        first += data.count(b"\n")
        if first > last:
            break
    return lines, encoding


def _numbered(data: bytes, first: int, wanted: set[int]) -> Iterator[tuple[int, bytes]]:
    here = [number - first for number in wanted if number >= first]
    if not here:
        return
    ends = data.split(b"\n", max(here) + 1)
    count = len(ends) - (not ends[-1])  # nothing follows the last line end
    for place in here:
        if place < count:
            yield place + first, ends[place].removesuffix(b"\r")


def _encoding(data: bytes) -> str:
    return "utf-8" if data.isascii() else TextFile(data).encoding


def _shown(line: bytes, encoding: str, place: int = 0) -> str:
    """Return the excerpt of a line: all of it, or the part around the byte `place`."""
    start = max(place - _MOST_BYTES, 0)
    end = place + _MOST_BYTES
    before = line[start:place].decode(encoding, "replace")
    text = before + line[place:end].decode(encoding, "replace")
    column = len(before)
    first = column - _BEFORE_MATCH if column > LONGEST_SHOWN - _BEFORE_MATCH else 0
    if not start and end >= len(line) and len(text) <= LONGEST_SHOWN:
        return text
    shown = text[first : first + LONGEST_SHOWN]
    head = "[...] " if start or first else ""
    tail = " [...]" if end < len(line) or first + LONGEST_SHOWN < len(text) else ""
    return f"{head}{shown}{tail}"


BLOCK_BYTES = 16_000_000
MOST_OF_LINE = 16_000_000  # what a line has beyond that is left out
_MARK = b"\xef\xbb\xbf"


def blocks(descriptor: int) -> Iterator[bytes]:
    """Yield blocks of whole lines; of a line that does not fit in memory only the beginning. Raises OSError."""
    kept: list[bytes] = []
    size = 0
    was_cut = False
    for piece in _chunks(descriptor):
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


def _chunks(descriptor: int) -> Iterator[bytes]:
    piece = os.read(descriptor, BLOCK_BYTES)
    encoding = wide_encoding(piece)
    decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
    mark = _MARK
    while piece:
        data = decoder.decode(piece).encode("utf-8", "replace") if decoder else piece
        yield data.removeprefix(mark)
        mark = b""
        piece = os.read(descriptor, BLOCK_BYTES)
