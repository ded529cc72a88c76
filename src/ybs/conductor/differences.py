"""How two states of a path differ, in words and lines, as people are asked and models are told. What is too large to be shown is said to be, and never passes for nothing."""

from collections.abc import Callable
from typing import Final

from ybs.checkpoints.states import State
from ybs.tools.editing.changes import text_diff

#: Of larger files a question shows no lines, and what a model is told of a conflict compares none.
MOST_SHOWN_BYTES: Final = 1_000_000
MOST_COMPARED_BYTES: Final = 200_000
#: A line has about so many bytes.
_USUAL_LINE: Final = 40
_EXECUTABLE: Final = 0o111


class Differences:
    """Compares states whose contents `get` returns by their digests; of files of more than so many bytes no lines."""

    def __init__(self, get: Callable[[str], bytes | None], most_bytes: int) -> None:
        self._get, self._most_bytes = get, most_bytes

    def text(self, before: State, after: State, shown: str) -> str:
        """Return how a path of this name changes, whole: what stands there if that is not a text, its lines, and its mode. Raises OSError."""
        old, new = self._content(before), self._content(after)
        parts = [self._words(before, after, old, new), "", _mode(before, after)]
        if new is not None or (old is not None and after.kind != "file"):
            parts[1] = "" if old == new else text_diff(old, new or b"", shown).text
        return "\n".join(filter(None, parts))

    def lines(self, before: State, after: State, shown: str) -> int:
        """Return how many lines a change takes away and adds; of what has none, or too many, by its size. Raises OSError."""
        old, new = self._content(before), self._content(after)
        sides = ((before, old), (after, new))
        has_lines = all(content is not None or state.kind == "absent" for state, content in sides)
        if not has_lines:
            return max(before.size, after.size) // _USUAL_LINE + 1
        diff = text_diff(old, new or b"", shown)
        return max(diff.added + diff.removed, 1)

    def _content(self, state: State) -> bytes | None:
        """Return what a file holds; None where there is none, or none that is shown."""
        is_shown = state.kind == "file" and state.digest and state.size <= self._most_bytes
        return self._get(state.digest) if is_shown else None

    def _words(self, before: State, after: State, old: bytes | None, new: bytes | None) -> str:
        """Return what stood and stands there; nothing where lines say all of it."""
        was, now = _named(before, old), _named(after, new)
        if all(each in ("", _FILE) for each in (was, now)):
            return ""
        return f"{now}, in the place of {was}" if was and now else was or now


_FILE: Final = "a file"


def _named(state: State, content: bytes | None) -> str:
    if content is not None:
        return _FILE
    return {
        "absent": "",
        "file": f"a file of {state.size:,} bytes, too large to be shown",
        "link": f"a link to {state.target}",
        "folder": "a folder",
        "other": "what may not be read",
    }[state.kind]


def _mode(before: State, after: State) -> str:
    """Return how the mode of a file changes, as far as that matters to who is asked."""
    if after.kind != "file":
        return ""
    if before.kind == "file" and before.mode != after.mode:
        return f"its mode becomes {after.mode:o}, and was {before.mode:o}{_run(before, after)}"
    return f"its mode is {after.mode:o}{_run(before, after)}" if is_made_executable(before, after) else ""  # fmt: skip


def _run(before: State, after: State) -> str:
    return ": it can be executed" if is_made_executable(before, after) else ""


def is_made_executable(before: State, after: State) -> bool:
    """Return whether somebody may execute a file after a change who could not before."""
    return bool(after.mode & ~before.mode & _EXECUTABLE)
