"""Draws Markdown as lines of the screen: whole blocks, and the block that is still being written."""

import re
from collections.abc import Callable

from ybs.security.unicode import printable
from ybs.ui.signs import Paint

#: A block that is being written is drawn anew this often at most, and uses this part of the time.
DRAWN_PER_SECOND = 12
LOAD = 0.1
#: Narrower screens have no margin.
MARGIN_FROM = 39
_FENCES = ("```", "~~~")
#: Emphasis or code that was begun and not ended; perhaps half of its end has come.
_OPEN_MARK = re.compile(r"(?:^|(?<=[\s(]))(\*\*|\*|`)(?=[^\s*`])[^*`]*?(?P<half>\*?)$")
_BARE_MARK = re.compile(r"(?:^|(?<=[\s(]))(?:\*{1,3}|`{1,2})$")
#: A last line of these alone may become a rule, a heading, a list or a table.
_UNDECIDED = re.compile(r"\n[-=*+#>|:.\d \t]*$")


def prose_lines(markup: str, width: int, paint: Paint) -> list[str]:
    """Draw Markdown in at most `width` columns."""
    from ybs.ui.markdown import draw  # rich: heavy, and not needed before the first words

    margin = "  " if width >= MARGIN_FROM else ""
    text = draw(printable(markup), width - len(margin), has_colour=paint.has_colour)
    return [margin + line if line else "" for line in text.split("\n")]


class Growing:
    """The lines of a block that is being written; `clock` counts seconds."""

    def __init__(self, paint: Paint, clock: Callable[[], float]) -> None:
        self._paint, self._clock = paint, clock
        self._drawn, self._width = "", 0
        self._lines: list[str] = []
        self._due_at = 0.0

    def lines(self, block: str, width: int, height: int) -> list[str]:
        """Draw the last `height` lines of what has come; seldom enough to leave time for the rest."""
        now = self._clock()
        is_same = self._drawn and self._width == width and block.startswith(self._drawn)
        if not is_same or (block != self._drawn and now >= self._due_at):
            self._lines = prose_lines(_presentable(block, height), width, self._paint)
            self._drawn, self._width = block, width
            self._due_at = now + max(1 / DRAWN_PER_SECOND, (self._clock() - now) / LOAD)
        return self._lines[-height:]


def _presentable(block: str, height: int) -> str:
    """Return the block as if it ended here, so that it looks now as it will look later."""
    if block.lstrip().startswith(_FENCES):  # colouring long code takes a while
        first, *rest = block.split("\n")
        return "\n".join([first, *rest[-height:]])
    if any(fence in block for fence in _FENCES):
        return block
    block = _BARE_MARK.sub("", _UNDECIDED.sub("", block)).rstrip()
    last = block.rpartition("\n\n")[2]
    if found := _OPEN_MARK.search(last):
        return block.removesuffix(found["half"]) + found[1]
    return block
