"""Short words for calls, times, numbers and folders, as the terminal shows them."""

import re

from ybs.commands.advice import word
from ybs.commands.figures import amount, cost
from ybs.core.events import Compacted, PromptRead, RequestRetried, RequestStarted
from ybs.core.messages import Usage
from ybs.core.remedies import Remedy
from ybs.core.wording import plural
from ybs.frontends.terminal.signs import Paint
from ybs.security.unicode import printable
from ybs.tools.calls.describing import one_line

VERBS = {
    "read_file": "read",
    "write_file": "write",
    "edit_file": "edit",
    "delete_file": "delete",
    "list_files": "list",
    "search_files": "search",
    "run_shell": "shell",
    "shell_job": "job",
    "ask_user": "ask",
    "delegate": "agents",
}
#: Narrower screens have no columns, only lines.
NARROW = 50
#: Columns that the first line of an error takes at most, in several rows: a provider may say anything at any length.
MOST_MESSAGE = 240
#: Columns that the last one of a table has at least, or it goes on further to the left.
_LAST_WIDTH = 20
_LAST_COLUMN = re.compile(r"\s*\S.*?\s{2,}(?=\S)")
_ROW = re.compile(r"\s*(\S.*?)\s{2,}(\S.*)")
_COLOURS = re.compile("\x1b\\[[0-9;]*m")
_ATTRIBUTES = re.compile("(\x1b\\[[0-9;]*m)")


def verb(name: str) -> str:
    """Name a tool by its verb."""
    return VERBS.get(name) or one_line(name)


def cells(text: str) -> int:
    """Count the columns that the text takes, attributes left out."""
    from prompt_toolkit.utils import get_cwidth  # here, so that the plain screen need not load it

    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    return len(text) if text.isascii() and text.isprintable() else get_cwidth(text)


def shorten(text: str, width: int, more: str = "…") -> str:
    """Cut the end of the text so that it takes at most `width` columns."""
    if cells(text) <= width:
        return text
    room = max(0, width - cells(more))
    used = 0
    for index, character in enumerate(text):
        used += cells(character)
        if used > room:
            return text[:index].rstrip() + more[: max(0, width)]
    return text


def wrap(text: str, width: int) -> list[str]:
    """Break the text into lines of at most `width` columns, leaving nothing out; the rest of a long line goes on below, indented."""
    lines: list[str] = []
    for line in text.expandtabs(4).split("\n"):
        first, *rest = _chunks(line, max(4, width - 2))
        lines += [first, *(f"  {piece}" for piece in rest)]
    return lines


def wrap_words(text: str, width: int) -> list[str]:
    """Break the text after spaces where it can be, leaving nothing out, not even a space."""
    lines: list[str] = []
    width = max(4, width)
    while cells(text) > width:
        piece = _chunks(text, width)[0]
        after_space = piece.rfind(" ") + 1
        if after_space > len(piece) // 3:
            piece = piece[:after_space]
        lines.append(piece)
        text = text[len(piece) :]
    return [*lines, text]


def wrap_marked(text: str, width: int, margin: str, mark: str) -> list[str]:
    """Break lines as `wrap_words` does; what goes on below has a mark in the place of the margin."""
    room = width - max(cells(margin), cells(mark))
    lines: list[str] = []
    for line in text.expandtabs(4).split("\n"):
        first, *rest = wrap_words(line, room)
        lines += [margin + first, *(mark + piece for piece in rest)]
    return lines


def fold_drawn(line: str, width: int) -> list[str]:
    """Break a line that is drawn already, at `width` columns; its attributes go on below."""
    if cells(line) <= width:
        return [line]
    lines: list[str] = []
    start, used = "", 0
    for index, part in enumerate(_ATTRIBUTES.split(line)):
        if index % 2:
            start += part
            continue
        first, *rest = _chunks(part, width, used)
        lines += [start + first, *rest][: len(rest)]
        start, used = (rest[-1], cells(rest[-1])) if rest else (start + first, used + cells(first))
    return [*lines, start]


def fold(text: str, width: int) -> list[str]:
    """Break prose between words into lines of about `width` columns."""
    from textwrap import wrap as fold_line  # only where something is said

    width = max(8, width)
    lines: list[str] = []
    for line in text.expandtabs(4).split("\n"):
        parts = fold_line(line, width, break_on_hyphens=False)
        for part in parts or [""]:  # counts letters, some of which are wide
            lines += [part] if part.isascii() else fold_drawn(part, width)
    return lines


def cut_message(text: str, more: str) -> str:
    """Cut the first line of a message where it is very long; the lines below, what to do, stay."""
    first, newline, rest = text.strip().partition("\n")
    return shorten(first, MOST_MESSAGE, more) + newline + rest


def dim_lines(text: str, width: int, paint: Paint) -> list[str]:
    """Draw many words as secondary, behind a margin."""
    return [paint.dim("  " + line) if line else "" for line in fold(printable(text).strip(), width)]


