"""Lines of files that a regular expression matches, found with Python's own `re`.

`re` cannot be interrupted while it matches, so patterns and lines that could take for ever are kept from it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ybs.core.errors import ToolError
from ybs.tools.document import PROBE_BYTES, Document, is_binary
from ybs.tools.files import MOST_BYTES, open_regular, read_bytes

LONGEST_LINE = 5000  # only the beginning of longer lines is looked at
#: A repeated group with a repetition in it, such as `(a+)+`: it can take time without bounds.
_NESTED = re.compile(r"\((?:[^()\\]|\\.)*(?<!\\)[+*}](?:[^()\\]|\\.)*\)(?:[+*]|\{\d+,)")
#: What means something else in a whole text than in a line.
_NEEDS_LINES = re.compile(r"\\[AZz]|\(\?")


class Searcher:
    """A compiled pattern and how it is applied to a file."""

    def __init__(self, pattern: str) -> None:
        """Compile the pattern. Raises ToolError for one that is wrong or could take for ever."""
        if _NESTED.search(pattern):
            raise ToolError(
                f"The pattern {pattern!r} repeats a repetition, which can take for ever. Write it simpler."
            )
        try:
            self._line = re.compile(pattern)
            self._text = None if _NEEDS_LINES.search(pattern) else re.compile(pattern, re.MULTILINE)
        except (re.error, OverflowError, RecursionError) as error:
            raise ToolError(
                f"The pattern {pattern!r} is no regular expression: {error}. "
                "Characters such as ( [ { . * + ? stand for themselves behind a backslash."
            ) from error

    def lines_of(self, path: Path) -> list[str]:
        """Return the lines of a text file; none for a binary, a huge or an unreadable one."""
        try:
            data = read_bytes(path, str(path))[0]
        except ToolError:
            return []
        if is_binary(data):
            return []
        return Document(data).text.removesuffix("\n").split("\n") if data else []

    def is_text(self, path: Path) -> bool:
        """Tell, from its beginning alone, whether the file has lines that count."""
        try:
            descriptor, status = open_regular(path, str(path))
        except ToolError:
            return False
        with open(descriptor, "rb") as file:  # noqa: PTH123 - it wraps the descriptor
            return status.st_size <= MOST_BYTES and not is_binary(file.read(PROBE_BYTES))

    def matching(self, lines: list[str]) -> Iterator[int]:
        """Yield the index of every line that matches."""
        longest = max(map(len, lines), default=0)
        if longest > LONGEST_LINE:
            lines = [line[:LONGEST_LINE] for line in lines]
        elif self._text is not None and not self._text.search("\n".join(lines)):
            return
        search = self._line.search
        for index, line in enumerate(lines):
            if search(line):
                yield index
