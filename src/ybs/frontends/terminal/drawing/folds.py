"""Shortened output that can be drawn whole afterwards; bounded, however much comes."""

from collections import deque
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from ybs.frontends.terminal.words import shown_line

Kind: TypeAlias = Literal["words", "output", "diff"]
#: Shortened things that are kept, and characters of each.
MOST_FOLDS = 20
MOST_CHARACTERS = 256_000
#: A file of more bytes is named and not drawn.
MOST_BYTES = 4_000_000
#: Small pieces are joined, so that a million of them need no more room than their characters.
_PIECE = 4_096


class Fold(Struct, frozen=True, kw_only=True):
    """Something that was drawn shortened: its name, as much of it as is kept, and the file that holds all of it."""

    title: str
    text: str
    kind: Kind = "output"
    file: str = ""

    def whole(self) -> str:
        """Return all of it where its file is still there and not endless, else what is kept."""
        try:
            path = Path(self.file)
            if path.is_file() and path.stat().st_size <= MOST_BYTES:  # a pipe would be waited for
                return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            pass
        return f"{self.text}\n(all of it: {self.file})" if self.file else self.text


class KeptText:
    """A text that comes in pieces, of which the beginning and the end are kept."""

    def __init__(self, most: int = MOST_CHARACTERS) -> None:
        self._half = most // 2
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._open: list[str] = []
        self._open_size = self._head_size = self._tail_size = self._left_out = 0

    def __bool__(self) -> bool:
        return bool(self._head or self._open)

    def add(self, piece: str) -> None:
        """Take a piece."""
        self._open.append(piece)
        self._open_size += len(piece)
        if self._open_size >= _PIECE or len(self._open) >= _PIECE:
            self._store()

    @property
    def beginning(self) -> str:
        """The first words, a line or more."""
        return "".join([*self._head[:1], *self._open])[:_PIECE]

    @property
    def text(self) -> str:
        """What is kept, with a line about what is not."""
        self._store()
        head, tail = "".join(self._head), "".join(self._tail)
        left_out = self._left_out + max(0, len(tail) - self._half)
        if not left_out:
            return head + tail
        return f"{head}\n… {left_out} characters are not kept …\n{tail[-self._half :]}"

    def _store(self) -> None:
        piece = "".join(self._open)
        self._open, self._open_size = [], 0
        room = self._half - self._head_size
        if head := piece[:room]:
            self._head.append(head)
            self._head_size += len(head)
            piece = piece[room:]
        self._left_out += max(0, len(piece) - self._half)
        if tail := piece[-self._half :]:
            self._tail.append(tail)
            self._tail_size += len(tail)
        while self._tail_size - len(self._tail[0] if self._tail else "") > self._half:
            size = len(self._tail.popleft())
            self._tail_size -= size
            self._left_out += size


class Folds:
    """The newest things that were drawn shortened."""

    def __init__(self) -> None:
        self._folds: deque[Fold] = deque(maxlen=MOST_FOLDS)
        self._shown = 0

    def add(self, title: str, text: str, kind: Kind = "output", file: str = "") -> None:
        """Keep a thing; it is the next to be shown."""
        if len(text) > MOST_CHARACTERS + _PIECE:  # what has been kept in pieces is a little longer
            kept = KeptText()
            kept.add(text)
            text = kept.text
        self._folds.append(Fold(title=title, text=text, kind=kind, file=file))
        self._shown = 0

    @property
    def is_new(self) -> bool:
        """Whether one has come since the last was shown."""
        return bool(self._folds) and not self._shown

    def next(self) -> Fold | None:
        """Return the newest that was not shown yet, going back in time."""
        if self._shown >= len(self._folds):
            return None
        self._shown += 1
        return self._folds[-self._shown]


#: Lines at the beginning, and lines at the end, that are shown of long output.
HEAD = TAIL = 8
#: Columns that are shown of a very long line.
MOST_COLUMNS = 400


class TypedLines:
    """Takes pieces of output and gives back the lines to draw; fed with `is_whole`, all of them at once."""

    def __init__(self, more: str = "…") -> None:
        self._more = more
        #: As much as is kept of the last command's output, where lines of it were left out.
        self.whole = ""
        self._begin()

    def _begin(self) -> None:
        self._partial = ""
        self._shown = 0
        self._hidden = 0
        self._held: deque[str] = deque()
        self._kept = KeptText()

    def feed(self, text: str, *, is_whole: bool = False) -> list[str]:
        """Add a piece and return the lines that are drawn now."""
        self._kept.add(text)
        *lines, rest = (self._partial + text).split("\n")
        self._partial = rest[-10 * MOST_COLUMNS :]
        room = len(lines) if is_whole else max(0, HEAD - self._shown)
        drawn = lines[:room]
        self._shown += len(drawn)
        self._held.extend(lines[len(drawn) :])
        # One more than the end is held, for saying "1 line" takes one too.
        for _ in range(len(self._held) - TAIL - 1):
            self._held.popleft()
            self._hidden += 1
        return [self._cut(line) for line in drawn]

    def passing(self, most: int) -> list[str]:
        """Return the last lines that are not drawn yet."""
        held = [*self._held, self._partial]
        return [self._cut(line) for line in held if line.strip()][-most:]

    def finish(self) -> list[str]:
        """Return what is left, with a line about what is left out."""
        lines = self.feed("\n") if self._partial else []
        held = [self._cut(line) for line in self._held]
        self.whole = self._kept.text if self._hidden else ""
        if self._hidden:
            held[0] = f"{self._more} {self._hidden + 1} lines {self._more}"
        self._begin()
        return lines + held

    def _cut(self, line: str) -> str:
        text = shown_line(line)
        return text if len(text) <= MOST_COLUMNS else text[:MOST_COLUMNS] + self._more
