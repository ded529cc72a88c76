"""The text of a file in blocks of whole lines, as UTF-8 whatever it is on disk; nothing of ybs is loaded for it."""

import codecs
import os
import stat
from collections.abc import Generator, Iterator

from ybs.tools.reading import charsets

MOST_BYTES = 20_000_000  # a file up to this is one block
BLOCK_BYTES = 16_000_000
MOST_OF_LINE = 16_000_000  # what a line has beyond that is not looked at
_FIRST_BYTES = 65_536  # says whether a file is binary before more of it is read
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_MARK = b"\xef\xbb\xbf"


class Binary(Exception):
    """The file holds a NUL: it is not text."""


class Files:
    """Opens ordinary files below a resolved folder, by a walk from the top that follows no link, in any part of it.

    A command that still runs can put a link in the place of a folder at any moment.
    """

    def __init__(self, folder: str) -> None:
        """Hold the folder open. Raises OSError."""
        self._top = os.open("/", _STEP)
        self._top = self._below(self._top, folder.split("/"))
        # The last folder: files come folder by folder.
        self._prefix: str = ""
        self._folder: int = -1

    def open(self, path: str) -> int:
        """Open a file without waiting for a pipe; the caller closes it. Raises OSError."""
        prefix, _, name = path.rpartition("/")
        if not prefix:
            return os.open(name, _READ, dir_fd=self._top)
        if self._folder < 0 or prefix != self._prefix:
            if self._folder >= 0:
                os.close(self._folder)
                self._folder = -1
            self._folder = self._below(os.dup(self._top), prefix.split("/"))
            self._prefix = prefix
        return os.open(name, _READ, dir_fd=self._folder)

    def close(self) -> None:
        """Let go of the folders."""
        for descriptor in (self._top, self._folder):
            if descriptor >= 0:
                os.close(descriptor)

    def _below(self, here: int, names: list[str]) -> int:
        """Walk down from an open folder, which is closed. Raises OSError."""
        for name in filter(None, names):
            try:
                below = os.open(name, _STEP, dir_fd=here)
            finally:
                os.close(here)
            here = below
        return here


def blocks(
    descriptor: int, *, reads_wide: bool = False
) -> Generator[tuple[bytes, bool], None, None]:
    """Yield blocks of whole lines, and whether the end of a very long line was left out of each.

    The descriptor is closed. `reads_wide` is for UTF-16 without a mark and UTF-32, which `rg` takes for binary. Raises
    OSError, Binary.
    """
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a regular file")
        first = os.read(descriptor, _FIRST_BYTES)
        encoding = _wide_encoding(first, reads_wide=reads_wide)
        if not encoding and b"\0" in first:
            raise Binary
        if status.st_size <= MOST_BYTES:
            data = (
                first if len(first) == status.st_size else first + _rest(descriptor, status.st_size)
            )
            if encoding:
                data = data.decode(encoding, "replace").encode("utf-8", "replace")
            yield _checked(data.removeprefix(_MARK)), False
        else:
            yield from _long(descriptor, first, encoding)
    finally:
        os.close(descriptor)


def _wide_encoding(first: bytes, *, reads_wide: bool) -> str:
    if reads_wide and b"\0" in first:
        return charsets.wide_encoding(first)
    return "utf-16" if first.startswith(_UTF_16_MARKS) else ""


def _checked(data: bytes) -> bytes:
    if b"\0" in data:
        raise Binary
    return data


def _rest(descriptor: int, size: int) -> bytes:
    """Read what is left, be the file longer by now or shorter."""
    pieces: list[bytes] = []
    left = 2 * MOST_BYTES
    while left > 0 and (piece := os.read(descriptor, min(max(size, _FIRST_BYTES), left))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _pieces(descriptor: int, first: bytes, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
    piece, mark = first, _MARK
    while piece:
        data = decoder.decode(piece).encode("utf-8", "replace") if decoder else piece
        yield _checked(data.removeprefix(mark))
        mark = b""
        piece = os.read(descriptor, BLOCK_BYTES)


def _long(descriptor: int, first: bytes, encoding: str) -> Iterator[tuple[bytes, bool]]:
    """Yield a long file; of a line that does not fit in memory only the beginning."""
    kept: list[bytes] = []
    size = 0
    was_cut = False
    for piece in _pieces(descriptor, first, encoding):
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
        yield b"".join((*kept, piece[:end])), was_cut
        kept, size, was_cut = [piece[end:]], len(piece) - end, False
    if size:
        yield b"".join(kept), was_cut
