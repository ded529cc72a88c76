"""Draws a block of Markdown with rich: flush left, without boxes. Heavy to import; loaded when first needed."""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from io import StringIO
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import (
    CodeBlock,
    Heading,
    HorizontalRule,
    ListItem,
    Markdown,
    MarkdownElement,
    TableElement,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from ybs.frontends.terminal.drawing.code import code_lines
from ybs.frontends.terminal.signs import UNICODE

#: Lines of prose longer than this are hard to read.
MAX_WIDTH = 100
#: Columns that a column of a table needs.
MIN_COLUMN = 6
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
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


class CalmRule(HorizontalRule):
    """A rule of the sign that stands above the status line."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the line."""
        yield Text(UNICODE.rule * options.max_width, console.get_style("markdown.hr"))


class BareCode(CodeBlock):
    """Code with its colours and nothing else: no box, no ground, no padding."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the lines; long ones are folded, never cut."""
        code = str(self.text).rstrip()
        has_colour = not console.no_color
        for line in code_lines(code, self.lexer_name, options.max_width, has_colour=has_colour):
            yield Text.from_ansi(line)


class DashItem(ListItem):
    """A list item that begins with a dash or its number, so that a copied list is Markdown again; a task with its box."""

    box = ""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> MarkdownElement:
        """Make an item that may be a task."""
        item = cls()
        item.box = token.meta.get("box", "")
        return item

    def render_bullet(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the item with its lines below each other."""
        yield from self._hang(self.box or "- ", console, options)

    def render_number(
        self, console: Console, options: ConsoleOptions, number: int, last_number: int
    ) -> RenderResult:
        """Draw the item behind its number, as wide as it is: how long the list will be nobody knows yet."""
        yield from self._hang(f"{number}. {self.box}", console, options)

    def _hang(self, start: str, console: Console, options: ConsoleOptions) -> RenderResult:
        inner = options.update(width=max(4, options.max_width - len(start)))
        segment = Segment(start, console.get_style("markdown.item.bullet"))
        for line in console.render_lines(self.elements, inner, style=self.style):
            yield segment
            yield from line
            yield Segment.line()
            segment = Segment(" " * len(start))


class CalmTable(TableElement):
    """A table whose cells are folded, never cut; where there is no room for its columns, a line for each row."""

    repeats_head = False

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> MarkdownElement:
        """Make a table that may be the rest of one."""
        table = cls()
        table.repeats_head = isinstance(markdown, CalmMarkdown) and markdown.repeats_head
        return table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the rows."""
        head = self.header.row.cells if self.header and self.header.row else []
        rows = [row.cells for row in self.body.rows] if self.body else []
        if len(head) * MIN_COLUMN > options.max_width:
            bar = Text(" | ", "dim")
            shown = rows if self.repeats_head else [head, *rows]
            yield from (bar.join([cell.content for cell in row]) for row in shown)
            return
        table = Table(
            box=box.SIMPLE,
            pad_edge=False,
            style="markdown.table.border",
            collapse_padding=True,
            show_edge=False,
            show_header=not self.repeats_head,
        )
        for cell in head:
            cell.content.stylize("markdown.table.header")
            table.add_column(cell.content, overflow="fold")
        for row in rows:
            table.add_row(*(cell.content for cell in row))
        yield table


class CalmMarkdown(Markdown):
    """Markdown in which HTML, images and references are shown as they stand instead of being swallowed."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": FlushHeading,
        "hr": CalmRule,
        "fence": BareCode,
        "code_block": BareCode,
        "list_item_open": DashItem,
        "table_open": CalmTable,
    }

    def __init__(self, markup: str, *, repeats_head: bool = False) -> None:
        self.repeats_head = repeats_head
        # Not the constructor of Markdown: it makes a parser each time, which takes longer than most blocks.
        self.markup = markup
        self.parsed = _parser().parse(markup)
        _draw_boxes(self.parsed)
        self.code_theme = self.inline_code_theme = ""
        self.justify = self.inline_code_lexer = None
        self.style = "none"
        self.hyperlinks = False

    def _flatten_tokens(self, tokens: Iterable[Token]) -> Iterable[Token]:
        # The text of `<http://x>` is its address already.
        return (token for token in super()._flatten_tokens(tokens) if token.markup != "autolink")


def _draw_boxes(tokens: Sequence[Token]) -> None:
    """Draw the boxes of tasks, `[ ]` and `[x]` at the beginning of an item."""
    for item, inside in zip(tokens, tokens[2:], strict=False):
        words = inside.children[0] if inside.type == "inline" and inside.children else None
        if item.type == "list_item_open" and words and (box := _BOXES.get(words.content[:4])):
            item.meta["box"] = box
            words.content = words.content[4:]


def draw(markup: str, width: int, *, has_colour: bool, repeats_head: bool = False) -> str:
    """Draw Markdown as lines of at most `width` columns, with ECMA-48 attributes."""
    console = _console(max(8, min(width, MAX_WIDTH)), has_colour=has_colour)
    with console.capture() as capture:
        console.print(CalmMarkdown(markup, repeats_head=repeats_head))
    lines = [_trimmed(line) for line in capture.get().split("\n")]
    return "\n".join(lines).strip("\n")


def _trimmed(line: str) -> str:
    """Drop the white space at the end, which rich draws with attributes."""
    bare = _TAIL.sub("", line)
    return bare + "\x1b[0m" if "\x1b" in bare else bare


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    return parser.disable(["reference", "image"])


@lru_cache(4)
def _console(width: int, *, has_colour: bool) -> Console:
    file = StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=True,
        color_system="standard",
        no_color=not has_colour,
        theme=THEME,
        highlight=False,
        legacy_windows=False,
    )
    return console  # noqa: RET504 - a test finds every console by these lines
