"""Commands about what the person sees: /stream, /verbose, and /diff of what was changed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ybs.session.reply import Reply
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.session.changes import FileChange

_MORE = "Commands ran too; what they changed is not in here (git diff shows it)."


async def change_streaming(session: Session, argument: str) -> Reply:
    """Show the answer as it comes, or when it is whole."""
    state = _wanted(argument, session.view.streams)
    if state is None:
        return Reply(text="Usage: /stream, /stream on or /stream off", is_error=True)
    session.view.streams = state
    how = "as they come" if state else "when they are whole"
    return Reply(text=f"Answers are shown {how}.")


async def change_verbosity(session: Session, argument: str) -> Reply:
    """Show more or less of the work."""
    state = _wanted(argument, session.view.is_verbose)
    if state is None:
        return Reply(text="Usage: /verbose, /verbose on or /verbose off", is_error=True)
    session.view.is_verbose = state
    what = "whole: arguments, outputs, thinking" if state else "shortened"
    return Reply(text=f"The work is shown {what}.")


def _wanted(argument: str, now: bool) -> bool | None:
    """Read `on` or `off`; nothing turns it round. None for what makes no sense."""
    return {"": not now, "on": True, "off": False}.get(argument.lower())


async def show_diff(session: Session, argument: str) -> Reply:
    """Show what the last turn changed in files, or all turns."""
    if argument.lower() not in ("", "all"):
        return Reply(text="Usage: /diff, or /diff all", is_error=True)
    turns = session.changes.turns
    changed = [place for place, turn in enumerate(turns) if turn.files]
    if not changed:
        note = f" {_MORE}" if turns else ""
        return Reply(text=f"No file was changed in this session.{note}")
    shown = turns if argument else turns[changed[-1] :]
    files = [change for turn in shown for change in turn.files]
    title = "The session changed:" if argument else "The last turn that changed files:"
    notes = [_MORE] if any(turn.commands for turn in shown) else []
    if any(not (change.diff or change.is_removal) for change in files):
        notes.append("Some differences are no longer kept: they were too old or too long.")
    text = "\n".join([title, *_summary(files), *notes])
    return Reply(text=text, diff="\n".join(change.diff for change in files if change.diff))


def _summary(files: "Sequence[FileChange]") -> list[str]:
    """Say what happened to each file, in a line."""
    lines: list[str] = []
    for path in dict.fromkeys(change.path for change in files):
        changes = [change for change in files if change.path == path]
        added = sum(change.added for change in changes)
        removed = sum(change.removed for change in changes)
        edits = f", {len(changes)} changes" if len(changes) > 1 else ""
        how = "deleted" if changes[-1].is_removal else f"+{added} -{removed}"
        lines.append(f"  {path}  {how}{edits}")
    return lines
