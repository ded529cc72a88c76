"""Draws unified diffs with the numbers of their lines, the colours of their language, and the changed words marked."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import TypeAlias

from msgspec import Struct

from ybs.frontends.terminal.signs import Paint, Signs
from ybs.frontends.terminal.words import NARROW, cells, wrap_words
from ybs.security.unicode import unabridged

#: Lines of a diff that are shown below its step; of a new file the first ones.
MAX_DIFF, MAX_NEW = 40, 12
#: Rows and characters above which nothing is coloured: a screen that stands still is worse.
_MOST_ROWS, _MOST_CHARACTERS = 3_000, 100_000
#: Lines longer than this are not compared word by word, nor those that have less than this in common.
_MOST_COMPARED, _ALIKE = 500, 0.5
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_TAB = 4
#: A part of a line, from and to, and the attributes that it is drawn with: on and off.
_Span: TypeAlias = tuple[int, int, int, int]


class _Row(Struct):
    """A line of a diff: `sign` is `+`, `-` or a blank, else it stands alone; `number` is its place in the file."""

    sign: str
    text: str
    number: int | None = None
    spans: Sequence[_Span] = ()
    marks: Sequence[tuple[int, int]] = ()
    is_of_new_file: bool = False


def diff_lines(
    text: str, width: int, paint: Paint, signs: Signs, *, has_names: bool = False
) -> list[str]:
    """Draw a unified diff whole, long lines folded; the name of a single file only with `has_names`.

    Nothing else of the text is left out, whatever its lines look like: a question may show what is no diff.
    """
    lines = unabridged(text.replace("\r\n", "\n")).expandtabs(_TAB).strip("\n").split("\n")
    rows = _rows(lines)
    if not has_names and _is_of_one_file(lines, rows):
        rows = rows[2:]
    if len(rows) <= _MOST_ROWS and len(text) <= _MOST_CHARACTERS:
        _mark_words(rows)
        if paint.has_colour:
            _colour(rows, _name_in(lines))
    digits = max((len(str(row.number)) for row in rows if row.number is not None), default=0)
    return [line for row in rows for line in _drawn(row, digits, width, paint, signs)]


def short_diff(lines: list[str], text: str, most: int = 0) -> tuple[list[str], int, list[str]]:
    """Leave out the middle of a long diff, or all but the head of a new file.

    Returns what is above, how many lines are left out, and what is below.
    """
    is_new = text.startswith("--- /dev/null\n")
    most = most or (MAX_NEW if is_new else MAX_DIFF)
    if len(lines) <= most + 1:
        return lines, 0, []
    end = 0 if is_new else most // 3
    return lines[: most - end], len(lines) - most, lines[len(lines) - end :]


def _name_in(lines: Sequence[str]) -> str:
    """Return the name of the one file of a diff; "" where it tells of several, or of none."""
    names = [line[4:] for line in lines if line.startswith(("--- ", "+++ "))][:2]
    return next((name for name in reversed(names) if name != "/dev/null"), "")


def _is_of_one_file(lines: Sequence[str], rows: Sequence[_Row]) -> bool:
    """Return whether the names of a single file, and then its changes, begin the diff."""
    names = [place for place, row in enumerate(rows) if row.sign == "n"]
    return names == [0, 1] and _HUNK.fullmatch("".join(lines[2:3])) is not None


def _rows(lines: Sequence[str]) -> list[_Row]:
    rows: list[_Row] = []
    old = new = old_left = new_left = 0
    is_new = numbered = has_left = False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        is_in_hunk = old_left > 0 or new_left > 0
        if found := _HUNK.fullmatch(line):
            old, old_left, new, new_left = (int(count or 1) for count in found.groups()[:4])
            rows += [_Row("@", found[5])] if numbered or found[5] else []
            numbered = True
        elif has_left or (not is_in_hunk and line.startswith("--- ") and after[:4] == "+++ "):
            # The two lines of names, of which the first has been seen to stand before the second.
            is_new, numbered = is_new if has_left else line == "--- /dev/null", False
            has_left = not has_left
            rows.append(_Row("n", line))
        elif (sign := line[:1]) in ("+", "-", " ") and line:
            number = old if sign == "-" else new
            rows.append(_Row(sign, line[1:], number if numbered else None, is_of_new_file=is_new))
            old, old_left = old + (sign != "+"), old_left - (sign != "+")
            new, new_left = new + (sign != "-"), new_left - (sign != "-")
        else:
            rows.append(_Row("", line))
    return rows


def _mark_words(rows: Sequence[_Row]) -> None:
    """Mark what differs between lines that took each other's place."""
    place = 0
    while place < len(rows):
        removed = [*takewhile(lambda row: row.sign == "-", rows[place:])]
        behind = place + len(removed)
        added = [*takewhile(lambda row: row.sign == "+", rows[behind:])] if removed else []
        for old, new in zip(removed, added, strict=False):
            old.marks, new.marks = _changed(old.text, new.text)
        place = behind + len(added) or place
        place += not removed


