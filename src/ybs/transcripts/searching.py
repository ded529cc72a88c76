"""Searching what was said in saved sessions."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from ybs.config import private_file
from ybs.core.envelope import MAIN
from ybs.core.errors import YbsError
from ybs.core.events import AssistantSaid, Event, Titled, UserSaid
from ybs.transcripts.line import decoded, lines_in
from ybs.transcripts.saved import Saved

#: Characters of an excerpt on each side of what was found.
_AROUND: Final = 60


class Hit(Struct, frozen=True, kw_only=True):
    """A line of a session in which all words stand; `line` is its number."""

    saved: Saved
    line: int
    excerpt: str


def hits_in(saved: Saved, words: Sequence[str], clean: Callable[[str], str] = str) -> Iterator[Hit]:
    """Find the lines in which all words stand, in any case; `words` are in lower case. `clean` makes it fit to show."""
    # Text is escaped in the file, but for what these bytes are made of.
    certain = [word.encode() for word in words if word.isascii() and word.isalnum()]
    try:
        file = private_file.open_to_read(saved.path)
    except (OSError, YbsError):
        return
    if file is None:
        return
    named: Hit | None = None  # a title is told once, and only where nothing else holds the words
    is_found = False
    with file:
        for data in lines_in(file):
            bare = data.lower()
            if not all(word in bare for word in certain):
                continue
            line = decoded(data)
            text = _text(line.said) if line is not None and line.agent == MAIN else ""
            lowered = text.lower()
            if line is not None and text and all(word in lowered for word in words):
                hit = Hit(saved=saved, line=line.event, excerpt=_excerpt(clean(text), words[0]))
                if isinstance(line.said, Titled):
                    named = hit
                else:
                    is_found = True
                    yield hit
    if named is not None and not is_found:
        yield named


def _text(event: Event | None) -> str:
    """Return what a person would remember."""
    match event:
        case UserSaid(origin="context"):
            return ""
        case UserSaid() | AssistantSaid():
            return event.content
        case Titled():
            return event.title
        case _:
            return ""


def _excerpt(text: str, word: str) -> str:
    place = max(text.lower().find(word), 0)
    start, end = max(place - _AROUND, 0), place + len(word) + _AROUND
    middle = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{middle}{'…' if end < len(text) else ''}"
