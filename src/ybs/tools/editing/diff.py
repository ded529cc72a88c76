"""Unified diffs, whole: what the person reads before and after a write; and the texts that a `FileChange` keeps."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.changes import FileChange
from ybs.tools.reading.document import printable

_CONTEXT = 3
_MOST_LINES = 3000  # beyond this the changed part is shown as one block
#: A change keeps the whole file if `before` and `after` together have at most so many characters, else the lines that
#: include every change; if those have more than `MOST_KEPT`, it keeps no text.
MOST_WHOLE, MOST_KEPT = 40_000, 200_000


class Diff(Struct, frozen=True):
    """A unified diff as text, and how many lines it adds and removes."""

    text: str
    added: int
    removed: int

    @property
    def counts(self) -> str:
        """The counts as `+3 -1`."""
        return f"+{self.added} -{self.removed}"


def diff_of(before: str, after: str, name: str, *, first_line: int = 1) -> Diff:
    """Compare two texts that begin at `first_line` of a file; `name` is its path in the heading."""
    old, new = _lines(before), _lines(after)
    skip, old, new = _changed(old, new)
    begin = skip + first_line - 1
    lines = [line for group in _groups(old, new) for line in _hunk(group, old, new, begin)]
    if not lines:
        return Diff("", 0, 0)
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    source = f"--- {name}" if before else "--- /dev/null"
    target = f"+++ {name}" if after else "+++ /dev/null"
    return Diff(printable("\n".join((source, target, *lines))), added, removed)


def change_of(path: str, before: str | None, after: str | None, diff: Diff) -> FileChange:
    """Return the change of a file that `diff` shows, with as much of its texts as is kept."""
    change = FileChange(
        path=path, before=before, after=after, added=diff.added, removed=diff.removed
    )
    old, new = before or "", after or ""
    if len(old) + len(new) <= MOST_WHOLE:
        return change
    skip, *parts = _changed(_whole_lines(old), _whole_lines(new))
    if sum(len(line) for part in parts for line in part) > MOST_KEPT:
        return change.without_texts("the change is too long to be kept")
    old, new = map("".join, parts)
    return replace(change, before=before and old, after=after and new, first_line=skip + 1)


def diff_of_change(change: FileChange) -> str:
    """Return a change as a unified diff, or a line that says why there is none."""
    if change.omitted:
        return f"{change.path}: {change.omitted}"
    texts = change.before or "", change.after or ""
    return diff_of(*texts, change.path, first_line=change.first_line).text


def _changed(old: list[str], new: list[str]) -> tuple[int, list[str], list[str]]:
    """Return the lines of both texts that include every change, with their context, and how many stand before them."""
    head = shared(old, new)
    tail = shared(old[head:][::-1], new[head:][::-1])
    skip, keep = max(head - _CONTEXT, 0), max(tail - _CONTEXT, 0)
    return skip, old[skip : len(old) - keep], new[skip : len(new) - keep]


_Group = list[tuple[str, int, int, int, int]]


def _whole_lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    return [*(f"{line}\n" for line in lines), *[last] * bool(last)]


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"
        return lines
    return lines[:-1]


def _groups(old: list[str], new: list[str]) -> Iterator[_Group]:
    if old == new:
        return
    head = shared(old, new)
    tail = shared(old[head:][::-1], new[head:][::-1])
    middle = len(old) - head - tail, len(new) - head - tail
    if min(middle) == 0 or max(middle) > _MOST_LINES:
        yield [
            ("equal", 0, head, 0, head),
            ("replace", head, len(old) - tail, head, len(new) - tail),
            ("equal", len(old) - tail, len(old), len(new) - tail, len(new)),
        ]
        return
    from difflib import SequenceMatcher  # loaded when the first real change is shown

    yield from SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT)


def _hunk(group: _Group, old: list[str], new: list[str], skip: int) -> Iterator[str]:
    first, last = group[0], group[-1]
    ranges = _range(first[1] + skip, last[2] + skip), _range(first[3] + skip, last[4] + skip)
    yield f"@@ -{ranges[0]} +{ranges[1]} @@"
    for kind, old_start, old_stop, new_start, new_stop in group:
        if kind == "equal":
            yield from (f" {line}" for line in old[old_start:old_stop])
            continue
        yield from (f"-{line}" for line in old[old_start:old_stop])
        yield from (f"+{line}" for line in new[new_start:new_stop])


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def shared(one: Sequence[str], two: Sequence[str]) -> int:
    """Return how many characters, or lines, the two have in common at their beginning."""
    count = 0
    for mine, theirs in zip(one, two, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
