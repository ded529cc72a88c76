"""Identity: what the model has noted about itself, one dated line each, in the person's IDENTITY.md."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

from ybs.config import private_file
from ybs.context.document_text import without_hidden_characters
from ybs.core.errors import Refused, ToolError

MOST_BYTES = 8_000
LONGEST_LINE = 300  # characters
_NAME = "IDENTITY.md"


class Identity:
    """IDENTITY.md in the folder `own`: it only grows, and the person may edit or delete it.

    `mask` takes secrets out of a line; where `may_write` is false (incognito) nothing is written.
    """

    def __init__(
        self,
        own: Path,
        *,
        mask: Callable[[str], str],
        may_write: bool,
        today: Callable[[], date] = date.today,
    ) -> None:
        self.path = own / _NAME
        self._mask, self._may_write, self._today = mask, may_write, today

    def draft(self, text: str) -> str:
        """Return the line that `append` would add. It blocks.

        Raises Refused in incognito, and ToolError for what is empty, too long, there already, or has no room.
        """
        if not self._may_write:
            from ybs.security.incognito import WRITES_NOTHING

            raise Refused(f"Nothing was added to {_NAME}: {WRITES_NOTHING}.")
        line = line_of(
            self._mask(line_of(text))
        )  # the whole line is masked, before anything is cut
        self._fitting(line, self._read())
        return line

    def append(self, text: str) -> str:
        """Add a line and return it. It blocks, and raises what `draft` does, also where the file cannot be written."""
        line = self.draft(text)
        try:
            with private_file.PrivateLog(self.path) as log:
                log.append(self._fitting(line, self._read()))
        except (private_file.Busy, private_file.Unsafe, OSError) as error:
            raise ToolError(f"Nothing was added to {_NAME}: {error}") from error
        return line

    def _read(self) -> bytes:
        try:
            return private_file.read(self.path) or b""
        except (private_file.Unsafe, OSError) as error:
            raise ToolError(f"Nothing was added to {_NAME}: {error}") from error

    def _fitting(self, line: str, there: bytes) -> bytes:
        if line.casefold() in map(_said, there.decode("utf-8", "replace").splitlines()):
            raise ToolError(f"{_NAME} says that already; nothing was added.")
        data = f"- {self._today().isoformat()}: {line}\n".encode("utf-8", "replace")
        if there and not there.endswith(b"\n"):
            data = b"\n" + data
        if len(there) + len(data) > MOST_BYTES:
            raise ToolError(
                f"{_NAME} is full ({len(there):,} of {MOST_BYTES:,} bytes) and nothing was added. "
                f"Only the person can shorten it: they delete lines of {self.path} that no longer matter."
            )
        return data


def line_of(text: str) -> str:
    """Return a text as one printable line. Raises ToolError for an empty one, and for one that is too long."""
    line = " ".join(without_hidden_characters(text).split())
    if not line:
        raise ToolError("There is nothing to note: the text is empty.")
    if len(line) > LONGEST_LINE:
        raise ToolError(
            f"The text has {len(line):,} characters and may have {LONGEST_LINE}. Say it in one sentence."
        )
    return line


def _said(line: str) -> str:
    """Return what a line of the file says, without its date."""
    text = line.strip().removeprefix("- ")
    day, colon, said = text.partition(": ")
    is_dated = bool(colon) and len(day) == len("2026-01-31") and day.replace("-", "").isdigit()
    return (said if is_dated else text).casefold()
