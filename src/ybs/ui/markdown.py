"""Draws a block of Markdown with rich: flush left, without boxes. Heavy to import; loaded when first needed."""

import re
from functools import cache
from io import StringIO
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, ListItem, Markdown, MarkdownElement
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

#: Lines of prose longer than this are hard to read.
MAX_WIDTH = 100
_TAIL = re.compile("(?: |\x1b\\[[0-9;]*m)+$")
THEME = Theme(
    {
        "markdown.code": "cyan",
        "markdown.block_quote": "dim",
        "markdown.hr": "dim",
        "markdown.item.bullet": "dim",
        "markdown.item.number": "dim",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        **{f"markdown.h{level}": "bold" for level in range(1, 7)},
    }
)


class FlushHeading(Heading):
    """A heading at the left edge."""

    LEVEL_ALIGN: ClassVar = {f"h{level}": "left" for level in range(1, 7)}


class BareCode(CodeBlock):
    """Code with its colours and nothing else: no box, no ground, no padding."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the lines; long ones are folded, never cut."""
        code = str(self.text).rstrip()
        text = Syntax(code, self.lexer_name, theme="ansi_dark").highlight(code)
        text.rstrip()
        for line in text.split("\n", allow_blank=True):
            pieces = line.wrap(
                console, max(4, options.max_width - 2), overflow="fold", no_wrap=False
            )
            for piece in pieces or [Text("")]:
                yield Segment("  ")
                yield piece


class DashItem(ListItem):
    """A list item that begins with a dash, so that a copied list is Markdown again."""

    def render_bullet(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the item with its lines below each other."""
        yield from self._hang("- ", console, options)

    def render_number(
        self, console: Console, options: ConsoleOptions, number: int, last_number: int
    ) -> RenderResult:
        """Draw the item behind its number."""
        start = f"{number}.".ljust(len(str(last_number)) + 2)
        yield from self._hang(start, console, options)

    def _hang(self, start: str, console: Console, options: ConsoleOptions) -> RenderResult:
        inner = options.update(width=max(4, options.max_width - len(start)))
        segment = Segment(start, console.get_style("markdown.item.bullet"))
        for line in console.render_lines(self.elements, inner, style=self.style):
            yield segment
            yield from line
            yield Segment.line()
            segment = Segment(" " * len(start))


class CalmMarkdown(Markdown):
    """Markdown in which HTML is shown as it stands instead of being swallowed."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": FlushHeading,
        "fence": BareCode,
        "code_block": BareCode,
        "list_item_open": DashItem,
    }

    def __init__(self, markup: str) -> None:
        super().__init__("", hyperlinks=False)
        self.markup = markup
        self.parsed = _parser().parse(markup)


def draw(markup: str, width: int, *, has_colour: bool) -> str:
    """Draw Markdown as lines of at most `width` columns, with ECMA-48 attributes."""
    file = StringIO()
    console = Console(
        file=file,
        width=max(8, min(width, MAX_WIDTH)),
        force_terminal=True,
        color_system="standard",
        no_color=not has_colour,
        theme=THEME,
        highlight=False,
        legacy_windows=False,
    )
    console.print(CalmMarkdown(markup))
    lines = [_trimmed(line) for line in file.getvalue().split("\n")]
    return "\n".join(lines).strip("\n")


def _trimmed(line: str) -> str:
    """Drop the white space at the end, which rich draws with attributes."""
    bare = _TAIL.sub("", line)
    return bare + "\x1b[0m" if "\x1b" in bare else bare


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
