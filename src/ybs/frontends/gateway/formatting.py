"""Markdown of a model as messages of a platform: its dialect, in pieces that fit, with plain text beside each.

A text becomes spans: words, and the marks that hold there (bold, code, a link …). A message is some of them in a row, with the signs
that a dialect has for the marks, so that one which is cut in the midst of a code block closes it, and the next opens it again.
Nothing that a model says pings anybody, and no link leads anywhere but to the web or to a mail program.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from html import escape
from typing import Final, Literal, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from msgspec import Struct
from msgspec.structs import replace

from ybs.frontends.gateway.channel import Capabilities
from ybs.security.unicode import printable

Kind: TypeAlias = Literal["strong", "em", "s", "code", "pre", "link", "quote"]
#: A kind, and what belongs to it: the language of code, the address of a link.
Mark: TypeAlias = tuple[Kind, str]

_QUOTE: Final[Mark] = ("quote", "")
_LINKS: Final = ("https://", "http://", "mailto:")
_MOST_ADDRESS: Final = 500
#: Longer texts are not parsed: they are sent as they are.
_MOST_PARSED: Final = 200_000
#: Nobody can see it, and platforms that look for a name behind an "@" find none.
_ZERO_WIDTH: Final = "\u200b"
_AT: Final = re.compile(r"(?<![A-Za-z0-9_])@|(?<=tg:)(?=//)", re.IGNORECASE)
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9+#_-]{0,30}")


class Span(Struct, frozen=True):
    """Words, and the marks around them, the outermost first. Signs of ybs's own (bullets, line ends) are not escaped."""

    text: str
    marks: tuple[Mark, ...] = ()
    is_sign: bool = False

    @property
    def is_code(self) -> bool:
        """Whether the text is to be shown as it is."""
        return bool(self.marks) and self.marks[-1][0] in ("code", "pre")


class Formatted(Struct, frozen=True):
    """A message: `text` in the dialect, `plain` without any markup."""

    text: str
    plain: str


class _Dialect(Struct, frozen=True):
    """How a platform writes marks. In the signs `{}` is what belongs to the mark; kinds that are missing are not shown.

    `text`, `code` and `address` escape words. Where `quotes_lines`, each line of a quotation begins with a sign instead.
    """

    marks: dict[Kind, tuple[str, str]]
    text: Callable[[str], str]
    code: Callable[[str], str]
    address: Callable[[str], str] = escape
    quotes_lines: bool = True


def _html(text: str) -> str:
    return escape(text, quote=False)


def _as_is(text: str) -> str:
    return text


def _backslashed(text: str) -> str:
    return re.sub(r"([\\*_~`|>#\[\]<])", r"\\\1", text)


def _without_fences(text: str) -> str:
    return text.replace("`", f"`{_ZERO_WIDTH}")


def _slack(text: str) -> str:
    return escape(text, quote=False).replace("`", f"`{_ZERO_WIDTH}")


_TELEGRAM: Final[dict[Kind, tuple[str, str]]] = {
    "strong": ("<b>", "</b>"),
    "em": ("<i>", "</i>"),
    "s": ("<s>", "</s>"),
    "code": ("<code>", "</code>"),
    "pre": ('<pre><code class="language-{}">', "</code></pre>"),
    "link": ('<a href="{}">', "</a>"),
    "quote": ("<blockquote>", "</blockquote>"),
}
_SIGNS: Final[dict[Kind, tuple[str, str]]] = {
    "strong": ("*", "*"),
    "em": ("_", "_"),
    "s": ("~", "~"),
    "code": ("`", "`"),
    "pre": ("```\n", "\n```"),
}
_DISCORD: Final[dict[Kind, tuple[str, str]]] = {
    **_SIGNS,
    "strong": ("**", "**"),
    "em": ("*", "*"),
    "s": ("~~", "~~"),
    "pre": ("```{}\n", "\n```"),
    "link": ("[", "](<{}>)"),
}
_DIALECTS: Final = {
    "plain": _Dialect({}, _as_is, _as_is),
    "telegram-html": _Dialect(_TELEGRAM, _html, _html, quotes_lines=False),
    "matrix-html": _Dialect(
        _TELEGRAM, lambda text: _html(text).replace("\n", "<br>"), _html, quotes_lines=False
    ),
    "discord": _Dialect(_DISCORD, _backslashed, _without_fences, _as_is),
    "whatsapp": _Dialect(_SIGNS, _as_is, _without_fences),
    "slack": _Dialect({**_SIGNS, "link": ("<{}|", ">")}, _slack, _slack),
}


