"""An edit as a model tells it: the lines it means, and what it says instead of them."""

import re
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from edits.mining import Edit

#: What models write for each other, in both directions.
PUNCTUATION = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2013": "-",
    "\u2014": "-",
    "\u2026": "...",
    "\u00a0": " ",
}
_TO_ASCII = str.maketrans(PUNCTUATION)
_MOST_CONTEXT = 3


def plain(line: str) -> str:
    """Return a line without what the gentle rungs overlook: punctuation's form and trailing space."""
    return line.translate(_TO_ASCII).rstrip()


def loose(lines: list[str]) -> list[str]:
    """Return lines without anything that any rung may overlook but words: blank lines go too."""
    return [line for line in (re.sub(r"\s+", " ", plain(line)).strip() for line in lines) if line]


def occurs(block: list[str], lines: list[str]) -> int:
    """Count the places of a block in a file, overlooking all but the words. A part of a line is a place too."""
    return "\n".join(loose(lines)).count("\n".join(loose(block)))


@dataclass
class Line:
    """A line of the edit. A `ghost` stands in what the model says only, in both texts."""

    kind: Literal["keep", "cut", "add", "ghost"]
    real: str
    said: str | None  # None: not mentioned


@dataclass
class Draft:
    """An edit being told. `lines` may be told wrong; what is meant does not change."""

    edit: Edit
    lines: list[Line]
    start: int  # the first line of the block in the file
    stop: int
    has_final_newline: bool
    line_end: str = "\n"
    mark: str = ""
    told: tuple[str, str] | None = field(default=None)  # set by a slip of the whole text

    @property
    def block(self) -> list[str]:
        """The lines of the file that the edit is about."""
        return self.edit.before[self.start : self.stop]

    def real(self, *kinds: str) -> list[str]:
        """Return the true lines of some kinds."""
        return [line.real for line in self.lines if line.kind in kinds]

    @property
    def old(self) -> str:
        """What the model gives as old text."""
        return self.told[0] if self.told else self._text("keep", "cut", "ghost")

    @property
    def new(self) -> str:
        """What the model gives as new text."""
        return self.told[1] if self.told else self._text("keep", "add", "ghost")

    def said(self, *kinds: str) -> list[str]:
        """Return what the model says for the lines of some kinds."""
        return [line.said for line in self.lines if line.kind in kinds and line.said is not None]

    def _text(self, *kinds: str) -> str:
        lines = self.said(*kinds)
        return "\n".join(lines) + ("\n" if self.has_final_newline and lines else "")

    @property
    def before(self) -> str:
        """The file."""
        return self.file(self.edit.before)

    @property
    def after(self) -> str:
        """The file as it is meant to become."""
        return self.file(self.edit.after)

    def file(self, lines: list[str]) -> str:
        """Return a file of these lines with the line ends and the mark that this one has."""
        return self.mark + self.line_end.join(lines)


def draft_of(edit: Edit, random: Random, fewest_lines: int = 1, context: int = 0) -> Draft | None:
    """Tell an edit rightly, with enough context to be unique in the file; None where that needs too much."""
    end = len(edit.before) - (edit.before[-1] == "")  # behind a final newline is no line
    if edit.stop > end:  # of two blank lines around what is cut, nothing tells which one goes
        return None
    most = max(_MOST_CONTEXT, context)
    above, below = random.randint(context, most), random.randint(context, most)
    while True:
        start, stop = max(0, edit.start - above), min(end, edit.stop + below)
        block = edit.before[start:stop]
        is_enough = len(loose(block)) >= fewest_lines and occurs(block, edit.before) == 1
        if is_enough or (above >= most and below >= most):
            break
        above, below = min(most, above + 1), min(most, below + 1)
    if not is_enough or occurs(block, edit.before) != 1:
        return None
    kept_above = [Line("keep", text, text) for text in edit.before[start : edit.start]]
    kept_below = [Line("keep", text, text) for text in edit.before[edit.stop : stop]]
    changed = [Line(op.kind, op.text, op.text) for op in edit.ops]
    has_newline = stop < len(edit.before)
    lines = [*kept_above, *changed, *kept_below]
    needs_newline = _needs_newline(lines)
    if needs_newline and not has_newline:
        return None
    final = has_newline and (needs_newline or random.random() < 0.5)
    return Draft(edit, lines, start, stop, final, edit.line_end, edit.mark)


def _needs_newline(lines: list[Line]) -> bool:
    """Return whether a text without final newline would say something else: one that is empty or ends blank."""
    old = [line.real for line in lines if line.kind != "add"]
    new = [line.real for line in lines if line.kind != "cut"]
    return not new or not old[-1].strip() or not new[-1].strip()
