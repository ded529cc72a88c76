"""A Jupyter notebook as text: its cells numbered, with their source and what they printed.

The format: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from ybs.core.decoding import object_in
from ybs.core.messages import Image
from ybs.tools.calls.cut import cut
from ybs.tools.reading.images import media_type_of, pixels_of

_OUTPUT_CHARS = 1500  # of one output
_MOST_IMAGES = 3
_IMAGE_BYTES = 1_000_000
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CUT_HINT = "raw=true has the whole"


class _Rendered(Struct, frozen=True):
    """A notebook's text, the few pictures in it that can be shown, and how many cells it has."""

    text: str
    images: tuple[Image, ...]
    cells: int


def rendered(data: bytes) -> _Rendered | None:
    """Return the notebook as text, or None where the bytes are something else."""
    book = object_in(data)
    cells = _list(book and book.get("cells"))
    if not cells or not all(isinstance(cell, dict) for cell in cells):
        return None
    images: list[Image] = []
    text = "\n".join(
        line for number, cell in enumerate(cells, 1) for line in _cell(number, _dict(cell), images)
    )
    return _Rendered(text + "\n", tuple(images), len(cells))


def _cell(number: int, cell: dict[str, Any], images: list[Image]) -> Iterator[str]:
    count = cell.get("execution_count")
    ran = f", run {count}" if isinstance(count, int) else ""
    yield f"--- cell {number}: {cell.get('cell_type') or 'unknown'}{ran} ---"
    yield _text(cell.get("source"))
    for output in _list(cell.get("outputs")):
        said = "\n".join(part for part in _output(_dict(output), images) if part)
        if said:
            yield f"--- output of cell {number} ---"
            yield cut(said, _OUTPUT_CHARS, _CUT_HINT)


def _output(output: dict[str, Any], images: list[Image]) -> Iterator[str]:
    if output.get("output_type") == "error":
        trace = "\n".join(str(line) for line in _list(output.get("traceback")))
        yield f"{output.get('ename', 'error')}: {output.get('evalue', '')}"
        yield _ESCAPE.sub("", trace)
        return
    yield _ESCAPE.sub("", _text(output.get("text")))
    shown = _dict(output.get("data"))
    for kind, value in shown.items():
        if kind.startswith("image/") and kind != "image/svg+xml":
            yield _picture(kind, _text(value), images)
    words = shown.get("text/plain") or shown.get("text/markdown")
    if words:
        yield _ESCAPE.sub("", _text(words))
    elif "text/html" in shown or "image/svg+xml" in shown:
        yield "(an output in HTML or SVG only; raw=true has it)"


def _picture(kind: str, encoded: str, images: list[Image]) -> str:
    from binascii import Error, a2b_base64  # few notebooks need it

    try:
        data = a2b_base64(encoded)
    except (Error, ValueError):
        return f"(a damaged picture, {kind})"
    media_type = media_type_of(data)
    is_shown = len(images) < _MOST_IMAGES and len(data) <= _IMAGE_BYTES and pixels_of(data)
    if not is_shown:
        return f"(a picture, {kind}, {len(data):,} bytes, not shown)"
    images.append(Image(media_type=media_type, data=data))
    return f"(a picture, {kind}; it is number {len(images)} of those that follow)"


def _text(value: Any) -> str:
    """Return a text that the format also allows to be written as a list of lines."""
    parts = [value] if isinstance(value, str) else _list(value)
    return "".join(part for part in parts if isinstance(part, str)).rstrip("\n")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType] - any JSON


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] - any JSON
