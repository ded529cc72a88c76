"""Shorten the documents for a small model: short ones whole, of long ones the few lines that concern the request."""

import re
from collections.abc import Sequence

from ybs.context.prompt import Section, framed_of
from ybs.core.lazy import lazy

#: Words that say nothing about what a line is about.
_COMMON = """
this that with from what which does have file into them they there their then where when should would could please only must will some
same such than these those your after before
"""
#: A document of so many characters is told whole; of all others together there are as many lines as fit.
WHOLE_CHARS = 240
MOST_CHARS = 400
_FEWEST_LETTERS = 4
_DAY = lazy(
    r"(?i)\b(?:today|tomorrow|yesterday|dates?|dated|day|days|week|month|year|changelog|copyright)\b"
)
_WORD = lazy(r"[^\W\d_]+")


def asks_for_date(words: str) -> bool:
    """Return whether the words may need to know what day it is."""
    return re.search(_DAY(), words) is not None


def brief_of(sections: Sequence[Section], words: str) -> str:
    """Return the parts of the documents that concern a request; nothing where no part does."""
    wanted = _stems(words)
    left, told = MOST_CHARS, list[str]()
    for section in sections:
        if len(section.text) <= WHOLE_CHARS:
            told.append(framed_of(section))
            continue
        lines = _lines_about(section.text, wanted, left)
        left -= sum(map(len, lines))
        if lines:
            told.append(framed_of(_part(section, lines)))
    return "\n".join(told)


def _part(section: Section, lines: Sequence[str]) -> Section:
    source = f"{section.source}, lines that may matter" if section.source else ""
    return Section(name=section.name, text="\n".join(lines), source=source, is_cut=True)


def _lines_about(text: str, wanted: set[str], most: int) -> list[str]:
    """Return the lines with most of the words, in the order in which they stand; of a line that is too long its sentences."""
    lines = [part for line in text.split("\n") for part in _fitting(line.strip())]
    scored = [(len(wanted & _stems(line)), -number) for number, line in enumerate(lines)]
    kept: list[int] = []
    for score, number in sorted(scored, reverse=True):
        line = lines[-number]
        if not score or len(line) > most:
            break
        if not line.startswith("#"):
            kept.append(-number)
            most -= len(line)
    return [lines[number] for number in sorted(kept)]


def _fitting(line: str) -> list[str]:
    """Return a line, or where it could never be told its sentences that could: some write a paragraph in one line."""
    if len(line) <= MOST_CHARS:
        return [line]
    return [part for part in re.split(r"(?<=[.!?])\s+", line) if len(part) <= MOST_CHARS]


def _stems(text: str) -> set[str]:
    """Return the beginnings of the longer words, so that `tests` and `testing` are one."""
    words, common = (word.lower() for word in re.findall(_WORD(), text)), _COMMON.split()
    return {word[:4] for word in words if len(word) >= _FEWEST_LETTERS and word not in common}
