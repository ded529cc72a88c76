"""Hints after a tool result, for small models, which else stop too early or too late."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from ybs.core.lazy import lazy
from ybs.core.messages import ToolResult
from ybs.core.ports import Effect
from ybs.small_models.intents import intent_of
from ybs.small_models.mentions import NO_CODE, files_in, without_commands
from ybs.small_models.read_ahead import paths_of
from ybs.small_models.topics import is_about_one, topics_in
from ybs.tools.shell.programs import has_hint

ACT: Final = "Now do what was asked for: make the next call."
ANSWER: Final = "If this answers the question, answer it in words now. If it is not in there, say so, or look elsewhere."
RAN: Final = "If this is all that was asked for, answer in words now. Else make the next call."
CHANGED: Final = "If nothing else was asked for, say so in words now."
#: In the place of the others, for a model that loses its task over what it reads.
ASKED: Final = "You were asked: {}"
LINES: Final = "It has {} lines that are not empty."
WITH: Final = "{} lines have {} in them."
ROWS: Final = "The table has {} rows below its heading."
FILES: Final = "There are {} files."
ABSENT: Final = "There is nothing about {} in it."
MISSING: Final = "There is no such file."
_OF_FOLDERS = lazy(r"(?i)\b(?:folders?|director(?:y|ies))\b")
_OF_LINES = lazy(r"(?i)\blines?\b")
_SHOWN = lazy(r"\[\d+ of ([\d,]+) files shown")
_LINE = lazy(r"(?m)^ *\d+\t(.*)$")
#: After a change that left a file which cannot be read as what it is.
FIX: Final = "{} Fix it."
#: After a change where a command that was named is to be run, and was not yet.
RUN_NOW: Final = "Nothing was run yet. Make the next call: run `{}`."
#: After an edit where a command has failed before.
RUN_AGAIN: Final = "Now run again what failed."
RUN_FAILED: Final = "This failed. Find out why: read the code to blame, not the test."
#: Where a program was not found, and run_shell says what is there.
RUN_INSTEAD: Final = "Make the call again that way."
FAILED: Final = "This failed. Read why. Take another way, or say in words what is in the way."
REFUSED: Final = "This is not allowed and will not be. Go on without it, or answer in words."


def hint_after(
    result: ToolResult, effect: Effect, *, is_due: bool, has_failed: bool, to_run: str = ""
) -> str:
    """Return the line behind a result.

    `is_due`: a change was asked for, and none was made yet. `has_failed`: the last command did. `to_run` is a command that is to
    be run after a change.
    """
    if result.is_refused:
        return REFUSED
    if result.is_error:
        if effect == "execute" and has_hint(result.output):
            return RUN_INSTEAD
        return RUN_FAILED if effect == "execute" and is_due else FAILED
    if effect == "read":
        return ACT if is_due else ANSWER
    if effect == "execute":
        return RAN
    after = RUN_NOW.format(to_run) if to_run else CHANGED
    return RUN_AGAIN if has_failed else after


def left_to_change(words: str, changed: Collection[str]) -> list[str]:
    """Return the files that the words name for a change and that are not among the changed ones; of what is to be repaired, the code."""
    named = [path.removeprefix("./") for path in files_in(without_commands(words))]
    if intent_of(words) == "fix":
        named = [path for path in named if not re.search(NO_CODE(), path)]
    return [path for path in named if not any(f"/{each}".endswith(f"/{path}") for each in changed)]


def asked_again(words: str, result: ToolResult) -> str:
    """Return the line behind a result for a model that loses its task over what it reads: the task, and what it counts or does not find by itself."""
    if result.name == "list_files" and is_missing(result):
        return MISSING
    return " ".join([ASKED.format(words), *found_out(words, result)])


def found_out(words: str, result: ToolResult) -> Iterator[str]:
    """Yield what a small model does not see by itself in what it has read: how many there are, and that something is not there."""
    if result.is_error:
        return
    if intent_of(words) == "count":
        if (lines := _lines_of(result)) and (counted := _counted(words, lines)):
            yield counted
        elif result.name == "list_files" and not re.search(_OF_FOLDERS(), words):
            more = re.search(_SHOWN(), result.output)
            yield FILES.format(more[1] if more else len(paths_of(result.output)))
    if absent := absent_in(words, result):
        yield ABSENT.format(" or ".join(absent))


def _counted(words: str, lines: Sequence[str]) -> str:
    """Return how many of the lines there may be a question of; nothing where it may be something within them."""
    if _is_table(lines) and not re.search(_OF_LINES(), words):
        return ROWS.format(len(lines) - 1)
    for topic in topics_in(words, files_in(words)):
        if count := sum(topic.casefold() in line.casefold() for line in lines):
            return WITH.format(count, topic)
    is_list = not any(line[0].isspace() for line in lines)
    return LINES.format(len(lines)) if is_list or re.search(_OF_LINES(), words) else ""


def is_missing(result: ToolResult) -> bool:
    """Return whether nothing was found, no folder either."""
    return result.output.startswith("No ") and "Folders: " not in result.output


def absent_in(words: str, result: ToolResult) -> Sequence[str]:
    """Return what a question is about, where none of it stands in the file that was read for it."""
    lines = _lines_of(result)
    if not is_about_one(words) or not lines:
        return ()
    topics = topics_in(words, files_in(words))
    if not _is_table(lines):  # other words than names may be said in another way there
        topics = [topic for topic in topics if not topic.islower()]
    text = result.output.casefold()
    return () if any(each.casefold() in text for each in topics) else topics


def _lines_of(result: ToolResult) -> list[str]:
    """Return the lines that a result has of a file, without empty ones."""
    if result.name != "read_file" or result.is_error:
        return []
    return [line for line in re.findall(_LINE(), result.output) if line.strip()]


def _is_table(lines: Sequence[str]) -> bool:
    """Return whether the lines are those of a table, by the commas, semicolons or tabs in each."""
    counts = {tuple(map(line.count, ",;\t")) for line in lines}
    return len(counts) == 1 and any(*counts)
