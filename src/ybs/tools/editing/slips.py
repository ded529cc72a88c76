r"""Undoes what models add to a text on the way: line numbers from read_file, `\n` for a line end."""

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

LINE_NUMBERS = "line numbers"
_NUMBERED = re.compile(r"[ \t]*(\d{1,7})(\t|\u2192|: |:|[ ]?\|[ ]?|$)(.*)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SINGLE_QUOTE = re.compile(r"(?<![\w\\])'|(?<!\\)'(?!\w)")  # not the one within a word
_MEANT = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\", "r": "", "`": "`", "/": "/"}
_SETS = ("nt\"\\r'", '"\\', '"', "nt", "'", "n", "`", "\\")


class Reading(Struct, frozen=True):
    """Another way to read the two texts of an edit; `how` says what it overlooks."""

    old: str
    new: str
    how: str


def readings(old: str, new: str) -> Iterator[Reading]:
    """Yield what the model may have meant, nearest first."""
    numbered = _without_numbers(old, new)
    if numbered:
        yield numbered
    yield from _unescaped(old, new, "")
    if numbered:
        yield from _unescaped(numbered.old, numbered.new, f"{numbered.how}, ")


def _without_numbers(old: str, new: str) -> Reading | None:
    lines = old.split("\n")
    found = [_NUMBERED.fullmatch(line) for line in lines]
    is_first_bare = len(lines) > 2 and found[0] is None  # a first line and two more
    hits = [hit for hit, line in zip(found, lines, strict=True) if line.strip()]
    hits = hits[1:] if is_first_bare else hits
    known = [hit for hit in hits if hit]
    if not known or len(known) < len(hits):
        return None
    numbers = [int(hit[1]) for hit in known]
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        return None
    marks = {_mark_of(hit) for hit in known if hit[3]}
    if len(marks) != 1:
        return None
    mark = marks.pop()
    is_wide = all(hit[2].endswith(" ") for hit in known if hit[3])
    return Reading(
        _cut(lines, lines, mark, is_wide=is_wide),
        _cut(new.split("\n"), lines, mark, is_wide=is_wide),
        LINE_NUMBERS,
    )


def _cut(lines: list[str], old: list[str], mark: str, *, is_wide: bool) -> str:
    kept: list[str] = []
    for line in lines:
        hit = _NUMBERED.fullmatch(line)
        if hit and (_mark_of(hit) == mark if hit[2] else line in old):
            gap = " " if hit[2].endswith(" ") and not is_wide else ""
            kept.append(gap + hit[3])
        else:
            kept.append(line)
    return "\n".join(kept)


def _mark_of(hit: re.Match[str]) -> str:
    return hit[2].strip(" ") or hit[2]


def _unescaped(old: str, new: str, how: str) -> Iterator[Reading]:
    if "\\" not in old:
        return
    seen = {old}
    for characters in _SETS:
        read = _read(old, characters)
        if read in seen:
            continue
        seen.add(read)
        meant = _read(new, characters)
        if not _breaks_a_string(meant, read):
            yield Reading(read, meant, f"{how}escapes")


def _read(text: str, characters: str) -> str:
    return _ESCAPE.sub(lambda hit: _MEANT[hit[1]] if hit[1] in characters else hit[0], text)


def _breaks_a_string(new: str, old: str) -> bool:
    r"""Tell whether a line that only the new text has holds half a string: its `\n` was meant as such."""
    known = set(old.split("\n"))
    added = [line for line in new.split("\n") if line not in known]
    if any(line.replace('"""', "").replace('\\"', "").count('"') % 2 for line in added):
        return True
    halves = [line for line in added if len(_SINGLE_QUOTE.findall(line.replace("'''", ""))) % 2]
    return len(halves) > 1  # one alone may be an apostrophe
