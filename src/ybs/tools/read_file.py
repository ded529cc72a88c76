"""read_file: a file's lines with their numbers, or a picture."""

import asyncio
import os
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from ybs.core.errors import ToolError
from ybs.core.messages import Image
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.tools.built_in import BuiltInTool, plural, positive
from ybs.tools.document import Document, is_binary, printable, text_of_part
from ybs.tools.files import failure, open_regular
from ybs.tools.walk import Deadline

LONGEST_LINE = 2000
MOST_LINES = 100_000
TIME_LIMIT_SECONDS = 30.0
_WHOLE_BYTES = 4_000_000  # beyond this only the lines asked for are held
_CHUNK = 1_000_000
_IMAGE_BYTES = 5_000_000  # what the large providers take
_NOTE_ROOM = 150


class Arguments(Struct, frozen=True, kw_only=True):
    """What read_file takes."""

    path: str
    offset: Annotated[int, Meta(description="first line, from 1")] = 1
    limit: Annotated[int, Meta(description="number of lines")] = 500


class ReadFile(BuiltInTool):
    """Reads."""

    name: ClassVar[str] = "read_file"
    effect: ClassVar[Effect] = "read"
    arguments: ClassVar[type[Struct]] = Arguments

    def preview(self, arguments: Arguments) -> Preview:
        """Name the file."""
        return Preview(title=f"Read {arguments.path}", paths=(str(self._path(arguments)),))

    async def run(self, arguments: Arguments, print_live: Callable[[str], None]) -> ToolOutput:
        """Read the lines asked for; the whole file counts as read by this session."""
        del print_live
        first = positive(arguments.offset or 1, "offset", at_most=10**12)
        limit = positive(arguments.limit, "limit", at_most=MOST_LINES)
        path = self._path(arguments)
        shown = self.workspace.roots.show(path)
        deadline = Deadline(TIME_LIMIT_SECONDS)
        try:
            content, status = await asyncio.to_thread(_read, path, shown, (first, limit), deadline)
        finally:
            deadline.cancel()
        self.workspace.reads.note(path, status, content.whole)
        if image := _image_of(content, status.st_size, shown):
            return image
        if is_binary(content.beginning):
            raise ToolError(
                f"{shown} is a binary file of {status.st_size:,} bytes; it has no lines to read"
            )
        return self._output(content, first, limit, shown)

    def _path(self, arguments: Arguments) -> Path:
        return self.workspace.roots.resolve(arguments.path)

    def _output(self, held: "_Content", first: int, limit: int, shown: str) -> ToolOutput:
        lines, total = held.lines(first, limit)
        if first > max(total, 1):
            raise ToolError(f"{shown} has {plural(total, 'line')}; there is no line {first}")
        numbered = list(_numbered(lines, first, self.workspace.max_output_chars - _NOTE_ROOM))
        last = first + len(numbered) - 1
        content = "\n".join(numbered)
        is_whole = first == 1 and last >= total
        display = {"content": content, "total_lines": total, "truncated": not is_whole}
        what = plural(total, "line") if is_whole else f"lines {first}-{last} of {total}"
        output = content if total else "(the file is empty)"
        if last < total:
            output += f"\n[lines {last + 1}-{total} not shown; go on with offset={last + 1}]"
        return ToolOutput(output=output, summary=f"{shown}: {what}", display=display)


def _numbered(lines: list[str], first: int, budget: int) -> Iterator[str]:
    """Yield the lines with their numbers while they fit in the budget of characters, at least one."""
    for number, line in enumerate(lines, first):
        more = len(line) - LONGEST_LINE
        shown = line if more <= 0 else f"{line[:LONGEST_LINE]} [... {more:,} more characters]"
        text = f"{number}\t{shown}"
        budget -= len(text) + 1
        if budget < 0 and number > first:
            return
        yield text


class _Content:
    """What was read of a file: all of it, or the part from line `first_held` on."""

    def __init__(self, beginning: bytes, whole: bytes | None) -> None:
        self.beginning, self.whole = beginning, whole
        self.part, self.first_held, self.total_lines = b"", 1, 0

    def lines(self, first: int, limit: int) -> tuple[list[str], int]:
        """Return the lines from `first` on, without their ends, and how many the file has."""
        if self.whole is None:
            text = text_of_part(self.part, self.beginning)
        else:
            text = Document(self.whole).text
        lines = printable(text).removesuffix("\n").split("\n") if text else []
        start = first - self.first_held
        return lines[start : start + limit], self.total_lines if self.whole is None else len(lines)


