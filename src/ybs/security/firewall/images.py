"""The text in a picture's metadata: what is looked at, and how a picture is stripped of it."""

import zlib
from collections.abc import Iterator

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_TEXTS = (b"tEXt", b"zTXt", b"iTXt", b"eXIf")
_JPEG = b"\xff\xd8"
_SCAN = 0xDA
_ADOBE = 0xEE  # says how the colours are stored
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
        return list(_png_parts(data))
    if data.startswith(_JPEG):
        return list(_jpeg_parts(data))
    return None


def _png_parts(data: bytes) -> Iterator[Part]:
    """Yield the chunks (https://www.w3.org/TR/png-3/#5Chunk-layout)."""
    yield _PNG, None
    place, ended = len(_PNG), False
    while place + 8 <= len(data) and not ended:
        size = int.from_bytes(data[place : place + 4])
        kind = data[place + 4 : place + 8]
        body = data[place + 8 : place + 8 + size]
        whole = data[place : place + 12 + size]
        yield whole, (_png_text(body) if kind in _PNG_TEXTS else None)
        place += 12 + size
        ended = kind == b"IEND"
    if place < len(data):
        yield data[place:], data[place:]  # what follows the picture is no part of it


def _png_text(body: bytes) -> bytes:
    """Return the text of a chunk, its compressed part unpacked."""
    for mark in (b"x\x9c", b"x\x01", b"x\xda", b"x^"):
        if mark in body:
            head, _, rest = body.partition(mark)
            try:
                return head + b"\n" + zlib.decompressobj().decompress(mark + rest, _MOST_TEXT)
            except zlib.error:
                continue
    return body


def _jpeg_parts(data: bytes) -> Iterator[Part]:
    """Yield the segments up to the scan, which is the picture itself (ITU-T T.81, B.1)."""
    yield _JPEG, None
    place = len(_JPEG)
    while place + 4 <= len(data) and data[place] == 0xFF and data[place + 1] != _SCAN:
        marker = data[place + 1]
        end = place + 2 + int.from_bytes(data[place + 2 : place + 4])
        is_text = marker == 0xFE or (0xE1 <= marker <= 0xEF and marker != _ADOBE)
        yield data[place:end], (data[place + 4 : end] if is_text else None)
        place = end
    yield data[place:], None
