"""Read a page of the web."""

from html.parser import HTMLParser
from typing import Annotated, Any

from ybs import tool
from ybs.tools.web import WebPage, fetch

MOST_CHARS = 40_000


@tool(needs={"network": True})
def web_fetch(
    url: Annotated[str, "http:// or https://"],
    start: Annotated[int, "character to go on from, for a long page"] = 0,
) -> str:
    """Fetch a page of the web as Markdown. Pages of this machine and its network are refused."""
    page = fetch(url)
    text = as_text(page)
    shown = text[start : start + MOST_CHARS]
    notes = [f"[{page.url}]"]
    if start + MOST_CHARS < len(text):
        notes.append(f"[go on with start={start + MOST_CHARS} of {len(text)} characters]")
    elif page.is_cut:
        notes.append("[the page is longer; the rest was not fetched]")
    return "\n".join([notes[0], shown.strip() or "[nothing to read]", *notes[1:]])


def as_text(page: WebPage) -> str:
    """Return a page as Markdown, other text as it is. Raises ValueError where it is not text."""
    if page.content_type in ("text/html", "application/xhtml+xml"):
        return markdown(page.text)
    if (
        page.content_type.startswith("text/")
        or "json" in page.content_type
        or "xml" in page.content_type
    ):
        return page.text
    raise ValueError(f"{page.url} is {page.content_type or 'of no known type'}, which is not text")


def markdown(html: str) -> str:
    """Return HTML as Markdown, or as plain text where the library for it is not installed (`pip install ybs[web]`)."""
    try:
        from markdownify import MarkdownConverter
    except ImportError:
        parser = _Words()
        parser.feed(html)
        made = "\n".join(line.strip() for line in "".join(parser.words).splitlines())
    else:
        made = _converted(html, MarkdownConverter)
    lines = [line.rstrip() for line in made.splitlines()]
    text = ""
    for line in lines:
        if line or not text.endswith("\n\n"):
            text += line + "\n"
    return text.strip()


_UNREAD = ("script", "style", "noscript", "template", "svg")


def _converted(html: str, converter: Any) -> str:
    from bs4 import BeautifulSoup

    soup: Any = BeautifulSoup(html, "html.parser")
    for each in soup(_UNREAD):
        each.decompose()
    return str(converter(heading_style="ATX", strip=["img"]).convert_soup(soup))


class _Words(HTMLParser):
    """Collects the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a line at what is not part of one."""
        del attrs
        self._hidden += tag in _UNREAD
        self.words.append(
            "\n" if tag in ("p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4") else " "
        )

    def handle_endtag(self, tag: str) -> None:
        """Show again what stands behind code."""
        self._hidden -= tag in _UNREAD and self._hidden > 0

    def handle_data(self, data: str) -> None:
        """Take words that are shown."""
        if not self._hidden:
            self.words.append(data)
