"""Search the web: with SearXNG (`SEARXNG_URL`), Brave (`BRAVE_API_KEY`), else DuckDuckGo's page without scripts."""

import json
import os
from html.parser import HTMLParser
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from ybs import tool
from ybs.tools.web import fetch

BRAVE = "https://api.search.brave.com/res/v1/web/search"
DUCKDUCKGO = "https://html.duckduckgo.com/html/"

Result = dict[str, str]


@tool(needs={"network": True, "environment": ["SEARXNG_URL", "BRAVE_API_KEY"]})
def web_search(query: str, max_results: Annotated[int, "at most 20"] = 5) -> dict[str, Any]:
    """Search the web. Returns titles, addresses and a few words of each page."""
    most = max(1, min(max_results, 20))
    if own := os.environ.get("SEARXNG_URL"):
        found = searxng(own, query)
    elif key := os.environ.get("BRAVE_API_KEY"):
        found = brave(key, query, most)
    else:
        found = duckduckgo(query)
    return {"results": found[:most]}


def searxng(server: str, query: str) -> list[Result]:
    """Ask a SearXNG server, which must have the format `json` switched on.

    https://docs.searxng.org/dev/search_api.html
    """
    page = fetch(
        server.rstrip("/") + "/search", params={"q": query, "format": "json"}, is_trusted=True
    )
    return [
        {"title": each.get("title", ""), "url": each["url"], "snippet": each.get("content", "")}
        for each in json.loads(page.data)["results"]
    ]


def brave(key: str, query: str, most: int) -> list[Result]:
    """Ask Brave.

    https://api-dashboard.search.brave.com/app/documentation/web-search
    """
    headers = {"X-Subscription-Token": key, "Accept": "application/json"}
    page = fetch(BRAVE, params={"q": query, "count": str(most)}, headers=headers)
    found = json.loads(page.data).get("web", {}).get("results", [])
    return [
        {"title": each["title"], "url": each["url"], "snippet": each.get("description", "")}
        for each in found
    ]


def duckduckgo(query: str) -> list[Result]:
    """Read DuckDuckGo's page for browsers without scripts."""
    parser = _Results()
    parser.feed(fetch(DUCKDUCKGO, params={"q": query}).text)
    return [{key: " ".join(text.split()) for key, text in each.items()} for each in parser.results]


class _Results(HTMLParser):
    """Collects what stands in links of the class result__a and in the words below them."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[Result] = []
        self._field = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a result or its words."""
        given = dict(attrs)
        classes = (given.get("class") or "").split()
        if tag == "a" and "result__a" in classes:
            self.results.append(
                {"title": "", "url": _target(given.get("href") or ""), "snippet": ""}
            )
            self._field = "title"
        elif "result__snippet" in classes and self.results:
            self._field = "snippet"

    def handle_endtag(self, tag: str) -> None:
        """End the field with its link."""
        if tag == "a":
            self._field = ""

    def handle_data(self, data: str) -> None:
        """Take the words of a field."""
        if self._field:
            self.results[-1][self._field] += data


def _target(link: str) -> str:
    """Return where a link leads: DuckDuckGo's own ones carry the address as `uddg`."""
    parts = urlsplit(link)
    return parse_qs(parts.query).get("uddg", [link])[0] if parts.path == "/l/" else link
