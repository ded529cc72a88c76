"""Draws one line per tool call, what went wrong below it, and diffs."""

from typing import Any

import msgspec
from msgspec import Struct

from ybs.core.events import ToolFinished
from ybs.frontends.terminal.signs import Paint, Signs
from ybs.frontends.terminal.words import (
    NARROW,
    cells,
    duration,
    one_line,
    shorten,
    shown_line,
    verb,
    wrap,
    wrap_words,
)
from ybs.security.unicode import printable

#: Verbs stand in a column of this width where there is room.
VERB_WIDTH = 10
#: Lines at the end of a command's output that are shown, when it went well and when it failed.
MAX_OUTPUT, MAX_FAILED_OUTPUT = 4, 12
#: Lines of what a failed call tells the model that are shown, where there is room and where lines are short.
MAX_MESSAGE, MAX_NARROW_MESSAGE = 1, 3
#: Characters of it that are looked at.
_MOST_READ = 4_000
#: Where a command ran, if not in the sandbox.
OUTSIDE = "outside the sandbox"
#: What draws whole what was shortened; said once.
UNFOLD_KEY = "ctrl-o"
#: The summary of a call that was asked about and never answered.
NOT_RUN = "not run"


def step_line(finished: ToolFinished, about: str, width: int, paint: Paint, signs: Signs) -> str:
    """Draw a finished call: sign, verb, what it was about, what came of it, how long it took."""
    sign = signs.done if finished.success else signs.failed
    shown = paint.accent(sign) if finished.success else paint.bad(sign)
    is_timed = finished.duration_seconds > 0 and not finished.is_refused
    took = duration(finished.duration_seconds) if is_timed else ""
    name = shorten(verb(finished.name), width // 2, signs.more)
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
    took = f"  {seconds:.0f} s" if seconds < 99.5 else f"  {duration(seconds)}"
    took = took if seconds >= 1 else ""
    text = shorten(f"{frame} {call}", width - len(took))
    return paint.accent(text[:1]) + text[1:] + paint.dim(took)


def call_text(name: str, about: str, width: int) -> str:
    """Return a title for the call."""
    return f"{verb(name).ljust(VERB_WIDTH - 1) if width >= NARROW else verb(name)} {about}"


class Detail(Struct):
    """The lines below a step, plain; `whole` is what they were taken from where they are not all of it."""

    lines: list[str] = []
    whole: str = ""


def detail_margin(width: int) -> str:
    """Give what stands before the lines of a detail."""
    return "    " if width >= NARROW else "  "


def draw_detail(lines: list[str], width: int, paint: Paint) -> str:
    """Draw the lines below a step."""
    return "\n".join(paint.dim(detail_margin(width) + line) for line in lines)


def detail_of(
    finished: ToolFinished, width: int, signs: Signs, printed: str = "", *, is_whole: bool = False
) -> Detail:
    """Choose what is shown below a step: `is_whole` leaves nothing out."""
    if not finished.is_refused and (output := streams_of(finished) or printed).strip():
        if is_whole:
            return Detail(output_lines(output, width))
        lines, is_cut = _output_end(
            output, width, signs, _lines_of(finished), is_whole=not finished.success
        )
        return Detail(lines, output if is_cut else "")
    if is_whole and (told := quiet_output_of(finished) or finished.output * (not finished.success)):
        return Detail(output_lines(told, width))
    if finished.success:
        return Detail()
    lines = wrap_words(one_line(finished.output[:_MOST_READ]), width)
    most = MAX_MESSAGE if width >= NARROW else MAX_NARROW_MESSAGE
    if len(lines) > most:
        lines[most - 1 :] = [shorten("".join(lines[most - 1 :]), width, signs.more)]
        return Detail(lines, finished.output)
    return Detail(lines)


def arguments_of(arguments: bytes, about: str) -> str:
    """Return all arguments of a call on one line; nothing where what is said of the call says them all."""
    try:
        given = msgspec.json.decode(arguments, type=dict[str, Any])
    except msgspec.DecodeError:
        return one_line(arguments.decode(errors="replace"))
    values = list(given.values())
    if not values or (
        len(values) == 1 and isinstance(values[0], str) and one_line(values[0]) == about
    ):
        return ""
    return printable(msgspec.json.encode(given).decode())


def quiet_output_of(finished: ToolFinished, printed: str = "") -> str:
    """Return the output that the model got from a call whose result is not drawn."""
    is_drawn = (streams_of(finished) or printed).strip() or has_diff(finished)
    is_drawn = is_drawn or "stdout" in _display(finished)  # a command that wrote nothing
    if is_drawn or not finished.success or finished.output.strip() == finished.summary.strip():
        return ""
    return finished.output if finished.output.strip() else ""


def output_lines(output: str, width: int) -> list[str]:
    """Fold the whole output of a command."""
    lines = (shown_line(line) for line in output.strip("\n").split("\n"))
    return [piece for line in lines for piece in wrap(line, width)]


def _lines_of(finished: ToolFinished) -> int:
    """Return how many lines a command wrote of whose output only a part is handed over; 0 for any other."""
    found = _display(finished).get("lines")
    return found if isinstance(found, int) else 0


def _output_end(
    output: str, width: int, signs: Signs, written: int, *, is_whole: bool
) -> tuple[list[str], bool]:
    """Keep the last lines, whole or each cut to one row, say how many are left out, and return whether any is cut as well."""
    lines = [shown for line in output.split("\n") if (shown := shown_line(line))]
    most = MAX_FAILED_OUTPUT if is_whole else MAX_OUTPUT
    rows: list[str] = []
    hidden = len(lines)
    for line in reversed(lines):
        pieces = wrap(line, width) if is_whole else [shorten(line, width, signs.more)]
        if rows and len(pieces) + len(rows) > most and hidden > 1:
            break  # a line in the place of "1 line" costs nothing
        rows, hidden = pieces + rows, hidden - 1
    shown = rows[-most - 1 :]
    is_cut = (
        bool(hidden) or len(shown) < len(rows) or (not is_whole and lines[-len(rows) :] != rows)
    )
    hidden = hidden and max(hidden, written - len(shown))
    return ([hidden_text(hidden, signs), *shown] if hidden else shown), is_cut


def hidden_text(count: int, signs: Signs) -> str:
    """Return how many lines are left out."""
    return f"{signs.more} {count} lines"


def diff_of(finished: ToolFinished) -> str:
    """Return the file changes of a call as a unified diff."""
    from ybs.tools.editing.diff import diff_of_change  # few calls change anything

    diffs = filter(None, map(diff_of_change, finished.changes))
    return "\n".join(diffs)


def has_diff(finished: ToolFinished) -> bool:
    """Return whether a call tells what it changed in files."""
    return bool(finished.changes)


def file_of(finished: ToolFinished) -> str:
    """Name the file that holds all that a command wrote, where there is one."""
    found = _display(finished).get("output_file")
    return found if isinstance(found, str) else ""


def _said(finished: ToolFinished) -> str:
    if finished.is_refused:
        return NOT_RUN if finished.summary == NOT_RUN else "refused"
    shown = _display(finished)
    if finished.success and shown.get("exit_code") == 0:
        return OUTSIDE if shown.get("outside") else ""  # the sign says the rest
    if finished.success or streams_of(finished):
        return one_line(finished.summary.removesuffix(f"; {hint_of(finished)}"))
    return ""


def hint_of(finished: ToolFinished) -> str:
    """Return what the person is to know of a call, a line of its own: how a server in the sandbox is reached."""
    found = _display(finished).get("hint")
    return one_line(found) if isinstance(found, str) else ""


def streams_of(finished: ToolFinished) -> str:
    """Join what a command wrote, as the tool hands it over."""
    shown = _display(finished)
    streams = [shown.get(name) for name in ("stdout", "stderr")]
    return "\n".join(text for text in streams if isinstance(text, str) and text.strip())


def steps_of(finished: ToolFinished) -> str | None:
    """Return the list of steps that a call has noted, "" where it cleared it; None for any other call."""
    found = (
        _display(finished).get("steps") if finished.name == "todo" and finished.success else None
    )
    return found if isinstance(found, str) else None


def todo_lines(steps: str, width: int, most: int, paint: Paint, signs: Signs) -> list[str]:
    """Draw a list of steps in at most `most` lines, those around the one that is being done."""
    from ybs.frontends.terminal.drawing.markdown import draw

    rows = [(line[1:2], line[4:]) for line in steps.splitlines()]
    lines: list[str] = []
    for mark, text in rows:
        box = {"x": "☑", ">": signs.prompt}.get(mark, "☐")
        drawn = draw(text, width - 4, has_colour=paint.has_colour).split("\n")
        first, *rest = (f"{'  ' if index else box + ' '}{line}" for index, line in enumerate(drawn))
        shown = [f"  {line}" for line in (first, *rest)]
        lines += [paint.dim(line) for line in shown] if mark == "x" else shown
        if mark == ">":
            lines[-len(shown)] = "  " + paint.accent(box) + lines[-len(shown)][3:]
    if len(lines) <= most:
        return lines
    start = max(0, min(len(lines) - most, sum(mark == "x" for mark, _ in rows) - 1))
    return [
        *lines[start : start + most - 1],
        paint.dim(f"  {hidden_text(len(lines) - most + 1, signs)}"),
    ]


def _display(finished: ToolFinished) -> dict[str, Any]:
    try:
        return msgspec.json.decode(finished.display, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