def literal(text: str) -> str:
    """Return Markdown that shows a text as it is, in one line."""
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|<>~&])", r"\\\1", " ".join(text.split()))


def formatted(
    markdown: str, capabilities: Capabilities, *, reserve: int = 0
) -> tuple[Formatted, ...]:
    """Return a text as messages, at least one, each with so much room left as `reserve` says, in the platform's unit."""
    dialect = _DIALECTS[capabilities.dialect]
    cutter = _Cutter(dialect, _units(capabilities.unit), capabilities.length - reserve)
    for span in _spans(markdown, dialect):
        cutter.add(span)
    return tuple(cutter.messages()) or (Formatted(dialect.text("(empty)"), "(empty)"),)


def _units(unit: str) -> Callable[[str], int]:
    return len if unit == "characters" else lambda text: len(text.encode("utf-16-le")) // 2


def _quiet(text: str) -> str:
    """Return a text that names nobody to the platform."""
    return _AT.sub(lambda found: found[0] + _ZERO_WIDTH, text)


# From Markdown to spans


@cache
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "linkify": False})
    return made.enable(["table", "strikethrough"]).disable("image")


def _spans(markdown: str, dialect: _Dialect) -> Iterator[Span]:
    words = printable(markdown)
    if len(words) > _MOST_PARSED:
        return iter([Span(words)])
    tree = SyntaxTreeNode(_parser().parse(words))
    return _Reader(dialect).blocks(tree.children, (), "")


