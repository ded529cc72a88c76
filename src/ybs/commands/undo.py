"""The commands /undo, /redo, /rewind and /diff: what turns changed, and the way back."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, cast

from ybs.commands.figures import amount, number_in, time
from ybs.core.cutting import first_words
from ybs.core.errors import YbsError
from ybs.core.events import FilesChanged
from ybs.core.wording import listed, plural
from ybs.session.history import What
from ybs.session.reply import Menu, MenuItem, Reply, TerminalActions
from ybs.session.session import Session
from ybs.tools.editing.diff import diff_of_change

if TYPE_CHECKING:
    from ybs.checkpoints.states import Restored
    from ybs.core.changes import FileChange
    from ybs.session.composer import Heard
    from ybs.session.history import WayBack
    from ybs.session.tally import TurnChanges

FILES_STAY = "Files stay as they are."
_NO_COPIES = "undo keeps no copies of dependencies, build outputs and caches"
NONE_KNOWN = f"No file changed that undo can bring back: {_NO_COPIES}."
NOT_KEPT = "Files stay as they are: incognito mode keeps no copies for undo."
WERE_COMPACTED = (
    "The conversation stays: the words of that turn were compacted. /restore brings them back."
)
WERE_FORGOTTEN = "The conversation stays: the words of that turn are no longer in it."
STILL_RUNS = "Commands in the background (/jobs) go on, and their changes are not undone."
_UNDO = re.compile(r"([1-9][0-9]{0,3})?\s*(force)?", re.IGNORECASE)
_MOST_PATHS = 4
#: What became of commits, said after an undo and after a redo.
_HOW = (
    (
        "moved",
        "The branch is back before {}; `git reflog` still lists it.",
        "The branch is at {} again.",
    ),
    ("added", "A new commit reverts {}.", "A new commit makes the changes of {} again."),
    ("stays", "Still in the git history: {}; `git revert` reverts it.", "Not committed again: {}."),
)
_BEYOND = "Commands may have changed more, which was not brought back"


async def undo(session: Session, argument: str) -> Reply:
    """Take the last turn back, or the last N: their words, and what they changed in files."""
    asked = _UNDO.fullmatch(argument)
    if asked is None:
        return Reply.error("Usage: /undo, /undo N, or one of them with force")
    count = int(asked[1] or 1)
    way = await session.history.undo(count, force=bool(asked[2]))
    turns = "the last turn" if way.turns == 1 else f"{way.turns} turns"
    force = f"/undo {count} force" if count > 1 else "/undo force"
    return told(session, way, done=f"Took back {turns}.", force=force)


async def redo(session: Session, argument: str) -> Reply:
    """Do again what was taken back last."""
    if argument.lower() not in ("", "force"):
        return Reply.error("Usage: /redo, or /redo force")
    way = await session.history.redo(force=bool(argument))
    if way.files is not None and way.files.is_done:
        done = f"Redone: {listed(way.files.paths, _MOST_PATHS)}."
        return Reply(text="\n".join([" ".join([done, *_commits(way, is_redo=True)]), *_rest(way)]))
    reply = told(session, way, done="Redone.", force="/redo force")
    return reply if reply.is_error else Reply(text="Redone.")


async def restore(session: Session, _argument: str) -> Reply:
    """Bring back what the last compaction set aside."""
    count = session.history.restore(session.agent.window)
    tokens = amount(
        session.agent.window.size_of(session.conversation.system, session.conversation.messages)
    )
    back = f"{count:,} messages, about {tokens} tokens"
    if session.journal.replay.restorable() is None:
        return Reply(text=f"Everything is restored: {back}.")
    return Reply(text=f"The last compaction is undone: {back}. /restore undoes the one before it.")


async def compact(session: Session, argument: str) -> Reply:
    """Set older parts of the conversation aside. What was done is an event, and told as one."""
    done = await session.compact(argument)
    return Reply(
        text=""
        if done is not None
        else "There is nothing to compact: the conversation is short enough."
    )


def told(
    session: Session, way: "WayBack", *, done: str, force: str, wanted_files: bool = True
) -> Reply:
    """Say how a way back went; `done` is what was asked for, `force` the line that overrides conflicts."""
    files = way.files
    if files is not None and not files.is_done:
        return Reply.error(files.problem or _conflicts(files.conflicts, force))
    lines = [" ".join([done, *_files(session, way, wanted_files=wanted_files), *_commits(way)])]
    if files is None and not way.was_cut:
        lines = [f"Nothing to undo. {_where_words_are(session)}"]
    elif wanted_files and not way.was_cut and way.words:
        lines.append(_where_words_are(session))
    lines += _rest(way)
    if files is not None and session.environment.has_jobs():
        lines.append(STILL_RUNS)
    actions = TerminalActions()
    if way.was_cut:
        session.parts.composer.note_given_back(way.words)
        actions = TerminalActions(draft=way.words)
    return Reply(text="\n".join(lines), terminal=actions)


def _where_words_are(session: Session) -> str:
    """Return why a turn has no words to take back: a compaction set them aside, or /clear or /rewind forgot them."""
    was_compacted = session.journal.replay.restorable() is not None
    return WERE_COMPACTED if was_compacted else WERE_FORGOTTEN


def _conflicts(paths: Sequence[str], force: str) -> str:
    those = "it" if len(paths) == 1 else "them"
    return (
        f"Nothing was undone. Changed since, by you or another program: {listed(paths, _MOST_PATHS)}.\n"
        f"{force} overwrites {those}."
    )


def _files(session: Session, way: "WayBack", *, wanted_files: bool) -> list[str]:
    if way.files is not None:
        paths = way.files.paths
        many = "1 file is" if len(paths) == 1 else f"{len(paths):,} files are"
        return [
            f"{many} as before: {listed(paths, _MOST_PATHS)}."
            if paths
            else "All files were already as before."
        ]
    if not wanted_files:
        return [FILES_STAY]
    if not session.environment.incognito.may_write:
        return [NOT_KEPT]
    return [NONE_KNOWN if way.ran_commands else FILES_STAY]


def _rest(way: "WayBack") -> list[str]:
    """Name all that is not as it was before the turns, or may not be."""
    if (files := way.files) is None:
        return []
    rows = (
        *_unkept(files),
        ("Left as they are, because they changed since", files.left),
        ("Not removed, because other files are in them", [f"{path}/" for path in files.stayed]),
    )
    lines = [f"{why}: {listed(paths, _MOST_PATHS)}." for why, paths in rows if paths]
    beyond = [*files.beyond, *[_NO_COPIES] * way.ran_commands]
    return [*lines, *(f"{_BEYOND}: {reason}." for reason in beyond)]


def _unkept(files: "Restored") -> Iterator[tuple[str, Sequence[str]]]:
    """Yield why files could not be brought back, with their names."""
    for reason in dict.fromkeys(files.unkept.values()):
        names = [name for name, why in files.unkept.items() if why == reason]
        yield f"Not brought back, because {'it' if len(names) == 1 else 'each'} {reason}", names


def _commits(way: "WayBack", *, is_redo: bool = False) -> list[str]:
    """Say what became of ybs's own commits."""
    lines: list[str] = []
    for how, undone, redone in _HOW:
        names = [each.commit[:7] for each in way.commits if each.how == how]
        if names:
            line = redone if is_redo else undone
            subject = "commit" if len(names) == 1 else "commits"
            lines.append(line.format(f"{subject} {listed(names, _MOST_PATHS)}"))
    return lines


