"""Makes small GGUF files: a head with some entries, and no weights."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value(given: Any) -> bytes:
    """Encode a value with its kind: a text, a whole number, a list of either, or bytes as they stand."""
    match given:
        case bytes():
            return given
        case str():
            return struct.pack("<I", 8) + text(given)
        case bool():
            return struct.pack("<I?", 7, given)
        case int():
            return struct.pack("<II", 4, given)
        case list():
            items = [value(each) for each in given]
            kind = items[0][:4] if items else struct.pack("<I", 4)
            return (
                struct.pack("<I", 9)
                + kind
                + struct.pack("<Q", len(items))
                + b"".join(i[4:] for i in items)
            )
        case _:
            raise TypeError(given)


def head(entries: Mapping[str, Any], *, count: int | None = None) -> bytes:
    body = b"".join(text(name) + value(each) for name, each in entries.items())
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, len(entries) if count is None else count) + body


def write_model(path: Path, entries: Mapping[str, Any], size: int = 0) -> Path:
    """Write a file with this head, as large as a model; it takes no room on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(head(entries))
        if size:
            file.truncate(size)
    return path