class _Reader:
    """Reads the tree. `prefix` is what each line of a block begins with: the indent of a list, the sign of a quotation."""

    def __init__(self, dialect: _Dialect) -> None:
        self._dialect = dialect

    def blocks(
        self,
        nodes: Sequence[SyntaxTreeNode],
        marks: tuple[Mark, ...],
        prefix: str,
        *,
        is_tight: bool = False,
    ) -> Iterator[Span]:
        for number, node in enumerate(nodes):
            if number:
                between = f"\n{prefix}" if is_tight else f"\n{prefix.rstrip()}\n{prefix}"
                yield Span(between, marks, is_sign=True)
            yield from self._block(node, marks, prefix)

    def _block(self, node: SyntaxTreeNode, marks: tuple[Mark, ...], prefix: str) -> Iterator[Span]:
        match node.type:
            case "heading":
                yield from self._inline(node, (*marks, ("strong", "")), prefix)
            case "fence" | "code_block":
                language = _LANGUAGE.match(node.info.strip())
                mark: Mark = ("pre", language[0] if language else "")
                yield Span(node.content.removesuffix("\n"), (*_outer(marks), mark))
            case "table":
                yield Span(_table(node), (*_outer(marks), ("pre", "")))
            case "hr":
                yield Span("———", marks)
            case "blockquote" if self._dialect.quotes_lines:
                yield Span("> ", marks, is_sign=True)
                yield from self.blocks(node.children, marks, f"{prefix}> ")
            case "blockquote":
                quote: tuple[Mark, ...] = () if _QUOTE in marks else (_QUOTE,)
                yield from self.blocks(node.children, (*quote, *marks), prefix)
            case "bullet_list" | "ordered_list":
                yield from self._list(node, marks, prefix)
            case _:
                yield from self._inline(node, marks, prefix)

    def _list(self, node: SyntaxTreeNode, marks: tuple[Mark, ...], prefix: str) -> Iterator[Span]:
        first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else 0
        for number, item in enumerate(node.children):
            sign = f"{first + number}. " if node.type == "ordered_list" else "• "
            yield Span(f"\n{prefix}{sign}" if number else sign, marks, is_sign=True)
            yield from self.blocks(item.children, marks, prefix + " " * len(sign), is_tight=True)

    def _inline(self, node: SyntaxTreeNode, marks: tuple[Mark, ...], prefix: str) -> Iterator[Span]:
        match node.type:
            case "text":
                yield Span(node.content, marks)
            case "softbreak" | "hardbreak":
                yield Span(f"\n{prefix}", marks, is_sign=True)
            case "code_inline":
                yield Span(node.content, (*_outer(marks), ("code", "")))
            case "link":
                yield from self._link(node, marks, prefix)
            case "strong" | "em" | "s" as kind:
                marks = marks if (kind, "") in marks else (*marks, (kind, ""))
                yield from self._inlines(node, marks, prefix)
            case _ if not node.children:
                yield Span(node.content, marks)
            case _:
                yield from self._inlines(node, marks, prefix)

    def _inlines(
        self, node: SyntaxTreeNode, marks: tuple[Mark, ...], prefix: str
    ) -> Iterator[Span]:
        for child in node.children:
            yield from self._inline(child, marks, prefix)

    def _link(self, node: SyntaxTreeNode, marks: tuple[Mark, ...], prefix: str) -> Iterator[Span]:
        address = str(node.attrs.get("href", ""))
        label = "".join(_text_of(node))
        can_link = address.lower().startswith(_LINKS) and len(address) <= _MOST_ADDRESS
        is_shown = can_link and "link" in self._dialect.marks
        is_bare = label in (address, address.removeprefix("mailto:"))
        link: tuple[Mark, ...] = (("link", address),) if is_shown and not is_bare else ()
        yield from self._inlines(node, (*marks, *link), prefix)
        if not is_shown and not is_bare:
            yield Span(f" ({address})", marks)