#: /rewind offers so many prompts.
MOST_PROMPTS = 100
HAS_GONE_ON = (
    "The conversation has moved on since that list was shown. /rewind shows it as it is now."
)
_LABEL = 60
#: What was offered last, kept apart from the menu of what to go back with.
_OFFERED = "rewind to"
_ASKED = re.compile(
    r"([0-9]+)(?: of ([0-9]+))?(?: +(both|conversation|files))?( +force)?", re.IGNORECASE
)


async def rewind(session: Session, argument: str) -> Reply:
    """Offer the person's prompts, or go back to before the N-th last and give its words back."""
    prompts = session.history.prompts()[::-1]
    await session.parts.main.recorder.recover(session.emit)
    if not prompts:
        return Reply(text="There is no earlier prompt to go back to.", is_error=bool(argument))
    if not argument:
        return _offer(session, prompts)
    asked = _ASKED.fullmatch(argument)
    number = number_in(asked[1]) if asked else 0
    if asked is None or not 1 <= number <= len(prompts):
        most = f" (1 to {len(prompts)})" * (len(prompts) > 1)
        usage = f"Usage: /rewind, or /rewind N{most}, then both, conversation or files"
        return Reply.error(usage)
    if asked[2] and not _is_as_offered(session, number, prompts, asked[2]):
        return Reply.error(HAS_GONE_ON)
    place, words = prompts[number - 1]
    touched = changed_since(session, place)
    if touched and not asked[3]:
        return _choose(f"/rewind {argument}", words, len(touched))
    what = cast("What", (asked[3] or "both").lower())
    way = await session.history.rewind(place, what, force=bool(asked[4]))
    turns = "one prompt" if number == 1 else f"{number} prompts"
    done = "Took the files back." if what == "files" else f"Went back by {turns}."
    force = f"/rewind {number} {what} force"
    return told(session, way, done=done, force=force, wanted_files=what == "both")


