"""Makes HTML of what models, tools and files say. All of it is text: no tag, address or attribute of theirs gets into the page.

Markdown is rendered with HTML off and without pictures; code gets classes, never styles, as the page's policy allows no inline ones.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from html import escape
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ybs.frontends.terminal.words import shown_line
from ybs.security.unicode import printable, unabridged

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

#: Longer texts are shown as they are.
_MOST_MARKDOWN: Final = 100_000
#: Rows of a diff that are drawn; characters of a line that is compared word by word, and of all that are: comparing is slow.
MOST_ROWS, _LONGEST_COMPARED, _MOST_COMPARED = 2_000, 500, 10_000
#: Characters of an output that are shown: its beginning and its end.
MOST_OUTPUT: Final = 60_000
_ALIKE: Final = 0.5
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
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
    """Return code as HTML, its parts with the classes of their kinds. `language` is its name, or that of a file.

    Lexers of libraries take minutes for some texts, which a model may write. This one looks at each character once.
    """
    tokens = _TOKENS.get(_FAMILIES.get(language.rpartition(".")[2].lower(), ""))
    return tokens.sub(_coloured, words) if tokens else escape(words)


def _coloured(found: re.Match[str]) -> str:
    kind, words = found.lastgroup, found[0]
    if kind == "word":
        is_call = found.string.startswith("(", found.end())
        kind = "k" if _KEYWORDS.fullmatch(words) else "f" if is_call else ""
    return f'<span class="h-{kind}">{escape(words)}</span>' if kind else escape(words)


def _tokens(comment: str) -> re.Pattern[str]:
    """Return what finds the tokens of languages with such comments. It takes what it has looked at, or has not looked far."""
    quoted = "|".join(rf"{q}(?>(?:\\.|[^{q}\\\n]){{0,300}}){q}" for q in "\"'`")
    long = "|".join(rf"{q}.*?(?:{q}|\Z)" for q in ('"""', "'''"))
    parts = f"(?P<c>{comment})|(?P<s>{long}|{quoted})|(?P<n>[0-9][\\w.]*)|(?P<word>\\w+)|\\s+|."
    return re.compile(parts, re.DOTALL)


_TOKENS: Final = {
    "#": _tokens(r"\#[^\n]*"),
    "//": _tokens(r"//[^\n]*|/\*.*?(?:\*/|\Z)"),
    "--": _tokens(r"--[^\n]*"),
    "<": _tokens(r"<!--.*?(?:-->|\Z)"),
}
_LANGUAGES: Final = {
    "#": "python py pyi sh bash zsh shell console yaml yml toml ini cfg ruby rb perl pl r make makefile dockerfile docker elixir ex exs nix julia jl powershell ps1",
    "//": "javascript js mjs jsx typescript ts tsx json jsonc c h cpp cc cxx hpp csharp cs java kotlin kt swift go rust rs php scala dart zig css scss less proto groovy",
    "--": "sql lua haskell hs elm",
    "<": "html htm xml svg vue",
}
_FAMILIES: Final = {name: each for each, names in _LANGUAGES.items() for name in names.split()}
_KEYWORDS: Final = re.compile(
    r"abstract|and|as|assert|async|await|begin|break|case|catch|class|const|continue|def|default|defer|del|delete|do|done|elif|else|elsif|end|enum|"
    r"except|export|extends|extern|false|False|fi|final|finally|fn|for|from|func|function|global|go|goto|if|impl|implements|import|in|include|"
    r"instanceof|interface|is|lambda|let|local|loop|match|mod|module|mut|namespace|new|nil|None|nonlocal|not|null|of|or|override|package|pass|"
    r"private|protected|pub|public|raise|readonly|require|return|select|self|static|struct|super|switch|then|this|throw|trait|true|True|try|type|"
    r"typedef|typeof|union|unless|until|use|using|val|var|virtual|void|where|while|with|yield|SELECT|FROM|WHERE|INSERT|INTO|UPDATE|DELETE|CREATE|"
    r"TABLE|JOIN|ON|AND|OR|NOT|NULL|ORDER|BY|GROUP|VALUES|SET|AS"
)


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


class GrowingMarkup:
    """Markdown that is being written: `html` is that of the blocks that nothing can change any more, `rest` the text behind them."""

    def __init__(self) -> None:
        self.html = self.rest = ""
        #: How many characters of the rest were looked at, and the fence that is open there.
        self._place, self._fence = 0, ""

    def add(self, words: str) -> str | None:
        """Take more of the text; return the HTML of the blocks that it ends, None where it ends none."""
        self.rest += words
        end = 0
        while (line_end := self.rest.find("\n", self._place) + 1) > 0:
            line = self.rest[self._place : line_end].strip()
            self._place = line_end
            if self._fence:
                if line.startswith(self._fence) and not line.strip("`~"):
                    self._fence, end = "", line_end
            elif line.startswith(("```", "~~~")):
                self._fence = line[:3]
            elif not line:
                end = line_end
        if not end:
            return None
        html = markdown(self.rest[:end])
        self.html, self.rest, self._place = self.html + html, self.rest[end:], self._place - end
        return html


