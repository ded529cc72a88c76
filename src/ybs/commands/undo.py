"""Commands that take back and bring back: /undo, /redo, /compact and /restore."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ybs.commands.figures import amount
from ybs.core.wording import listed
from ybs.session.reply import Reply, TerminalActions
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.session.history import WayBack

FILES_STAY = "Files stay as they are."
_NO_COPIES = "undo keeps no copies of dependencies, build outputs and caches"
NONE_KNOWN = f"No file changed that undo can bring back: {_NO_COPIES}."
NOT_KEPT = "Files stay as they are: incognito keeps none of what they were."
WERE_COMPACTED = (
    "The conversation stays: the words of that turn were compacted. /restore brings them back."
)
WERE_FORGOTTEN = "The conversation stays: the words of that turn are no longer in it."
STILL_RUNS = "What runs in the background (/jobs) goes on, and what it changes is not taken back."
_UNDO = re.compile(r"([1-9][0-9]{0,3})?\s*(force)?", re.IGNORECASE)
_MOST_PATHS = 4
_UNKEPT = (
    "Not brought back, because no copy was kept (over 10 MB, not a plain file, or a folder of dependencies, "
    "build outputs or caches)"
)
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
        return Reply(text="Usage: /undo, /undo N, or one of them with force", is_error=True)
    count = int(asked[1] or 1)
    way = await session.history.undo(count, force=bool(asked[2]))
    turns = "the last turn" if way.turns == 1 else f"{way.turns} turns"
    force = f"/undo {count} force" if count > 1 else "/undo force"
    return told(session, way, done=f"Took back {turns}.", force=force)


async def redo(session: Session, argument: str) -> Reply:
    """Do again what was taken back last."""
    if argument.lower() not in ("", "force"):
        return Reply(text="Usage: /redo, or /redo force", is_error=True)
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
        return Reply(text=f"All of it is back: {back}.")
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
        return Reply(text=files.problem or _conflicts(files.conflicts, force), is_error=True)
    lines = [" ".join([done, *_files(session, way, wanted_files=wanted_files), *_commits(way)])]
    if files is None and not way.was_cut:
        lines = [f"Nothing to take back. {_where_words_are(session)}"]
    elif wanted_files and not way.was_cut and way.words:
        lines.append(_where_words_are(session))
    lines += _rest(way)
    if files is not None and session.environment.has_jobs():
        lines.append(STILL_RUNS)
    actions = TerminalActions(draft=way.words if way.was_cut else "")
    return Reply(text="\n".join(lines), terminal=actions)


def _where_words_are(session: Session) -> str:
    """Say why a turn has no words to take back: a compaction set them aside, or /clear or /rewind forgot them."""
    was_compacted = session.journal.replay.restorable() is not None
    return WERE_COMPACTED if was_compacted else WERE_FORGOTTEN


def _conflicts(paths: Sequence[str], force: str) -> str:
    those = "it" if len(paths) == 1 else "them"
    return (
        f"Nothing was taken back. Changed since, by you or another program: {listed(paths, _MOST_PATHS)}.\n"
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
        (_UNKEPT, files.unkept),
        ("Left as they are, because they changed since", files.left),
        ("Not removed, because other files are in them", [f"{path}/" for path in files.stayed]),
    )
    lines = [f"{why}: {listed(paths, _MOST_PATHS)}." for why, paths in rows if paths]
    beyond = [*files.beyond, *[_NO_COPIES] * way.ran_commands]
    return [*lines, *(f"{_BEYOND}: {reason}." for reason in beyond)]


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