def _changed(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the differing parts of two lines; none if they have little in common."""
    if max(len(old), len(new)) > _MOST_COMPARED:
        return [], []
    from difflib import SequenceMatcher

    words = _WORDS.findall(old), _WORDS.findall(new)
    matcher = SequenceMatcher(None, *words, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return [], []
    starts = [_starts(each) for each in words]
    parts = [part for part in matcher.get_opcodes() if part[0] != "equal"]
    return (
        [(starts[0][part[1]], starts[0][part[2]]) for part in parts if part[1] < part[2]],
        [(starts[1][part[3]], starts[1][part[4]]) for part in parts if part[3] < part[4]],
    )


def _starts(words: Sequence[str]) -> list[int]:
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return starts


def _colour(rows: Sequence[_Row], name: str) -> None:
    """Colour what stands in the file now in the colours of its language; what was removed is one colour."""
    now = [row for row in rows if row.sign in ("+", " ") and row.sign]
    if not name or not now:
        return
    from ybs.frontends.terminal.drawing.code import spans_of  # pygments

    for row, spans in zip(now, spans_of([row.text for row in now], name), strict=False):
        row.spans = spans


def _drawn(row: _Row, digits: int, width: int, paint: Paint, signs: Signs) -> Iterator[str]:
    margin = "    " if width >= NARROW else "  "
    if row.sign not in ("+", "-", " ") or not row.sign:
        text = signs.more * (row.sign == "@") + row.text
        for index, piece in enumerate(wrap_words(text, width - cells(margin) - 2)):
            shown = margin + "  " * bool(index) + piece
            yield paint.bold(shown) if row.sign == "n" else paint.dim(shown) if text else ""
        return
    number = "" if row.number is None else str(row.number)
    column = f"{number.rjust(digits)} " if digits else ""
    start = 0
    colour = {"+": paint.good, "-": paint.bad}.get(row.sign, paint.dim)
    for index, piece in enumerate(wrap_words(row.text, width - cells(margin) - cells(column) - 1)):
        sign = f"{' ' * len(column)}{signs.folded}" if index else column + row.sign
        yield f"{margin}{colour(sign)}{_styled(piece, start, row, paint)}".rstrip()
        start += len(piece)


def _styled(piece: str, start: int, row: _Row, paint: Paint) -> str:
    """Draw a part of a line; each run of one style ends its attributes itself."""
    base = {"+": 32, "-": 31}.get(row.sign, 0) * (paint.has_colour and not row.is_of_new_file)
    mark = (7, 27) if paint.has_colour else (1, 22)
    edges = {start, start + len(piece)}
    for span in (*row.spans, *row.marks):
        edges.update(edge for edge in span[:2] if start < edge < start + len(piece))
    drawn = ""
    cuts = sorted(edges)
    for first, last in pairwise(cuts):
        codes = [span[2:] for span in row.spans if span[0] <= first < span[1]]
        if base and not any(on > 2 for on, _ in codes):
            codes.append((base, 39))
        codes += [mark for span in row.marks if span[0] <= first < span[1]]
        text = piece[first - start : last - start]
        on = "".join(f"\x1b[{code[0]}m" for code in codes)
        drawn += on + text + "".join(f"\x1b[{code[1]}m" for code in reversed(codes))
    return drawn
