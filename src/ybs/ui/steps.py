"""Draws one line per tool call, what went wrong below it, and diffs."""

from typing import Any

import msgspec

from ybs.core.events import ToolFinished
from ybs.security.unicode import printable
from ybs.ui.signs import Paint, Signs
from ybs.ui.words import (
    NARROW,
    cells,
    duration,
    fold,
    one_line,
    shorten,
    shown_line,
    verb,
    wrap,
)

#: Verbs stand in a column of this width where there is room.
VERB_WIDTH = 10
#: Lines at the end of a command's output that are shown, when it went well and when it failed.
MAX_OUTPUT, MAX_FAILED_OUTPUT = 4, 12
#: Lines of another tool's message that are shown, where there is room and where lines are short.
MAX_MESSAGE, MAX_NARROW_MESSAGE = 6, 12


def step_line(finished: ToolFinished, about: str, width: int, paint: Paint, signs: Signs) -> str:
    """Draw a finished call: sign, verb, what it was about, what came of it, how long it took."""
    sign = signs.done if finished.success else signs.failed
    shown = paint.accent(sign) if finished.success else paint.bad(sign)
    is_timed = finished.duration_seconds > 0 and not finished.is_refused
    took = duration(finished.duration_seconds) if is_timed else ""
    name = verb(finished.name)
    name = name.ljust(VERB_WIDTH - 1) + " " if width >= NARROW else name + " "
    room = width - cells(sign) - 1 - cells(name)
    if width >= NARROW:
        room -= len(took) + 2 if took else 0
    else:
        took = ""
    body = step_body(about, _said(finished), room, paint, signs)
    line = f"{shown} {name}{body}"
    return f"{line}{' ' * (width - cells(line) - len(took))}{paint.dim(took)}" if took else line


def step_body(about: str, said: str, room: int, paint: Paint, signs: Signs) -> str:
    """Put what a call is about and what came of it into `room` columns."""
    if about and about in said:  # "Edited a.py (+1 -1)" behind "edit a.py" says it twice
        about, said = about + said.partition(about)[2], ""
    if not said:
        return shorten(about, room, signs.more)
    if not about:
        return paint.dim(shorten(said, room, signs.more))
    about = shorten(about, max(room - cells(said) - 3, room // 2), signs.more)
    left = room - cells(about) - 3
    return about if left < 4 else f"{about}   {paint.dim(shorten(said, left, signs.more))}"


def running_line(call: str, seconds: float, width: int, paint: Paint, frame: str) -> str:
    """Draw what runs behind a frame of the spinner, with the time it has taken so far."""
    took = f"  {seconds:.0f} s" if seconds >= 1 else ""
    text = shorten(f"{frame} {call}", width - len(took))
    return paint.accent(text[:1]) + text[1:] + paint.dim(took)


def call_text(name: str, about: str, width: int) -> str:
    """Say which call it is."""
    return f"{verb(name).ljust(VERB_WIDTH - 1) if width >= NARROW else verb(name)} {about}"


def detail(
    finished: ToolFinished, width: int, paint: Paint, signs: Signs, printed: str = ""
) -> str:
    """Draw the end of what a command wrote, or what another tool that failed said.

    `printed` is what was seen of a command that hands over nothing.
    """
    margin = "    " if width >= NARROW else "  "
    lines = detail_lines(finished, width - len(margin), signs, printed)
    return "\n".join(paint.dim(margin + line) for line in lines)


def detail_lines(finished: ToolFinished, width: int, signs: Signs, printed: str = "") -> list[str]:
    """Give the lines of `detail`, plain."""
    if not finished.is_refused and (output := streams_of(finished) or printed).strip():
        return _output_end(output, width, signs, is_whole=not finished.success)
    if finished.success:
        return []
    said = fold(printable(finished.output).strip("\n"), width)
    return _ends(said, MAX_MESSAGE if width >= NARROW else MAX_NARROW_MESSAGE, signs)


def _output_end(output: str, width: int, signs: Signs, *, is_whole: bool) -> list[str]:
    """Keep the last lines, whole or each cut to one row, and say how many are left out."""
    lines = [shown for line in output.split("\n") if (shown := shown_line(line))]
    most = MAX_FAILED_OUTPUT if is_whole else MAX_OUTPUT
    rows: list[str] = []
    hidden = len(lines)
    for line in reversed(lines):
        pieces = wrap(line, width) if is_whole else [shorten(line, width, signs.more)]
        if rows and len(pieces) + len(rows) > most and hidden > 1:
            break  # a line in the place of "1 line" costs nothing
        rows, hidden = pieces + rows, hidden - 1
    rows = rows[-most - 1 :]
    return [f"{signs.more} {hidden} lines", *rows] if hidden else rows


def _ends(lines: list[str], most: int, signs: Signs) -> list[str]:
    """Keep the first and the last lines."""
    if len(lines) <= most:
        return lines
    first = most // 2
    return [*lines[:first], signs.more, *lines[first + 1 - most :]]


def diff(text: str, width: int, paint: Paint) -> str:
    """Draw a unified diff without its two lines of file names: whole, in colours, long lines folded."""
    sources = printable(text).rstrip("\n").split("\n")
    if len(sources) > 2 and sources[0].startswith("--- ") and sources[1].startswith("+++ "):
        sources = sources[2:]
    return "\n".join(line for source in sources for line in _coloured(source, width, paint))


def diff_of(finished: ToolFinished) -> str:
    """Find the diff in what a tool hands over for the person."""
    shown = _display(finished)
    found = shown.get("diff")
    return found if isinstance(found, str) else ""


def _coloured(source: str, width: int, paint: Paint) -> list[str]:
    lines = wrap(source, width, "    ")
    match source[:1]:
        case "+":
            return [paint.good(line) for line in lines]
        case "-":
            return [paint.bad(line) for line in lines]
        case "@":
            return [paint.dim(line) for line in lines]
        case _:
            return lines


def _said(finished: ToolFinished) -> str:
    if finished.is_refused:
        return "refused"
    if finished.success and _display(finished).get("exit_code") == 0:
        return ""  # the sign says it
    if finished.success or streams_of(finished):
        return one_line(finished.summary)
    return ""


def streams_of(finished: ToolFinished) -> str:
    """Join what a command wrote, as the tool hands it over."""
    shown = _display(finished)
    streams = [shown.get(name) for name in ("stdout", "stderr")]
    return "\n".join(text for text in streams if isinstance(text, str) and text.strip())


def _display(finished: ToolFinished) -> dict[str, Any]:
    try:
        return msgspec.json.decode(finished.display, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
