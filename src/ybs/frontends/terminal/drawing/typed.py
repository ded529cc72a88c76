"""The output of a command that the person typed: its beginning at once, its end when it has ended."""

from collections import deque

from ybs.frontends.terminal.drawing.folds import KeptText
from ybs.frontends.terminal.words import shown_line

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
