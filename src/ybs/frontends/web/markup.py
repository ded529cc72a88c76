"""Makes HTML of what models, tools and files say. All of it is text: no tag, address or attribute of theirs gets into the page.

Markdown is rendered with HTML off and without pictures; code gets classes, never styles, as the page's policy allows no inline ones.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from html import escape
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ybs.frontends.terminal.words import shown_line
from ybs.security.unicode import printable

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

#: Longer texts are shown as they are, and longer code without colours.
_MOST_MARKDOWN, _MOST_CODE = 200_000, 50_000
#: Rows of a diff that are drawn, and characters of a line that is compared word by word.
MOST_ROWS, _MOST_COMPARED = 2_000, 500
#: Characters of an output that are shown: its beginning and its end.
MOST_OUTPUT: Final = 60_000
_ALIKE: Final = 0.5
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")
_LINKS: Final = ("https://", "http://", "mailto:")
_CODE: Final = '<div class="code"><div class="codehead"><span>{name}</span><button type="button" class="copy" data-copy>Copy</button></div><pre tabindex="0"><code>{text}</code></pre></div>'


def text(words: str) -> str:
    """Return text as HTML."""
    return escape(printable(words))


@lru_cache(256)
def markdown(words: str) -> str:
    """Return Markdown as HTML."""
    words = printable(words)
    if len(words) > _MOST_MARKDOWN:
        return f'<pre class="long" tabindex="0">{escape(words)}</pre>'
    return str(_renderer().render(words))


@lru_cache(256)
def code(words: str, language: str) -> str:
    """Return code as HTML, its parts with the classes of their kinds."""
    if len(words) > _MOST_CODE or not language:
        return escape(words)
    lexer = _lexer(language)
    if lexer is None:
        return escape(words)
    from pygments import formatters, highlight

    every: Any = formatters
    formatter = every.HtmlFormatter(nowrap=True, classprefix="h-")
    drawn = str(highlight(words, lexer, formatter))
    return drawn if words.endswith("\n") else drawn.removesuffix("\n")


@lru_cache(64)
def _lexer(language: str) -> Any:
    """Return what reads a language, by its name or that of a file; None where nothing does."""
    from pygments import lexers
    from pygments.util import ClassNotFound

    every: Any = lexers
    find = every.get_lexer_for_filename if "." in language else every.get_lexer_by_name
    try:
        return find(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def output(words: str) -> str:
    """Return what a program printed as HTML: no colours, no overwritten text, and of much the beginning and the end."""
    whole = "\n".join(map(shown_line, words.split("\n"))).strip("\n")
    half = MOST_OUTPUT // 2
    if len(whole) > MOST_OUTPUT:
        left_out = len(whole) - MOST_OUTPUT
        whole = f"{whole[:half]}\n[... {left_out:,} characters left out ...]\n{whole[-half:]}"
    return f'<pre class="out" tabindex="0">{escape(whole)}</pre>' if whole else ""


@cache
def _renderer() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(
        ["table", "strikethrough"]
    )
    made.disable("image")
    made.validateLink = lambda url: url.lower().startswith(_LINKS)  # pyright: ignore[reportAttributeAccessIssue] - its documented way

    def fence(self: object, tokens: Sequence[object], place: int, *_: object) -> str:
        token = tokens[place]
        name = str(getattr(token, "info", "")).split(" ")[0][:40]
        words = str(getattr(token, "content", ""))
        return _CODE.format(name=escape(name), text=code(words.rstrip("\n"), name))

    def link(self: object, tokens: Sequence[object], place: int, *_: object) -> str:
        href = escape(str(tokens[place].attrs.get("href", "")))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType] - a Token
        return f'<a href="{href}" target="_blank" rel="noopener noreferrer nofollow">'

    def constant(html: str) -> "Callable[..., str]":
        return lambda *_: html

    rules: dict[str, object] = {"fence": fence, "code_block": fence, "link_open": link}
    rules["table_open"] = constant('<div class="scroll" tabindex="0"><table>')
    rules["table_close"] = constant("</table></div>")
    rules |= {"th_open": constant("<th>"), "td_open": constant("<td>")}  # else with a style
    for name, rule in rules.items():
        made.add_render_rule(name, rule)  # pyright: ignore[reportArgumentType] - functions of the renderer
    return made


def whole_blocks(words: str) -> int:
    """Return how many characters of a text that is being written are blocks that nothing can change any more."""
    place, is_open, end = 0, "", 0
    for line in words.splitlines(keepends=True):
        stripped = line.strip()
        place += len(line)
        if is_open:
            is_open = "" if stripped.startswith(is_open) and not stripped.strip("`~") else is_open
            end = place if not is_open and line.endswith("\n") else end
        elif stripped.startswith(("```", "~~~")):
            is_open = stripped[:3]
        elif not stripped and line.endswith("\n"):
            end = place
    return end


# Diffs


class _Row(Struct):
    """A row of a diff beside its file: the old line and the new one, where there are such."""

    old: int | None = None
    new: int | None = None
    old_text: str | None = None
    new_text: str | None = None


def diff(words: str, name: str = "") -> str:
    """Return a unified diff as a table with the old lines beside the new ones, the changed words marked."""
    lines = printable(words).strip("\n").split("\n")
    rows, language = list(_rows(lines)), _language(name or _name_in(lines))
    shown, hidden = rows[:MOST_ROWS], len(rows) - MOST_ROWS
    body = "".join(_drawn(row, language) for row in shown)
    more = f'<tr class="hunk"><td colspan="4">{hidden:,} more rows</td></tr>' if hidden > 0 else ""
    return f'<div class="scroll diffbox" tabindex="0"><table class="diff"><caption class="sr">Changes, the old lines beside the new ones</caption><colgroup><col class="no"><col><col class="no"><col></colgroup><tbody>{body}{more}</tbody></table></div>'


def counts(words: str) -> tuple[int, int]:
    """Return how many lines a unified diff adds and removes."""
    lines = words.split("\n")
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    return added, sum(line.startswith("-") and not line.startswith("--- ") for line in lines)


def _name_in(lines: Sequence[str]) -> str:
    names = (line[4:].strip() for line in lines if line.startswith(("+++ ", "--- ")))
    return next((each for each in names if each != "/dev/null"), "")


def _language(name: str) -> str:
    base = name.rpartition("/")[2]
    return base if "." in base else ""


def _rows(lines: Sequence[str]) -> Iterator[_Row]:
    old = new = 0
    removed: list[tuple[int, str]] = []
    added: list[tuple[int, str]] = []
    for line in lines:
        if line.startswith("-") and not line.startswith("--- "):
            removed.append((old, line[1:]))
            old += 1
        elif line.startswith("+") and not line.startswith("+++ "):
            added.append((new, line[1:]))
            new += 1
        else:
            yield from _pairs(removed, added)
            removed, added = [], []
            if found := _HUNK.match(line):
                old, new = int(found[1]), int(found[2])
                yield _Row(old_text=line)
            elif line.startswith(("--- ", "+++ ", "diff ", "index ", "\\")):
                if line.startswith(("+++ ", "\\")) and line != "+++ /dev/null":
                    yield _Row(old_text=line.removeprefix("+++ "))
            else:
                yield _Row(old, new, line[1:], line[1:])
                old, new = old + 1, new + 1
    yield from _pairs(removed, added)


def _pairs(removed: Sequence[tuple[int, str]], added: Sequence[tuple[int, str]]) -> Iterator[_Row]:
    for place in range(max(len(removed), len(added))):
        row = _Row()
        if place < len(removed):
            row.old, row.old_text = removed[place]
        if place < len(added):
            row.new, row.new_text = added[place]
        yield row


def _drawn(row: _Row, language: str) -> str:
    if row.old is None and row.new is None:
        return f'<tr class="hunk"><td colspan="4">{escape(row.old_text or "")}</td></tr>'
    if row.old is not None and row.new is not None and row.old_text == row.new_text:
        line = code(row.old_text or "", language)
        return f'<tr class="same"><td class="no">{row.old}</td><td>{line}</td><td class="no">{row.new}</td><td>{line}</td></tr>'
    old, new = row.old_text, row.new_text
    marked = _marked(old, new) if old is not None and new is not None else None
    old_html = marked[0] if marked else code(old or "", language)
    new_html = marked[1] if marked else code(new or "", language)
    is_old, is_new = ("del" if old is not None else "none"), ("add" if new is not None else "none")
    return (
        f'<tr class="change"><td class="no {is_old}">{"" if row.old is None else row.old}</td><td class="{is_old}">{_signed("-", old, old_html)}</td>'
        f'<td class="no {is_new}">{"" if row.new is None else row.new}</td><td class="{is_new}">{_signed("+", new, new_html)}</td></tr>'
    )


def _signed(sign: str, line: str | None, html: str) -> str:
    """Put the sign before a line, for those who see no colours."""
    return "" if line is None else f'<span class="pm">{sign}</span>{html}'


def _marked(old: str, new: str) -> tuple[str, str] | None:
    """Return two lines with the words marked that differ; None where they have little in common."""
    if max(len(old), len(new)) > _MOST_COMPARED:
        return None
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return None
    one = other = ""
    for kind, first, last, low, high in matcher.get_opcodes():
        left, right = escape("".join(before[first:last])), escape("".join(after[low:high]))
        one += left if kind == "equal" or not left else f"<mark>{left}</mark>"
        other += right if kind == "equal" or not right else f"<mark>{right}</mark>"
    return one, other