def _read(
    path: Path, shown: str, asked: tuple[int, int], deadline: Deadline
) -> tuple[_Content, os.stat_result]:
    """Read the file in this thread alone: who waits for it may be gone before it ends."""
    if not os.path.lexists(path):
        raise ToolError(_missing(path, shown))
    descriptor, status = open_regular(path, shown)
    try:
        pieces = _pieces(descriptor, shown, deadline)
        if status.st_size > _WHOLE_BYTES:
            return _part_of(pieces, *asked), status
        whole = b"".join(pieces)
        return _Content(whole, whole), status
    except OSError as error:
        raise failure(error, shown) from error
    finally:
        os.close(descriptor)


def _pieces(descriptor: int, shown: str, deadline: Deadline) -> Iterator[bytes]:
    while piece := os.read(descriptor, _CHUNK):
        yield piece
        if deadline.is_over:
            raise ToolError(f"{shown} takes too long to read; use run_shell with sed or head")


def _part_of(pieces: Iterator[bytes], first: int, limit: int) -> _Content:
    """Read to the end, but hold only whole lines: those asked for and a few more."""
    content = _Content(next(pieces, b""), None)
    held: list[bytes] = []
    size = ends = 0
    last = b""
    for piece in _in_utf8(content.beginning, pieces):
        before, ends = ends, ends + piece.count(b"\n")
        if ends + 1 >= first and before + 1 < first + limit and size <= _WHOLE_BYTES:
            kept = piece if held else _from_line(piece, first - before)
            held.append(kept)
            size += len(kept)
        last = piece
    part = b"".join(held)
    content.first_held = first
    content.part = part[: part.rfind(b"\n") + 1] if size > _WHOLE_BYTES and b"\n" in part else part
    content.total_lines = ends + (not last.endswith(b"\n"))
    return content


def _from_line(piece: bytes, line: int) -> bytes:
    """Return the piece from the beginning of its `line`, counted from 1."""
    start = 0
    for _ in range(line - 1):
        start = piece.index(b"\n", start) + 1
    return piece[start:]


def _in_utf8(beginning: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces with the ends of their lines as bytes: UTF-16 becomes UTF-8, the rest stays."""
    if not beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        yield beginning
        yield from pieces
        return
    decoder = getincrementaldecoder("utf-16")("replace")
    yield decoder.decode(beginning).encode()
    for piece in pieces:
        yield decoder.decode(piece).encode()


def _media_type(data: bytes) -> str:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def _image_of(content: _Content, size: int, shown: str) -> ToolOutput | None:
    media_type = _media_type(content.beginning)
    if not media_type:
        return None
    if content.whole is None or size > _IMAGE_BYTES:
        raise ToolError(
            f"{shown} is a picture of {size:,} bytes; {_IMAGE_BYTES:,} can be sent at most"
        )
    text = f"{shown} is a picture ({media_type}, {size:,} bytes); it follows."
    display: dict[str, Any] = {"content": "", "total_lines": 0, "truncated": False}
    image = Image(media_type=media_type, data=content.whole)
    return ToolOutput(
        output=text,
        summary=f"{shown}: {media_type}",
        display={**display, "media_type": media_type},
        images=(image,),
    )


def _missing(path: Path, shown: str) -> str:
    """Say that the file does not exist, with names that come close."""
    from difflib import get_close_matches  # only a wrong name needs it

    folder = path.parent
    while not folder.is_dir():
        folder = folder.parent
    if folder != path.parent:
        return f"{shown} does not exist, nor does its folder. Use list_files to look around."
    names = sorted(os.listdir(folder))[:2000]  # noqa: PTH208 - names, not paths
    close = get_close_matches(path.name, names, n=3, cutoff=0.5)
    close += [
        name for name in names if name.casefold() == path.name.casefold() and name not in close
    ]
    hint = (
        f" Close names there: {', '.join(close)}." if close else " Use list_files to look around."
    )
    return f"{shown} does not exist.{hint}"
