"""What a session's texts were found to hold, so that none is searched twice on its way through the session."""

from collections.abc import Sequence

from msgspec import Struct

#: So many characters are remembered, and no text that is longer than a quarter of it.
MOST_CHARACTERS = 1_000_000


class Finding(Struct, frozen=True):
    """A secret in a text: its kind, and its first and last character (`end` is the one after it)."""

    kind: str
    start: int
    end: int


class Memory:
    """Texts and their findings, the oldest forgotten first. The key is the text itself: no two can be mistaken."""

    def __init__(self, most: int = MOST_CHARACTERS) -> None:
        self._most = most
        self._size = 0
        self._findings: dict[str, Sequence[Finding]] = {}

    def __len__(self) -> int:
        return len(self._findings)

    def get(self, text: str) -> Sequence[Finding] | None:
        """Return what was found in the text; None where it is unknown."""
        return self._findings.get(text)

    def add(self, text: str, findings: Sequence[Finding] = ()) -> None:
        """Remember what was found."""
        if text in self._findings or len(text) * 4 > self._most:
            return
        self._findings[text] = findings
        self._size += len(text)
        while self._size > self._most:
            oldest = next(iter(self._findings))
            del self._findings[oldest]
            self._size -= len(oldest)

    def clear(self) -> None:
        """Forget everything, because another search may find more or less."""
        self._findings.clear()
        self._size = 0
