"""Lines of files as a search shows them: cut around the match where they are long, with the lines around them."""

import os
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ybs.tools.reading.document import TextFile
from ybs.tools.searching.blocks import blocks

LONGEST_SHOWN = 300
_BEFORE_MATCH = 100  # characters shown before a match far out in a line
_MOST_BYTES = 4 * LONGEST_SHOWN  # around a match, before it is decoded


class Match(Struct):
    """One matching line with the lines around it, in their order; its number counts from 1."""

    file: str
    line: int
    context_before: list[str]
    content: str
    context_after: list[str]


def matches_in(
    descriptor: int, name: str, places: Sequence[tuple[int, int]], context: int
) -> list[Match]:
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
        Match(
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
    """Return what is shown of a line: all of it, or the part around the byte `place`."""
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