def fold_table(text: str, width: int) -> list[str]:
    """Break lines between words; the rest of a row goes on below the start of its last column."""
    from textwrap import wrap as fold_line

    lines: list[str] = []
    sources = text.expandtabs(4).split("\n")
    if width < NARROW and any(cells(line) > width for line in sources):
        return _stacked(sources, width)
    for line in sources:
        start = _LAST_COLUMN.match(line)
        indent = len(start[0]) if start and len(start[0]) <= width - _LAST_WIDTH else 4
        first = line[: len(line) - len(line.lstrip())]  # what drops blanks drops these, too
        folded = fold_line(
            line.lstrip(), max(16, width), initial_indent=first, subsequent_indent=" " * indent
        )
        lines += folded or [""]
    return [piece for line in lines for piece in fold_drawn(line.rstrip(), max(16, width))]


def shown_line(line: str) -> str:
    """Return a line of output as a terminal would leave it: no colours, nothing that was overwritten."""
    left = _COLOURS.sub("", line).rstrip("\r").rpartition("\r")[2]
    return printable(left).expandtabs(4).rstrip()


def reason_of(message: str) -> str:
    """Return a short reason for a retry: the first line."""
    first = message.strip().split("\n", 1)[0]
    return shorten(one_line(first), MOST_MESSAGE).removesuffix(".")


def reading_words(event: PromptRead) -> str:
    """Return how much of the prompt a server has read."""
    return f"reads the prompt: {event.read:,} of {event.total:,} tokens"


def retry_words(event: RequestRetried) -> str:
    """Return why a request is sent again, and when."""
    return f"{reason_of(event.message)}, trying again in {duration(event.wait_seconds)}"


def compaction_words(event: Compacted, arrow: str = "->") -> str:
    """Return one line that says what a compaction did, and why where that is not plain."""
    why = {"refused": "too long for the provider: ", "smaller": "the window is smaller now: "}
    before, after = amount(event.tokens_before), amount(event.tokens_after)
    sizes = f"{why.get(event.reason, '')}compacted {before} {arrow} {after} tokens"
    outputs = plural(event.outputs, "tool output")
    how = "" if event.is_by_model or not event.summarised else " without the model"
    aside = [f"{outputs} set aside"] * bool(event.outputs)
    summed = [f"{event.summarised} messages summarised{how}"] * bool(event.summarised)
    return "; ".join(filter(None, [sizes, ", ".join([*aside, *summed])])) + " (/restore)"


#: A line of a terminal of 80 columns, in its margin; and what is left of a long name at least.
_LINE, _SHORTEST_NAME = 78, 12


def routed_words(event: RequestStarted) -> str:
    """Return one line that says of 78 columns which model a router picked, why, and the decision's id, by which `ybs router explain` finds it."""
    why = f": {one_line(event.reason)} ({event.decision})"
    return shorten(one_line(event.model), max(_LINE - cells(why), _SHORTEST_NAME)) + why


def own_shell_hint(denial: str, command: str) -> str:
    """Return one line that says what in the sandbox a command ran into, and how the person runs it without."""
    return f"{denial}; {word(Remedy('run_in_own_shell', command))}"


def duration(seconds: float) -> str:
    """Return how long something took, in at most six characters."""
    if seconds < 0.9995:
        return f"{max(1, round(max(0.0, seconds) * 1000))} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min" if minutes > 99 else f"{minutes}m {rest:02}s"


def usage_line(usage: Usage, seconds: float, dot: str = "·") -> str:
    """Return the usage of a turn."""
    parts = [f"{amount(usage.input_tokens)} in", f"{amount(usage.output_tokens)} out"]
    if usage.cached_tokens:
        parts.append(f"{amount(usage.cached_tokens)} cached")
    if spent := cost(usage):
        parts.append(spent)
    return f" {dot} ".join([*parts, duration(seconds)])


def _stacked(rows: list[str], width: int) -> list[str]:
    """Put the second column of every row below the first."""
    lines: list[str] = []
    for row in rows:
        if found := _ROW.fullmatch(row):
            lines += fold(found[1], width)
            lines += ["    " + line for line in fold(found[2], width - 4)]
        else:
            lines += fold(row, width)
    return lines


def _chunks(line: str, width: int, used: int = 0) -> list[str]:
    """Break the line at `width` columns, of which the first line has `used` some already."""
    pieces: list[str] = []
    if line.isascii():  # the common case, and fast
        first = max(0, width - used)
        rest = range(first, len(line), width)
        return [line[:first], *(line[start : start + width] for start in rest)]
    start = 0
    for index, character in enumerate(line):
        size = cells(character)
        if used + size > width:
            pieces.append(line[start:index])
            start, used = index, 0
        used += size
    return [*pieces, line[start:]]
