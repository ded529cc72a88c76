"""Pictures as models take them: the kind is told by the bytes, and what a provider would refuse is refused here.

A picture that a provider cannot read would make every later request fail, since it stays in the conversation.
"""

from struct import error as StructError
from struct import unpack_from

from ybs.core.errors import ToolError
from ybs.core.messages import Image

MOST_BYTES = 3_900_000  # in base64 that is 5 MiB, which the large providers take
MOST_PIXELS = 8000  # of a side, likewise
_END_BYTES = 65_536  # programs put notes of their own behind the end
_HOW = "Make a smaller copy with run_shell, for example with convert -resize 1500x1500."
_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_WEBP_SIZE = {b"VP8 ": 26, b"VP8L": 21, b"VP8X": 24}


def media_type_of(data: bytes) -> str:
    """Return the media type of a picture that models take, by its first bytes; else nothing."""
    if data.startswith(_PNG):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def image_of(data: bytes | None, size: int, media_type: str, shown: str) -> tuple[Image, str]:
    """Return the picture and its width and height in words; `data` is None when it was too large to hold.

    Raises ToolError for one that is too large or damaged.
    """
    if data is None or size > MOST_BYTES:
        raise ToolError(
            f"{shown} is a picture of {size:,} bytes; {MOST_BYTES:,} can be sent at most. {_HOW}"
        )
    pixels = pixels_of(data)
    if pixels is None:
        raise ToolError(
            f"{shown} begins as {media_type} but is damaged or cut off; it was not sent"
        )
    width, height = pixels
    if max(pixels) > MOST_PIXELS:
        raise ToolError(
            f"{shown} has {width:,} x {height:,} pixels; {MOST_PIXELS:,} a side can be sent at most. {_HOW}"
        )
    return Image(media_type=media_type, data=data), f"{width} x {height} pixels"


def pixels_of(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a whole picture, or None for one that is damaged."""
    try:
        pixels = _pixels(data)
    except (StructError, IndexError, KeyError):
        return None
    return pixels if pixels and min(pixels) > 0 else None


def _pixels(data: bytes) -> tuple[int, int] | None:
    end = data[-_END_BYTES:]
    kind = media_type_of(data)
    if kind == "image/png":
        is_whole = data[12:16] == b"IHDR" and b"IEND" in end
        return unpack_from(">II", data, 16) if is_whole else None
    if kind == "image/gif":
        return unpack_from("<HH", data, 6) if b"\x3b" in end else None
    if kind == "image/jpeg":
        return _jpeg_pixels(data) if b"\xff\xd9" in end else None
    return _webp_pixels(data) if kind else None


def _jpeg_pixels(data: bytes) -> tuple[int, int] | None:
    """Walk the segments to the frame's header. https://www.w3.org/Graphics/JPEG/itu-t81.pdf, annex B."""
    place = 2
    while data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF:  # filling
            place += 1
            continue
        if marker in _JPEG_SIZES:
            height, width = unpack_from(">HH", data, place + 5)
            return width, height
        place += 2 + unpack_from(">H", data, place + 2)[0]
    return None


def _webp_pixels(data: bytes) -> tuple[int, int] | None:
    """Read the first chunk. https://developers.google.com/speed/webp/docs/riff_container."""
    if unpack_from("<I", data, 4)[0] + 8 > len(data):
        return None
    kind = data[12:16]
    place = _WEBP_SIZE[kind]
    if kind == b"VP8 ":
        width, height = unpack_from("<HH", data, place)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        bits = unpack_from("<I", data, place)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    wide = int.from_bytes(data[place : place + 3], "little")
    high = int.from_bytes(data[place + 3 : place + 6], "little")
    return wide + 1, high + 1
