"""A conversation as text: Markdown for people, or the events of a transcript for programs. Secrets stay masked."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar, assert_never

from msgspec import Struct

from ybs.core.cutting import first_words
from ybs.core.events import AssistantSaid, Event, ToolFinished, UserSaid
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.security.unicode import printable
from ybs.session.masking import mask, masked_event

if TYPE_CHECKING:
    from ybs.security.firewall.masking import Firewall

_T = TypeVar("_T", bound=Struct)
#: The first or last line of a block of code; what Markdown shows as a heading of the second level, alone or below words.
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r"( {0,3})(?:##(?:[ \t]|$)|<h2\b)", re.IGNORECASE)
_UNDERLINE = re.compile(r"( {0,3})-+[ \t]*$")
_TITLE = 70
_SPEAKERS = {
    "person": "You",
    "shell": "You, a command",
    "guard": "A reminder",
    "summary": "Summary of the earlier conversation",
    "context": "About the project",
}


def markdown_of(
    messages: Sequence[Message], firewall: "Firewall", *, title: str, about: str
) -> str:
    """Write a conversation down for people; thinking is left out. `about` says which model and where."""
    title = first_words(mask(firewall, Text(text=title or "A conversation")).text, _TITLE)
    pieces, speaker = [f"# {title}\n\n{firewall.mask(about)}"], ""
    for message in (mask(firewall, each) for each in messages):
        now = _speaker(message)
        if now and now != speaker:
            pieces.append(f"## {now}")
        speaker = now or speaker
        pieces += _paragraphs(message)
    return printable("\n\n".join(pieces)) + "\n"


def lines_of(said: Iterable[tuple[Event, datetime, str]], firewall: "Firewall") -> bytes:
    """Write events, each with its time and its agent, as the lines of a transcript, numbered anew."""
    from ybs.security.gate import safe_json
    from ybs.transcripts.line import encoded

    lines = (
        encoded(masked_event(firewall, event), number=number, parent=number - 1, at=at, agent=agent)
        for number, (event, at, agent) in enumerate(said, 1)
    )
    return b"".join(map(safe_json, lines))


def event_of(message: Message) -> Event:
    """Return the event that told of a message."""
    match message:
        case UserMessage():
            return UserSaid.of(message)
        case AssistantMessage():
            return AssistantSaid.of(message)
        case ToolResult():
            return ToolFinished.of(message)
        case _:
            assert_never(message)


def fenced(text: str, language: str = "") -> str:
    """Put a text into a code block that nothing in it can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def _speaker(message: Message) -> str:
    match message:
        case UserMessage():
            return _SPEAKERS[message.origin]
        case AssistantMessage():
            return message.model or "The model"
        case ToolResult():
            return ""  # it belongs to the answer that asked for it
        case _:
            assert_never(message)


def _paragraphs(message: Message) -> Iterator[str]:
    match message:
        case UserMessage():
            for place, part in enumerate(message.content):
                yield _said(part, is_attached=place > 0 or message.origin != "person")
        case AssistantMessage():
            for part in message.content:
                if isinstance(part, Text) and part.text.strip():
                    yield _without_headings(part.text)
                elif isinstance(part, ToolCall):
                    given = part.invalid or bytes(part.arguments).decode(errors="replace")
                    yield f"`{part.name}`\n\n{fenced(given, 'json')}"
        case ToolResult():
            how = "Refused:\n\n" if message.is_refused else "Failed:\n\n" * message.is_error
            yield how + fenced(message.output, "text")
        case _:
            assert_never(message)


def _said(part: Text | Image, *, is_attached: bool) -> str:
    if isinstance(part, Image):
        return f"(a picture, {part.media_type}, {len(part.data):,} bytes)"
    return fenced(part.text, "text") if is_attached else _without_headings(part.text)


def _without_headings(text: str) -> str:
    """Return a speaker's words, in which nothing is a heading of the second level: those say who speaks. Blocks of code stay."""
    lines, fence = list[str](), ""
    for line in text.strip().split("\n"):
        mark = _FENCE.match(line)
        if fence:
            is_end = mark and mark[1].startswith(fence) and not mark[2].strip()
            fence = "" if is_end else fence
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        else:
            line = _lowered(line, is_below_words=bool(lines and lines[-1].strip()))
        lines.append(line)
    return "\n".join([*lines, fence] if fence else lines)


def _lowered(line: str, *, is_below_words: bool) -> str:
    found = _HEADING.match(line) or (_UNDERLINE.match(line) if is_below_words else None)
    if found is None:
        return line
    place = found.end(1)
    sign = "#" if line[place:].startswith("##") else "\\"
    return f"{line[:place]}{sign}{line[place:]}"