def _outer(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """Return the marks that may stand around code."""
    return tuple(mark for mark in marks if mark[0] == "quote")


def _text_of(node: SyntaxTreeNode) -> Iterator[str]:
    if not node.children:
        yield " " if node.type in ("softbreak", "hardbreak") else node.content
    for child in node.children:
        yield from _text_of(child)


def _table(node: SyntaxTreeNode) -> str:
    rows = [
        [" ".join("".join(_text_of(cell)).split()) for cell in row.children]
        for part in node.children
        for row in part.children
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


# From spans to messages


class _Cutter:
    """Puts spans into messages of at most `length` units."""

    def __init__(self, dialect: _Dialect, units: Callable[[str], int], length: int) -> None:
        self._dialect, self._units, self._length = dialect, units, length
        self._done: list[list[Span]] = []
        self._open: list[Span] = []
        self._used = 0

    def add(self, span: Span) -> None:
        """Take a span, in parts where it does not fit."""
        text, is_sign = span.text, span.is_sign
        shown = tuple(mark for mark in span.marks if mark[0] in self._dialect.marks)
        around = self._around(shown)
        if around > self._length // 2:
            shown, around = (), 0
        is_block = bool(shown) and shown[-1][0] == "pre"
        is_late = is_block or self._used > self._length * 3 // 4
        fits_here = self._fits(text, shown, self._room - around)
        if is_late and not fits_here and self._fits(text, shown, self._length - around):
            self._end()
        while text and not self._fits(text, shown, self._room - around):
            head = self._fitting(text, shown, self._room - around)
            if self._open and len(head) < min(len(text), 40) and not _ends_well(head):
                self._end()
                continue
            self._put(Span(head, shown, is_sign), around)
            text = text[len(head) :]
            text = text[1:] if is_block and text.startswith("\n") else text
            self._end()
        if text:
            self._put(Span(text, shown, is_sign), around)

    def messages(self) -> Iterator[Formatted]:
        """Return what was put together."""
        self._end()
        for spans in self._done:
            plain = "".join(_quiet(span.text) for span in spans)
            yield Formatted(_rendered(spans, self._dialect), plain)

    @property
    def _room(self) -> int:
        return self._length - self._used

    def _around(self, marks: tuple[Mark, ...]) -> int:
        return sum(self._units(part) for mark in marks for part in _signs(mark, self._dialect))

    def _cost(self, text: str, marks: tuple[Mark, ...]) -> int:
        is_code = bool(marks) and marks[-1][0] in ("code", "pre")
        escaping = self._dialect.code if is_code else self._dialect.text
        return self._units(escaping(_quiet(text)))

    def _fits(self, text: str, marks: tuple[Mark, ...], room: int) -> bool:
        return len(text) <= room and self._cost(text, marks) <= room  # no sign costs less than one

    def _put(self, span: Span, around: int) -> None:
        if span.text:
            self._open.append(span)
            self._used += self._cost(span.text, span.marks) + around

    def _fitting(self, text: str, marks: tuple[Mark, ...], room: int) -> str:
        """Return the longest beginning that fits, up to the end of a paragraph, line or word where there is one."""
        low, high = 0, min(len(text), max(room, 0))
        while low < high:
            middle = (low + high + 1) // 2
            fits = self._fits(text[:middle], marks, room)
            low, high = (middle, high) if fits else (low, middle - 1)
        for sign in ("\n\n", "\n", " "):
            at = text.rfind(sign, low // 2, low)
            if at >= 0:
                return text[: at + len(sign)]
        while 0 < low < len(text) and (text[low] == "@" or text[low - 1] == "@"):
            low -= 1  # cut there it would begin a name, where before it had been an address
        return text[:low] or ("" if self._open else text[:1])

    def _end(self) -> None:
        spans, self._open, self._used = self._open, [], 0
        while spans and not spans[0].text.strip():
            spans.pop(0)
        while spans and not spans[-1].text.strip():
            spans.pop()
        if spans:
            if not spans[0].is_code:
                spans[0] = replace(spans[0], text=spans[0].text.lstrip("\n"))
            last = spans[-1]
            spans[-1] = replace(last, text=last.text.rstrip("\n" if last.is_code else None))
            self._done.append(spans)


def _ends_well(text: str) -> bool:
    return text.endswith(("\n", " "))


def _signs(mark: Mark, dialect: _Dialect) -> tuple[str, str]:
    opening, closing = dialect.marks[mark[0]]
    value = dialect.address(mark[1]) if mark[0] == "link" else mark[1]
    if mark == ("pre", "") and "class" in opening:
        return "<pre>", "</pre>"
    return opening.replace("{}", value), closing.replace("{}", value)


def _rendered(spans: Sequence[Span], dialect: _Dialect) -> str:
    out: list[str] = []
    stack: tuple[Mark, ...] = ()
    for span in (*spans, Span("")):
        shared = 0
        for old, new in zip(stack, span.marks, strict=False):
            if old != new:
                break
            shared += 1
        if shared and span.is_code and stack == span.marks:
            shared = 0  # two blocks in a row are two
        out += [_signs(mark, dialect)[1] for mark in reversed(stack[shared:])]
        out += [_signs(mark, dialect)[0] for mark in span.marks[shared:]]
        out.append(_escaped(span, dialect))
        stack = span.marks
    return "".join(out)


def _escaped(span: Span, dialect: _Dialect) -> str:
    if span.is_sign:
        return span.text.replace("\n", "<br>") if dialect.text("\n") == "<br>" else span.text
    return dialect.code(span.text) if span.is_code else dialect.text(_quiet(span.text))
