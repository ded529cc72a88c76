"""The text in a picture's metadata: what is looked at, and how a picture is stripped of it."""

import zlib

from ybs.core.lazy import lazy

_PNG = b"\x89PNG\r\n\x1a\n"
#: Chunks that are the picture or say how its pixels are shown; all others may hold words.
_PNG_PLAIN = frozenset(
    (
        b"IHDR",
        b"PLTE",
        b"IDAT",
        b"IEND",
        b"tRNS",
        b"gAMA",
        b"cHRM",
        b"sRGB",
        b"pHYs",
        b"bKGD",
        b"sBIT",
    )
)
_JPEG = b"\xff\xd8"
_MARKER = lazy(rb"\xff+[\xc0-\xfe]")
#: Within a scan 0xFF is followed by 0 or the number of a restart.
_SCAN_ENDS = lazy(rb"\xff[^\x00\xd0-\xd7\xff]")
_SCAN, _END = 0xDA, 0xD9
_JPEG_TABLES = frozenset((*range(0xC0, 0xD0), *range(0xDA, 0xE0)))
#: JFIF and Adobe say how the colours are stored, in so many bytes.
_JPEG_NOTES = {0xE0: 16, 0xEE: 14}
_MOST_TEXT = 1_000_000

#: A part of a picture: its bytes, and the text in it where it is metadata.
Part = tuple[bytes, bytes | None]


def metadata(data: bytes) -> list[bytes]:
    """Return the texts in the picture's metadata; the whole picture where its format is another than PNG or JPEG."""
    parts = _parts(data)
    return [data] if parts is None else [text for _, text in parts if text is not None]


def stripped(data: bytes) -> bytes | None:
    """Return the picture without its metadata; None where that is not known how."""
    parts = _parts(data)
    return None if parts is None else b"".join(part for part, text in parts if text is None)


def _parts(data: bytes) -> list[Part] | None:
    if data.startswith(_PNG):
        return _png_parts(data)
    if data.startswith(_JPEG):
        return _jpeg_parts(data)
    return None


def _png_parts(data: bytes) -> list[Part] | None:
    """Return the chunks (https://www.w3.org/TR/png-3/#5Chunk-layout); None where something else is among them."""
    parts: list[Part] = [(_PNG, None)]
    place, kind = len(_PNG), b""
    while kind != b"IEND":
        end = place + 12 + int.from_bytes(data[place : place + 4])
        kind = data[place + 4 : place + 8]
        if end > len(data) or not (kind.isascii() and kind.isalpha()):
            return None
        text = None if kind in _PNG_PLAIN else _unpacked(data[place + 8 : end - 4])
        parts.append((data[place:end], text))
        place = end
    return [*parts, *_rest(data[place:])]


def _unpacked(body: bytes) -> bytes:
    """Return a chunk as it is, and what is compressed in it."""
    for mark in (b"x\x9c", b"x\x01", b"x\xda", b"x^"):
        _, found, rest = body.partition(mark)
        if found:
            try:
                return body + b"\n" + zlib.decompressobj().decompress(mark + rest, _MOST_TEXT)
            except zlib.error:
                continue
    return body


def _jpeg_parts(data: bytes) -> list[Part] | None:
    """Return the segments and the scans, which are the picture itself (ITU-T T.81, B.1); None without a scan."""
    parts: list[Part] = [(_JPEG, None)]
    place, has_scan = len(_JPEG), False
    while found := _MARKER().match(data, place):
        marker, start = data[found.end() - 1], found.end()
        end = start + (0 if marker == _END else int.from_bytes(data[start : start + 2]))
        if end > len(data):
            break
        is_text = marker not in _JPEG_TABLES and end - start > _JPEG_NOTES.get(marker, 0)
        parts.append((data[place:end], data[start:end] if is_text else None))
        place = end
        if marker == _END:
            break
        if marker == _SCAN:
            has_scan, ends = True, _SCAN_ENDS().search(data, place)
            place = ends.start() if ends else len(data)
            parts.append((data[end:place], None))
    return [*parts, *_rest(data[place:])] if has_scan else None


def _rest(data: bytes) -> list[Part]:
    """Return what follows a picture and is not part of it."""
    return [(data, data)] if data else []
