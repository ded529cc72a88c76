"""Draws blocks of Markdown as lines of the screen: whole ones, and the one that is still being written."""

import re
from collections.abc import Callable

from msgspec.structs import replace

from ybs.frontends.terminal.drawing.blocks import Block
from ybs.frontends.terminal.signs import Paint
from ybs.frontends.terminal.words import fold_drawn, wrap_words
from ybs.security.unicode import printable

#: A block that is being written is drawn anew this often at most, and uses this part of the time.
DRAWN_PER_SECOND = 8
LOAD = 0.03
#: Narrower screens have no margin.
MARGIN_FROM = 39
_FENCES = ("```", "~~~")
#: Emphasis or code that was begun and not ended; perhaps half of its end has come.
_OPEN_MARK = re.compile(r"(?:^|(?<=[\s(]))(\*\*|\*|`)(?=[^\s*`])[^*`]*?(?P<half>\*?)$")
_BARE_MARK = re.compile(r"(?:^|(?<=[\s(]))(?:\*{1,3}|`{1,2})$")
#: A last line of these alone may become a rule, a heading, a list or a table.
_UNDECIDED = re.compile(r"\n[-=*+#>|:.\d \t]*$")


def prose_lines(block: Block, width: int, paint: Paint) -> list[str]:
    """Draw a block in at most `width` columns."""
    margin = ("  " if width >= MARGIN_FROM else "") + " " * min(block.margin, width // 3)
    room = max(4, width - len(margin))
    lines = _drawn_lines(block, room, paint)
    if not all(line.isascii() for line in lines):  # terminals differ in how wide some signs are
        lines = [piece for line in lines for piece in fold_drawn(line, room)]
    return [margin + line if line else "" for line in lines]


def _drawn_lines(block: Block, width: int, paint: Paint) -> list[str]:
    text = printable(block.text)
    match block.kind:
        case "plain":
            return wrap_words(text.expandtabs(4), width)
        case "code":
            from ybs.frontends.terminal.drawing.code import (
                code_lines,  # pygments: heavy, as rich is
            )

            return code_lines(text, block.language, width, has_colour=paint.has_colour)
        case "markdown":
            from ybs.frontends.terminal.drawing.markdown import (
                draw,  # rich: heavy, and not needed before the first words
            )

            drawn = draw(text, width, has_colour=paint.has_colour, repeats_head=block.repeats_head)
            return drawn.split("\n")


class Growing:
    """The lines of a block that is being written; `clock` counts seconds."""

    def __init__(self, paint: Paint, clock: Callable[[], float]) -> None:
        self._paint, self._clock = paint, clock
        self._drawn = Block(text="")
        self._width = 0
        self._lines: list[str] = []
        self._due_at = 0.0

    def lines(self, block: Block, width: int, height: int) -> list[str]:
        """Draw the last `height` lines of what has come; seldom enough to leave time for the rest."""
        now = self._clock()
        drawn = self._drawn
        is_same = drawn.text and self._width == width and block.text.startswith(drawn.text)
        if not is_same or (block.text != drawn.text and now >= self._due_at):
            self._lines = prose_lines(_presentable(block, height), width, self._paint)
            self._drawn, self._width = block, width
            self._due_at = now + max(1 / DRAWN_PER_SECOND, (self._clock() - now) / LOAD)
        return self._lines[-height:]


def _presentable(block: Block, height: int) -> Block:
    """Return the block as if it ended here, so that it looks now as it will look later."""
    if block.kind == "code":  # colouring long code takes a while
        return replace(block, text="\n".join(block.text.split("\n")[-height:]))
    if block.kind == "plain" or any(fence in block.text for fence in _FENCES):
        return block
    text = _BARE_MARK.sub("", _UNDECIDED.sub("", block.text)).rstrip()
    last = text.rpartition("\n\n")[2]
    if found := _OPEN_MARK.search(last):
        text = text.removesuffix(found["half"]) + found[1]
    return replace(block, text=text)