def changed_since(session: Session, place: int) -> set[str]:
    """Return the files that turns have changed since that place of the conversation, and that can be taken back."""
    changes = (turn.changed for turn in session.history.since(place))
    return {path for change in changes if change is not None for path in change.paths}


def _choose(line: str, words: str, count: int) -> Reply:
    """Offer what to go back with."""
    files = plural(count, "file")
    choices = (
        ("both", "conversation and files", f"{files} as before"),
        ("conversation", "conversation only", FILES_STAY.lower().rstrip(".")),
        ("files", "files only", f"{files} as before, the conversation stays"),
    )
    items = tuple(MenuItem(f"{line} {what}", label, detail) for what, label, detail in choices)
    title = f"Back to before “{first_words(words, _LABEL)}”"
    return Reply(menu=Menu(title, items, is_numbered=False))


def _offer(session: Session, prompts: list[tuple[int, str]]) -> Reply:
    heard = {id(each.message): each for each in session.parts.composer.heard}
    messages = session.conversation.messages
    items = tuple(
        MenuItem(
            f"/rewind {number} of {len(prompts)}",
            _label(words),
            _when(number, heard.get(id(messages[place])), _count(session, place)),
        )
        for number, (place, words) in enumerate(prompts[:MOST_PROMPTS], 1)
    )
    keeps_files = any(turn.changed is not None for turn in session.history.turns)
    title = "Go back to an earlier prompt" + f". {FILES_STAY}" * (not keeps_files)
    menu = Menu(title, items)
    session.offered[_OFFERED] = menu
    hint = "/rewind N goes back there and puts that prompt into the input line."
    return Reply(menu=menu, notes=(hint,))


def _count(session: Session, place: int) -> int:
    return len(changed_since(session, place))


def _when(number: int, heard: "Heard | None", files: int) -> str:
    """Return how far back a prompt lies, whether it was said while a turn ran, and how many files changed since."""
    parts = ["the last prompt" if number == 1 else f"{number} prompts back"]
    if heard is not None:
        parts.append(f"{time(monotonic() - heard.at_seconds)} ago")
        parts += ["sent while ybs worked"] * heard.is_meanwhile
    parts += [f"{plural(files, 'file')} changed since"] * bool(files)
    return ", ".join(parts)


def _label(words: str) -> str:
    return first_words(words, _LABEL) or "(a picture)"


def _is_as_offered(
    session: Session, number: int, prompts: list[tuple[int, str]], total: str
) -> bool:
    """Return whether the prompt stands where the menu showed it: a turn may have read more since."""
    offered = session.offered.get(_OFFERED)
    items = offered.items if offered else ()
    return (
        number_in(total) == len(prompts)
        and number <= len(items)
        and items[number - 1].label == _label(prompts[number - 1][1])
    )


NOTHING = "No file was changed in this session."
_LAST, _ALL = "The last turn that changed files:", "The session changed:"
_MORE = "Commands ran too; their changes are not listed here (git diff shows them)."


async def show_diff(session: Session, argument: str) -> Reply:
    """Show what the last turn changed in files, the N-th last one that did, or all turns; or what /undo or /redo would change."""
    if argument in ("undo", "redo"):
        return await _ahead(session, argument)
    is_all, number = argument.lower() == "all", number_in(argument or "1")
    if not (is_all or number):
        return Reply.error("Usage: /diff [N|all|undo|redo]")
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
    return Reply.error(f"There are only {plural(count, 'turn')} that changed files.")


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
