"""The content of a file for read_file: all of it, or of a large one only the lines asked for."""

import os
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.security.paths.names import shown_name
from ybs.security.paths.opening import open_listed
from ybs.security.paths.roots import Roots
from ybs.tools.reading.document import TextFile, is_binary, printable, text_of_part, wide_encoding
from ybs.tools.reading.files import MOST_BYTES, failure, open_regular, read_bytes
from ybs.tools.searching.walk import Deadline

WHOLE_BYTES = 4_000_000  # beyond this only the lines asked for are held
CHUNK = 1_000_000
#: Of these a part says nothing, so they are held whole.
_WHOLE_KINDS = (".ipynb", ".pdf")


class LineRange(Struct, frozen=True):
    """Which lines are wanted: `offset` counts from 1, below 0 from the end."""

    offset: int
    limit: int

    def first(self, total: int) -> int:
        """Return the number of the first line wanted of a file with so many lines."""
        return self.offset if self.offset > 0 else max(total + self.offset + 1, 1)


class FileContent:
    """What was read. `whole` is None for a large file, of which the part from line `first_held` on is held."""

    def __init__(self, beginning: bytes, status: os.stat_result, whole: bytes | None) -> None:
        self.beginning, self.status, self.whole = beginning, status, whole
        self.part, self.first_held, self.total_lines = b"", 1, 0

    @property
    def is_binary(self) -> bool:
        """Whether it is not text."""
        return is_binary(self.beginning)

    def lines(self, asked: LineRange) -> tuple[list[str], int, int]:
        """Return the lines asked for without their ends, the first one's number, and how many the file has."""
        if self.whole is None:
            text = text_of_part(self.part, self.beginning)
        else:
            text = TextFile(self.whole).text
        lines = self.lines_of(text)
        total = self.total_lines if self.whole is None else len(lines)
        first = asked.first(total)
        start = first - self.first_held
        return lines[start : start + asked.limit], first, total

    @staticmethod
    def lines_of(text: str) -> list[str]:
        """Return the lines of a text without their ends, with signs for what no model is sent."""
        lines = printable(text).removesuffix("\n").split("\n") if text else []
        return [line.replace("\0", "\u2400") for line in lines] if "\0" in text else lines


def text_with_key(roots: Roots, path: Path) -> str:
    """Return the text of a file in which a private key may stand; nothing where none does, or the file cannot be read."""
    try:
        with roots.held(path) as place:
            data, _ = read_bytes(place, roots.show(path))
    except (OSError, ToolError):
        return ""
    from ybs.security.firewall.engine import may_have_key

    return TextFile(data).text if may_have_key(data) or wide_encoding(data) else ""


def read(roots: Roots, path: Path, asked: LineRange, deadline: Deadline) -> FileContent:
    """Read the file in this thread alone: who waits for it may be gone before it ends. Raises ToolError."""
    shown = roots.show(path)
    descriptor, status = _opened(roots, path, shown)
    try:
        pieces = _chunks(descriptor, shown, deadline)
        beginning = next(pieces, b"")
        if status.st_size > WHOLE_BYTES and not _is_held_whole(path, status, beginning):

            def rest_of() -> Iterator[bytes]:
                os.lseek(descriptor, len(beginning), os.SEEK_SET)
                return _chunks(descriptor, shown, deadline)

            return _part_of(FileContent(beginning, status, None), rest_of, asked)
        rest: list[bytes] = []
        size = len(beginning)
        for piece in pieces:
            rest.append(piece)
            size += len(piece)
            if size > max(MOST_BYTES, WHOLE_BYTES):
                raise ToolError(f"{shown} grows while it is read; use run_shell with tail or head")
        return FileContent(beginning, status, b"".join((beginning, *rest)))
    except OSError as error:
        raise failure(error, shown) from error
    finally:
        os.close(descriptor)


