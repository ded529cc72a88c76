"""The page that scrolls away: lines, and the blank lines between things of different kinds."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from ybs.frontends.terminal.drawing.diffs import diff_lines
from ybs.frontends.terminal.drawing.live import LiveArea
from ybs.frontends.terminal.signs import Paint, Signs
from ybs.frontends.terminal.words import fold, fold_table
from ybs.security.unicode import printable

Kind: TypeAlias = Literal["", "prompt", "text", "step", "question"]


class Canvas(Struct):
    """Where things are drawn: `put` takes whole lines, `width` tells the columns there are now."""

    put: Callable[[str], None]
    width: Callable[[], int]
    paint: Paint
    signs: Signs
    #: Rows of the screen; 0 where there is no end of them.
    height: Callable[[], int] = lambda: 0


class Page:
    """Draws lines. Blank lines stand between things of different kinds."""

    def __init__(self, canvas: Canvas, live: LiveArea) -> None:
        self.canvas, self.live = canvas, live
        self._last: Kind = ""
        self._held: list[tuple[Kind, str, bool]] | None = None

    @property
    def is_gap_due(self) -> bool:
        """Whether passing lines should stand apart from what was drawn last."""
        if block := self.live.blocks.open:
            return bool(self._last) and not block.goes_on
        return self._last in ("text", "prompt", "question")

    def put(self, kind: Kind, text: str, *, goes_on: bool = False) -> None:
        """Draw lines, with a blank line before them where they are something else, or stand alone."""
        if self._held is not None and kind != "question":
            self._held.append((kind, text, goes_on))
            return
        if self._last and not goes_on and (kind != self._last or kind in ("text", "question")):
            text = "\n" + text
        self._last = kind
        self.canvas.put(text + "\n")

    def hold(self) -> None:
        """Keep lines back from now on: a question stays together with its keys."""
        self._held = self._held or []

    def release(self) -> None:
        """Draw what was kept back."""
        held, self._held = self._held or [], None
        for kind, text, goes_on in held:
            self.put(kind, text, goes_on=goes_on)

    def note(
        self, text: str, level: Literal["info", "warning", "error"] = "info", kind: Kind = "step"
    ) -> None:
        """Draw a line from ybs itself: dim, or with a sign when it matters."""
        paint, signs = self.canvas.paint, self.canvas.signs
        first, *rest = fold(printable(text).strip(), self.canvas.width() - 3)
        match level:
            case "info":
                start, draw = "  ", paint.dim
            case "warning":
                start, draw = f"{paint.warn('!')} ", str
            case "error":
                start, draw = f"{paint.bad(signs.failed)} ", str
        self.put(kind, "\n".join([start + draw(first), *(f"  {draw(line)}" for line in rest)]))

    def say(self, text: str) -> None:
        """Draw the plain lines of a command's answer."""
        lines = fold_table(printable(text).strip("\n"), self.canvas.width() - 1)
        self.put("text", "\n".join(lines))

    def draw_diff(self, text: str) -> None:
        """Draw the differences that belong to a command's answer, with the names of the files."""
        canvas = self.canvas
        width = canvas.width() - 1
        lines = diff_lines(text, width, canvas.paint, canvas.signs, has_names=True)
        self.put("text", "\n".join(lines))

    def echo(self, text: str) -> None:
        """Draw what the person sent."""
        paint, signs = self.canvas.paint, self.canvas.signs
        first, *rest = printable(text).strip("\n").split("\n")
        lines = [f"{paint.accent(signs.prompt)} {first}", *(f"  {line}" for line in rest)]
        self.put("prompt", "\n".join(lines))
