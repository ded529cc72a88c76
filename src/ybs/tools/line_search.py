"""Lines of files that a regular expression matches, found with Python's own `re` in a process of its own.

`re` cannot be interrupted, and every thread stands still while it matches: so it works where it can be killed.
The process gets one JSON object and writes JSON lines, each `[kind, value]`. It loads little, to start quickly.
"""

import json
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ybs.core.errors import ToolError
from ybs.tools.document import PROBE_BYTES, Document, is_binary, printable, text_of_part
from ybs.tools.files import MOST_BYTES, open_regular

LONGEST_LINE = 20_000  # only so much of a line is given to a pattern that may take its time
_MOST_OF_LINE = 5_000_000  # of a line in a file that is not held whole
LONGEST_SHOWN = 300
_BEFORE_MATCH = 100  # characters shown before a match far out in a line
_CPU_SECONDS = 60  # nobody is left to stop it after that
#: A pattern with neither of these looks at each place of a text once.
_REPEATS = re.compile(r"[*+{]|\(\?")
_NEEDS_LINES = re.compile(r"\\[AZz]")

Emit = Callable[[str, Any], None]


class Search:
    """A compiled pattern and what it found so far. Raises re.error and its like for a wrong one."""

    def __init__(self, pattern: str, *, context: int, most: int, emit: Emit) -> None:
        self._line = re.compile(pattern)
        is_quick = not _REPEATS.search(pattern)
        may_join = is_quick and not _NEEDS_LINES.search(pattern)
        self._text = re.compile(pattern, re.MULTILINE) if may_join else None
        self._longest = sys.maxsize if is_quick else LONGEST_LINE
        self._context, self._left, self._emit = context, most, emit

    def look_into(self, path: Path, name: str, count: int | None = None) -> None:
        """Tell the matching lines of a file, or only `count` where that is known and enough lines are shown."""
        try:
            descriptor, status = open_regular(path, name)
            with open(descriptor, "rb") as file:  # noqa: PTH123 - it wraps the descriptor
                beginning = file.read(PROBE_BYTES)
                if is_binary(beginning):
                    return
                if count is not None and self._left <= 0:
                    self._emit("total", count)
                elif status.st_size <= MOST_BYTES:
                    self._match_text(Document(beginning + file.read()).text, name)
                elif beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
                    self._emit("skipped", name)  # its lines end otherwise
                else:
                    self._match(self._lines_of(file, beginning, name), name)
        except (ToolError, OSError):
            self._emit("skipped", name)

    def _match_text(self, text: str, name: str) -> None:
        if text and (self._text is None or self._text.search(text)):
            self._match(text.removesuffix("\n").split("\n"), name)

    def _lines_of(self, file: BinaryIO, beginning: bytes, name: str) -> Iterator[str]:
        file.seek(0)
        while data := file.readline(_MOST_OF_LINE):
            more = data
            while more and not more.endswith(b"\n"):
                more = file.readline(_MOST_OF_LINE)
                if more:
                    self._emit("shortened", name)
            yield text_of_part(data, beginning).removesuffix("\n")

    def _match(self, lines: Iterable[str], name: str) -> None:
        recent: deque[str] = deque(maxlen=self._context)
        open_matches: deque[dict[str, Any]] = deque()
        total, search, longest = 0, self._line.search, self._longest
        for number, line in enumerate(lines, 1):
            if open_matches:
                self._add_after(open_matches, line)
            if len(line) > longest:
                self._emit("shortened", name)
            if found := search(line[:longest]):
                total += 1
                if self._left > 0:
                    self._left -= 1
                    open_matches.append(_match(name, number, line, found.start(), recent))
            recent.append(line)
        for match in open_matches:
            self._emit("match", match)
        if total:
            self._emit("total", total)

    def _add_after(self, matches: deque[dict[str, Any]], line: str) -> None:
        for match in matches:
            if len(match["context_after"]) < self._context:
                match["context_after"].append(_shortened(line))
        while matches and len(matches[0]["context_after"]) >= self._context:
            self._emit("match", matches.popleft())


def _match(name: str, number: int, line: str, place: int, before: Iterable[str]) -> dict[str, Any]:
    return {
        "file": name,
        "line": number,
        "content": _shortened(line, place),
        "context_before": [_shortened(line) for line in before],
        "context_after": [],
    }


def _shortened(line: str, place: int = 0) -> str:
    start = place - _BEFORE_MATCH if place > LONGEST_SHOWN - _BEFORE_MATCH else 0
    start = start if len(line) > LONGEST_SHOWN else 0
    shown = line[start : start + LONGEST_SHOWN]
    head = "[...] " if start else ""
    tail = " [...]" if start + LONGEST_SHOWN < len(line) else ""
    return printable(f"{head}{shown}{tail}")


def run(request: dict[str, Any], emit: Emit) -> None:
    """Do one search; what is found goes to `emit` as it is found."""
    try:
        search = Search(
            request["pattern"], context=request["context"], most=request["most"], emit=emit
        )
    except (re.error, OverflowError, RecursionError) as error:
        emit("error", str(error))
        return
    paths: Sequence[str] = request["paths"]
    counts: dict[str, int] = request["counts"] or {}
    for path in paths:
        search.look_into(Path(request["folder"], path), path, counts.get(path))


def main() -> None:
    """Answer the request on standard input."""
    import resource  # only the own process has limits

    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))

    def write(kind: str, value: Any) -> None:
        sys.stdout.write(json.dumps([kind, value]) + "\n")
        sys.stdout.flush()  # it may be killed at any time

    run(json.loads(sys.stdin.buffer.read()), write)