def _opened(roots: Roots, path: Path, shown: str) -> tuple[int, os.stat_result]:
    try:
        with roots.held(path) as place:
            if place.status() is not None:
                return open_regular(place, shown)
    except (FileNotFoundError, NotADirectoryError):
        pass  # its folder is not there
    except OSError as error:
        raise failure(error, shown) from error
    raise ToolError(_missing(path, shown))


def _is_held_whole(path: Path, status: os.stat_result, beginning: bytes) -> bool:
    is_kind = path.suffix.lower() in _WHOLE_KINDS or beginning.startswith(b"%PDF-")
    return is_kind and status.st_size <= MOST_BYTES


def _chunks(descriptor: int, shown: str, deadline: Deadline) -> Iterator[bytes]:
    while piece := os.read(descriptor, CHUNK):
        yield piece
        if deadline.is_over:
            raise ToolError(f"{shown} takes too long to read; use run_shell with sed or head")


def _part_of(
    content: FileContent, rest_of: Callable[[], Iterator[bytes]], asked: LineRange
) -> FileContent:
    """Hold only whole lines: those asked for and a few more. What has no lines is not read on."""
    if content.is_binary:
        return content
    if asked.offset < 0:  # once to count, and once more from the line that is found to be the first
        total = _hold(content, rest_of(), LineRange(1, 0))
        asked = LineRange(asked.first(total), asked.limit)
    _hold(content, rest_of(), asked)
    return content


def _hold(content: FileContent, rest: Iterator[bytes], asked: LineRange) -> int:
    held: list[bytes] = []
    size = ends = 0
    last = b""
    for piece in _in_utf8(content.beginning, rest):
        before, ends = ends, ends + piece.count(b"\n")
        is_wanted = ends + 1 >= asked.offset and before + 1 < asked.offset + asked.limit
        if is_wanted and size <= WHOLE_BYTES:
            kept = piece if held else _from_line(piece, asked.offset - before)
            held.append(kept)
            size += len(kept)
        last = piece or last
    part = b"".join(held)
    content.first_held = asked.offset
    content.part = part[: part.rfind(b"\n") + 1] if size > WHOLE_BYTES and b"\n" in part else part
    content.total_lines = ends + (not last.endswith(b"\n"))
    return content.total_lines


def _from_line(piece: bytes, line: int) -> bytes:
    """Return the piece from the beginning of its `line`, counted from 1."""
    start = 0
    for _ in range(line - 1):
        start = piece.index(b"\n", start) + 1
    return piece[start:]


def _in_utf8(beginning: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces with the ends of their lines as bytes: UTF-16 and UTF-32 become UTF-8, the rest stays."""
    encoding = wide_encoding(beginning)
    if not encoding:
        yield beginning
        yield from pieces
        return
    decoder = getincrementaldecoder(encoding)("replace")
    yield decoder.decode(beginning).encode(errors="replace")
    for piece in pieces:
        yield decoder.decode(piece).encode(errors="replace")


def _missing(path: Path, shown: str) -> str:
    """Return a text that says that the file does not exist, with names that come close."""
    from difflib import get_close_matches  # only a wrong name needs it

    names: list[str] = []
    try:
        descriptor = open_listed(path.parent)
    except (FileNotFoundError, NotADirectoryError):
        return f"{shown} does not exist, nor does its folder. Use list_files to look around."
    except OSError:
        descriptor = -1  # it may not be looked into
    if descriptor >= 0:
        try:
            names = [shown_name(name) for name in sorted(os.listdir(descriptor))[:2000]]  # noqa: PTH208 - of a descriptor
        finally:
            os.close(descriptor)
    close = get_close_matches(path.name, names, n=3, cutoff=0.5)
    close += [
        name for name in names if name.casefold() == path.name.casefold() and name not in close
    ]
    hint = (
        f" Close names there: {', '.join(close)}." if close else " Use list_files to look around."
    )
    return f"{shown} does not exist.{hint}"