# Diffs


class _Row(Struct):
    """A row of a diff beside its file: the old line and the new one, where there are such."""

    old: int | None = None
    new: int | None = None
    old_text: str | None = None
    new_text: str | None = None

    @property
    def is_change(self) -> bool:
        """Whether a line stands in place of another one."""
        return self.old is not None and self.new is not None and self.old_text != self.new_text

    @property
    def plain(self) -> str:
        """The row as a diff has it."""
        if self.old is None and self.new is None:
            return self.old_text or ""
        if self.old is not None and self.new is not None and not self.is_change:
            return f" {self.old_text}"
        lines = (("-", self.old_text), ("+", self.new_text))
        return "\n".join(f"{sign}{line}" for sign, line in lines if line is not None)


def diff(words: str) -> str:
    """Return a unified diff as a table with the old lines beside the new ones, the changed words marked. Of a long one the rest is folded, and plain."""
    lines = unabridged(words.replace("\r\n", "\n")).strip("\n").split("\n")
    rows, language = list(_rows(lines)), _language(_name_in(lines))
    shown, rest = rows[:MOST_ROWS], rows[MOST_ROWS:]
    body, left = "", _MOST_COMPARED
    for row in shown:
        size = max(len(row.old_text or ""), len(row.new_text or ""))
        is_compared = row.is_change and size <= min(left, _LONGEST_COMPARED)
        left -= size * is_compared
        body += _drawn(row, language, is_compared=is_compared)
    plain = escape("\n".join(each.plain for each in rest))
    more = f'<details><summary>{len(rest):,} more rows</summary><pre class="out" tabindex="0">{plain}</pre></details>'
    return f'<div class="scroll diffbox" tabindex="0"><table class="diff"><caption class="sr">Changes, the old lines beside the new ones</caption><colgroup><col class="no"><col><col class="no"><col></colgroup><tbody>{body}</tbody></table>{more if rest else ""}</div>'


def counts(words: str) -> tuple[int, int]:
    """Return how many lines a unified diff adds and removes."""
    signs = [sign for sign, _ in _lines(words.split("\n"))]
    return signs.count("+"), signs.count("-")


def _name_in(lines: Sequence[str]) -> str:
    return next((words.rpartition(" ")[2] for sign, words in _lines(lines) if sign == "f"), "")


def _language(name: str) -> str:
    base = name.rpartition("/")[2]
    return base if "." in base else ""


def _lines(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the lines of a unified diff with their signs: `-`, `+` and ` ` within a hunk, as long as its head says, `@` for the head, `f` for the names of files, "" for all else."""
    old_left = new_left = 0
    rest = iter(range(len(lines)))
    for place in rest:
        line, after = lines[place], lines[place + 1 : place + 2]
        if line.startswith("\\"):
            yield "", line
        elif old_left > 0 or new_left > 0:
            sign = line[:1] if line[:1] in ("-", "+") else " "
            old_left, new_left = old_left - (sign != "+"), new_left - (sign != "-")
            yield sign, line[1:]
        elif found := _HUNK.match(line):
            old_left, new_left = (1 if found[n] is None else int(found[n]) for n in (2, 4))
            yield "@", line
        elif line.startswith("--- ") and after and after[0].startswith("+++ "):
            names = dict.fromkeys((line[4:], lines[next(rest)][4:]))
            yield "f", " → ".join(each for each in names if each != "/dev/null")
        else:
            yield "", line


def _rows(lines: Sequence[str]) -> Iterator[_Row]:
    old = new = 0
    removed: list[tuple[int, str]] = []
    added: list[tuple[int, str]] = []
    for sign, line in _lines(lines):
        if sign == "-":
            removed.append((old, line))
            old += 1
        elif sign == "+":
            added.append((new, line))
            new += 1
        else:
            yield from _pairs(removed, added)
            removed, added = [], []
            if sign == " ":
                yield _Row(old, new, line, line)
                old, new = old + 1, new + 1
                continue
            if found := _HUNK.match(line) if sign == "@" else None:
                old, new = int(found[1]), int(found[3])
            yield _Row(old_text=line)
    yield from _pairs(removed, added)


def _pairs(removed: Sequence[tuple[int, str]], added: Sequence[tuple[int, str]]) -> Iterator[_Row]:
    for place in range(max(len(removed), len(added))):
        row = _Row()
        if place < len(removed):
            row.old, row.old_text = removed[place]
        if place < len(added):
            row.new, row.new_text = added[place]
        yield row


def _drawn(row: _Row, language: str, *, is_compared: bool) -> str:
    if row.old is None and row.new is None:
        return f'<tr class="hunk"><td colspan="4">{escape(row.old_text or "")}</td></tr>'
    if row.old is not None and row.new is not None and not row.is_change:
        line = code(row.old_text or "", language)
        return f'<tr class="same"><td class="no">{row.old}</td><td>{line}</td><td class="no">{row.new}</td><td>{line}</td></tr>'
    old, new = row.old_text, row.new_text
    marked = _marked(old or "", new or "") if is_compared else None
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
