"""The output of a command, of any length: its ends in memory that does not grow, the whole in a file when it is long."""

import re
import threading
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from ybs.core.cutting import whole_words
from ybs.tools.calls.cut import from_line, up_to_line
from ybs.tools.calls.live import LiveOutput
from ybs.tools.shell.terminal_text import as_seen

if TYPE_CHECKING:
    from ybs.core.ports import ToolOutput
    from ybs.tools.shell.overflow import OverflowFile

LIVE_CHARS = 200_000  # beyond this the screen shows only some lines of one command
LOOK_SECONDS = 0.5  # between two of these
_LOOK_BYTES, _LOOK_LINES, _SHOWN_BYTES = 2000, 3, 400
_BYTES_OF_A_CHARACTER = 4  # at most, in UTF-8
_RECENT_BYTES = 8_000
#: The end of an output that may be the beginning of a token, which nothing would mask, and a sign that most tokens have.
_OPEN_WORD = re.compile(rb"[\w+/=.~-]{6,}\Z", re.ASCII)
_IN_TOKENS = re.compile(rb"[0-9_-]")
_MOST_OPEN = 1_000


class KeptBytes:
    """Bytes of any number: their beginning and their end are kept."""

    def __init__(self, most_chars: int) -> None:
        self._half = max(most_chars // 2, 1)
        self._half_bytes = self._half * _BYTES_OF_A_CHARACTER
        self._head, self._tail = bytearray(), bytearray()
        self.size = self.lines = 0

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self.size += len(data)
        self.lines += data.count(b"\n")
        if room := self._half_bytes - len(self._head):
            self._head += data[:room]
            data = data[room:]
        if len(data) >= self._half_bytes:
            self._tail[:] = data[-self._half_bytes :]
        else:
            self._tail += data
            if len(self._tail) > 4 * self._half_bytes:
                del self._tail[: -self._half_bytes]

    def take_over(self, other: "KeptBytes") -> None:
        """Take what another one keeps as the next piece, which begins a line."""
        end = self._tail or self._head
        if end and other.size and not end.endswith(b"\n"):
            self.add(b"\n")
        size, lines = self.size + other.size, self.lines + other.lines
        self.add(bytes(other._head + other._tail))
        self.size, self.lines = size, lines

    def whole(self) -> bytes | None:
        """Return all bytes as they came, or None where some are missing."""
        is_whole = self.size <= len(self._head) + len(self._tail)
        return bytes(self._head + self._tail) if is_whole else None

    def text(self, limit: int | None = None) -> str:
        """Return the kept text as a terminal would show it, or less of it, with a note about missing parts."""
        return self.shown(limit)[0]

    def shown(self, limit: int | None = None) -> tuple[str, bool]:
        """Return that text, and whether something is missing in it."""
        if self._is_binary:
            return f"[{self.size:,} bytes that are not text]\n", True
        half = self._half if limit is None else max(min(self._half, limit // 2), 1)
        if self.size <= len(self._head) + len(self._tail):
            head = tail = as_seen((self._head + self._tail).decode(errors="replace"))
            if len(head) <= 2 * half:
                return head, False
        else:
            head = as_seen(_without_part(self._head).decode(errors="replace"))
            tail = as_seen(self._tail.decode(errors="replace").lstrip("\ufffd"))
        return self._cut(head[:half], tail[-half:]), True

    @property
    def _is_binary(self) -> bool:
        """Whether it is not text in any encoding: NULs, and much that is not UTF-8."""
        if b"\0" not in self._head:
            return False
        text = self._head.decode(errors="replace")
        return text.count("\ufffd") > len(text) // 8

    def _cut(self, head: str, tail: str) -> str:
        head, tail = up_to_line(head), from_line(tail)
        size = max(self.size - len(head.encode()) - len(tail.encode()), 0)
        lines = self.lines - head.count("\n") - tail.count("\n")
        in_lines = f" ({lines:,} lines)" if lines > 1 else ""
        return f"{head.removesuffix(chr(10))}\n[... {size:,} bytes{in_lines} left out ...]\n{tail}"

    def split(self, known: bytes = b"") -> bytes:
        """Take what has not come whole away from the end and return it: a character, or a word that may become a token.

        A word that is as it was (`known`) stays.
        """
        end = self._tail or self._head
        part = bytes(end[len(_without_part(end)) :])
        word = _OPEN_WORD.search(end, max(0, len(end) - _MOST_OPEN))
        if not part and word and word[0] != known and _IN_TOKENS.search(word[0]):
            part = bytes(word[0])
        if part:
            del end[-len(part) :]
            self.size -= len(part)
        return part

    def go_on(self, word: bytes) -> None:
        """Begin with a word that was told before, where this goes on with it: nothing would mask the second half of a token."""
        if _OPEN_WORD.fullmatch(word + self._head[:1]):
            self._head[:0] = word
            self.size += len(word)


class OutputWindow:
    """Output on its way to the screen: the beginning whole, then a few lines now and then, so that it never stands still.

    One thread reads, and only the loop's own shows.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show, self._left = show, LIVE_CHARS
        self._is_over = False
        self._decoders: dict[int, IncrementalDecoder] = {}
        self._rest = b""
        self._next_look = 0.0

    def __call__(self, text: str) -> None:
        """Show the next piece."""
        if text and not self._is_over:
            self._show(text)

    def close(self) -> None:
        """Show nothing more."""
        self._is_over = True

    def leave(self, output: "ToolOutput") -> None:
        """Leave behind what can be said of a call that is being cancelled, where its caller takes it."""
        if isinstance(self._show, LiveOutput):
            self._show.leave(output)

    def read(self, stream: int, data: bytes) -> str:
        """Take the next bytes and return what of them is to be shown. Called by the thread that reads."""
        if self._is_over:
            return ""
        if self._left <= 0:
            self._rest = (self._rest + data[-_LOOK_BYTES:])[-_LOOK_BYTES:]
            return self.look()
        if stream not in self._decoders:
            self._decoders[stream] = getincrementaldecoder("utf-8")("replace")
        text = self._decoders[stream].decode(data, final=not data)
        shown = whole_words(text, self._left)
        rest = text[len(shown) :]
        self._left = 0 if rest else self._left - len(shown)
        if self._left > 0:
            return shown
        self._rest = rest.encode()[-_LOOK_BYTES:]
        return f"{shown}\n[only some lines of the rest are shown here]\n"

    def look(self) -> str:
        """Return the last whole lines that came since the last look, where it is time for one."""
        now = monotonic()
        if now < self._next_look or self._is_over or not self.waits:
            return ""
        self._next_look = now + LOOK_SECONDS
        is_cut = len(self._rest) == _LOOK_BYTES
        *lines, self._rest = self._rest.replace(b"\r", b"\n").split(b"\n")
        kept = b"\n".join(lines[is_cut:][-_LOOK_LINES:])
        return "\n" + kept.decode(errors="replace") + "\n" if len(kept) <= _SHOWN_BYTES else ""

    @property
    def waits(self) -> bool:
        """Whether lines wait for the next look."""
        return b"\n" in self._rest or b"\r" in self._rest


class CommandOutput:
    """What a command writes. Pieces come from one thread, and any other may look at what is there.

    `streams` is 2 where stdout and stderr are kept apart, 1 where they are one.
    """

    def __init__(
        self, most_chars: int, *, streams: int = 2, overflow: "OverflowFile | None" = None
    ) -> None:
        self._most_chars = most_chars
        self._streams = [KeptBytes(most_chars) for _ in range(streams)]
        self._lock = threading.Lock()
        self._recent = bytearray()
        #: The word at the end that was kept back, and the one that was told all the same.
        self._open = self._told = b""
        self.overflow = overflow

    @property
    def stdout(self) -> KeptBytes:
        """What came on standard output, or all there was."""
        return self._streams[0]

    @property
    def stderr(self) -> KeptBytes:
        """What came on standard error."""
        return self._streams[-1]

    @property
    def size(self) -> int:
        """How many bytes wait to be taken."""
        return sum(kept.size for kept in self._streams)

    @property
    def recent(self) -> str:
        """The end of all that came, whether it was taken or not: for a screen. It begins with a whole line, or word."""
        with self._lock:
            recent = bytes(self._recent)
        text = recent.decode(errors="replace").lstrip("\ufffd")
        return as_seen(from_line(text) if len(recent) == _RECENT_BYTES else text)

    def add(self, stream: int, data: bytes) -> None:
        """Take the next piece. Called by the thread that reads."""
        with self._lock:
            self._recent += data[-_RECENT_BYTES:]
            del self._recent[:-_RECENT_BYTES]
            self._streams[min(stream, len(self._streams) - 1)].add(data)
        if self.overflow is not None:
            self.overflow.add(data)

    def take(self, *, is_last: bool) -> KeptBytes:
        """Return the new output of the first stream since the last call; a character or a token cut in two waits for its end."""
        with self._lock:
            taken, fresh = self._streams[0], KeptBytes(self._most_chars)
            self._streams[0] = fresh
            if taken.size:
                taken.go_on(self._told)
                self._told = b""
            if not is_last:
                known, self._open = self._open, taken.split(self._open)
                fresh.add(self._open)
                if known and not self._open and taken.size == len(known):  # nothing but it
                    self._told = known
        return taken

    def join(self) -> None:
        """Make one stream of both, standard output first: what comes from now on stands in its order."""
        with self._lock:
            first, *others = self._streams
            for other in others:
                first.take_over(other)
            self._streams = [first]

    def close(self) -> None:
        """Close the file; nothing more will come."""
        if self.overflow is not None:
            self.overflow.close()


def _without_part(data: bytearray) -> bytearray:
    """Return the bytes without the beginning of a UTF-8 character at their end."""
    for back in range(1, min(_BYTES_OF_A_CHARACTER, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue  # it goes on a character
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return data[:-back] if length > back else data
    return data
