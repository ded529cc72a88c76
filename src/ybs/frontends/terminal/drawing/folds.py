"""What was drawn shortened and can be drawn whole afterwards; bounded, however much comes."""

from collections import deque
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

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
