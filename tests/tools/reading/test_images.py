"""Pictures, as read_file hands them to models that see."""

import struct
import zlib
from pathlib import Path
from typing import Any

from rows import every_row
from ybs.tools.reading import images
from ybs.tools.reading.images import media_type_of, pixels_of


def png(width: int = 2, height: int = 1) -> bytes:
    """Make a whole picture; its pixels are not looked at."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(b"\0" * 3)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    )


JPEG = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc0\0\x11\x08\0\x03\0\x05rest\xff\xd9"
GIF = b"GIF89a\x04\0\x02\0rest;"


def webp(kind: bytes, rest: bytes) -> bytes:
    body = b"WEBP" + kind + struct.pack("<I", len(rest)) + rest
    return b"RIFF" + struct.pack("<I", len(body)) + body


WEBP = webp(b"VP8X", b"\0\0\0\0\x07\0\0\x05\0\0")
WHOLE = [
    (png(3, 4), "image/png", (3, 4)),
    (JPEG, "image/jpeg", (5, 3)),
    (JPEG.replace(b"\xff\xc0", b"\xff\xff\xff\xc0"), "image/jpeg", (5, 3)),
    (GIF, "image/gif", (4, 2)),
    (WEBP, "image/webp", (8, 6)),
    (webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x10\0\x20\0"), "image/webp", (16, 32)),
    (webp(b"VP8L", b"\x2f\x03\x40\0\0"), "image/webp", (4, 2)),
]


@every_row(("data", "media_type", "pixels"), WHOLE)
async def test_a_picture_is_returned_as_one(bench, project, data, media_type, pixels):
    (project / "a").write_bytes(data)
    answered = await bench.ok("read_file", path="a")
    assert [(image.media_type, image.data) for image in answered.result.images] == [
        (media_type, data)
    ]
    assert f"{media_type}, {pixels[0]} x {pixels[1]} pixels" in answered.output


@every_row(("data", "media_type", "kind"), WHOLE)
def test_a_picture_cut_off_anywhere_is_damaged(data: bytes, media_type: str, kind: object):
    assert media_type_of(data) == media_type
    for length in range(12, len(data) - 4):
        assert pixels_of(data[:length]) is None


def test_a_picture_without_a_frame_is_damaged():
    assert pixels_of(b"\xff\xd8\xff\xe0\0\x04ab\0\0\xff\xd9") is None


async def test_a_damaged_picture_is_not_sent(bench: Any, project: Path):
    (project / "a").write_bytes(png()[:40])
    assert "damaged or cut off" in await bench.fails("read_file", path="a")
    (project / "a").write_bytes(png(0, 5))
    assert "damaged or cut off" in await bench.fails("read_file", path="a")


async def test_a_picture_that_is_too_large_is_refused(bench, project, monkeypatch):
    (project / "a").write_bytes(png(8001, 2))
    assert "8,001 x 2 pixels; 8,000 a side" in await bench.fails("read_file", path="a")
    monkeypatch.setattr(images, "MOST_BYTES", 10)
    said = await bench.fails("read_file", path="a")
    assert "10 can be sent" in said
    assert "-resize" in said


async def test_a_picture_too_large_to_be_held_is_refused(bench: Any, project: Path):
    with (project / "a").open("wb") as file:
        file.write(png())
        file.truncate(100_000_000)
    assert "100,000,000 bytes" in await bench.fails("read_file", path="a")
