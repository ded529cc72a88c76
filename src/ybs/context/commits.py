"""The last commits, as a section of the system prompt."""

from ybs.context.section import Section
from ybs.git.titles import Titles
from ybs.security.unicode import printable

MOST_COMMITS = 5
MOST_TITLE_CHARS = 72
_MOST_NAME_CHARS = 12


def recent_commits(titles: Titles, *, timeout_seconds: float) -> Section | None:
    """Return the latest commits, the newest first: short name and title. None where there is none. It blocks.

    How long ago they were is left out: the prompt stays as it is.
    """
    rows = [_line(row) for row in titles.read(timeout_seconds) if row]
    return Section(name="commits", text="\n".join(rows)) if rows else None


def _line(row: str) -> str:
    """Write a commit's line; its title was written by anybody."""
    name, _, title = row.partition(" ")
    title = " ".join(printable(title[: 4 * MOST_TITLE_CHARS]).split())
    if len(title) > MOST_TITLE_CHARS:
        title = title[: MOST_TITLE_CHARS - 1].rstrip() + "…"
    return f"{name[:_MOST_NAME_CHARS]} {title}".rstrip()
