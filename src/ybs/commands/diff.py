"""The command /diff: what turns changed in files, commands' effects included where a checkpoint knows them."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ybs.commands.figures import number_in
from ybs.core.errors import YbsError
from ybs.core.events import FilesChanged
from ybs.core.wording import plural
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.tools.editing.diff import diff_of_change

if TYPE_CHECKING:
    from ybs.core.changes import FileChange
    from ybs.session.changes import TurnChanges

NOTHING = "No file was changed in this session."
_LAST, _ALL = "The last turn that changed files:", "The session changed:"
_MORE = "Commands ran too; their changes are not listed here (git diff shows them)."


async def show_diff(session: Session, argument: str) -> Reply:
    """Show what the last turn changed in files, the N-th last one that did, or all turns; or what /undo or /redo would change."""
    if argument in ("undo", "redo"):
        return await _ahead(session, argument)
    is_all, number = argument.lower() == "all", number_in(argument or "1")
    if not (is_all or number):
        return Reply(text="Usage: /diff [N|all|undo|redo]", is_error=True)
    kept = session.journal.replay.checkpoints
    running = [session.changes.running] * (session.is_busy and bool(session.changes.running.files))
    if not kept or (running and number == 1):
        return _noted(session.changes.turns, number, is_all=is_all)
    place = number - len(running)
    if place > len(kept):
        return _too_few(len(kept) + len(running))
    title = _title(number, is_all=is_all)
    if is_all:
        return await _kept(session, kept, running, title)
    return await _kept(session, [kept[-place]], [], title)


async def _ahead(session: Session, way: str) -> Reply:
    """Show the changes that /undo would take back, or that /redo would make again."""
    if way == "undo":
        wanted = [each.changed for each in session.history.turns[-1:] if each.changed is not None]
    else:
        wanted = [
            FilesChanged(checkpoint=name, paths=tuple(sorted(each.paths)))
            for each in session.history.undone[-1:]
            for name in reversed(each.checkpoints)
        ]
    if not wanted:
        return Reply(text="No file would be changed.")
    return await _kept(session, wanted, [], f"/{way} is about these changes:")


def _title(number: int, *, is_all: bool) -> str:
    if is_all:
        return _ALL
    return _LAST if number == 1 else f"Turn {number} back, counting those that changed files:"


def _too_few(count: int) -> Reply:
    return Reply(text=f"There are only {plural(count, 'turn')} that changed files.", is_error=True)


async def _kept(
    session: Session, wanted: "Sequence[FilesChanged]", last: "list[TurnChanges]", title: str
) -> Reply:
    """Show what checkpoints know of turns, and what is known of the running one."""
    checkpoints = session.parts.main.recorder.checkpoints
    lines, diffs = [title], list[str]()
    for change in wanted:
        try:
            done = await asyncio.to_thread(checkpoints.changes, change.checkpoint)
            diffs.append(await asyncio.to_thread(checkpoints.diff, change.checkpoint))
        except (YbsError, OSError):  # pruned, or damaged
            done = [f"{path} (the differences are no longer stored)" for path in change.paths]
        lines += [f"  {each}" for each in done]
    files = [change for turn in last for change in turn.files]
    diffs += map(diff_of_change, files)
    return Reply(text="\n".join([*lines, *_summary(files)]), diff="\n".join(filter(None, diffs)))


def _noted(turns: "Sequence[TurnChanges]", number: int, *, is_all: bool) -> Reply:
    """Show what the tools said that they changed: all that is known where nothing is kept."""
    changed = [place for place, turn in enumerate(turns) if turn.files]
    if not changed:
        note = f" {_MORE}" if turns else ""
        return Reply(text=f"{NOTHING}{note}")
    if number > len(changed):
        return _too_few(len(changed))
    first = changed[-number]
    shown = turns if is_all else turns[first:] if number == 1 else turns[first : first + 1]
    files = [change for turn in shown for change in turn.files]
    notes = [_MORE] if any(turn.commands for turn in shown) else []
    text = "\n".join([_title(number, is_all=is_all), *_summary(files), *notes])
    return Reply(text=text, diff="\n".join(filter(None, map(diff_of_change, files))))


def _summary(files: "Sequence[FileChange]") -> list[str]:
    """Say what happened to each file, in a line."""
    lines: list[str] = []
    for path in dict.fromkeys(change.path for change in files):
        changes = [change for change in files if change.path == path]
        added = sum(change.added for change in changes)
        removed = sum(change.removed for change in changes)
        edits = f", {len(changes)} changes" if len(changes) > 1 else ""
        how = "deleted" if changes[-1].after is None else f"+{added} -{removed}"
        lines.append(f"  {path}  {how}{edits}")
    return lines
