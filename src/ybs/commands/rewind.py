"""The command /rewind: back to before one of the person's prompts, in the conversation, in files, or in both."""

import re
from time import monotonic
from typing import TYPE_CHECKING, cast

from ybs.commands.figures import number_in, time
from ybs.commands.undo import FILES_STAY, told
from ybs.core.wording import first_words, plural
from ybs.session.history import What
from ybs.session.reply import Menu, MenuItem, Reply
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.session.composer import Heard

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
        return Reply(text=usage, is_error=True)
    if asked[2] and not _is_as_offered(session, number, prompts, asked[2]):
        return Reply(text=HAS_GONE_ON, is_error=True)
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
    items = tuple(
        MenuItem(line=f"{line} {what}", label=label, detail=detail)
        for what, label, detail in choices
    )
    title = f"Back to before “{first_words(words, _LABEL)}”"
    return Reply(menu=Menu(title=title, items=items, is_numbered=False))


def _offer(session: Session, prompts: list[tuple[int, str]]) -> Reply:
    heard = {id(each.message): each for each in session.parts.composer.heard}
    messages = session.conversation.messages
    items = tuple(
        MenuItem(
            line=f"/rewind {number} of {len(prompts)}",
            label=_label(words),
            detail=_when(number, heard.get(id(messages[place])), _count(session, place)),
        )
        for number, (place, words) in enumerate(prompts[:MOST_PROMPTS], 1)
    )
    keeps_files = any(turn.changed is not None for turn in session.history.turns)
    title = "Go back to an earlier prompt" + f". {FILES_STAY}" * (not keeps_files)
    menu = Menu(title=title, items=items)
    session.offered[_OFFERED] = menu
    hint = "/rewind N goes back there and puts that prompt into the input line."
    return Reply(menu=menu, notes=(hint,))


def _count(session: Session, place: int) -> int:
    return len(changed_since(session, place))


def _when(number: int, heard: "Heard | None", files: int) -> str:
    """Say how far back a prompt lies, whether it was said while a turn ran, and how many files changed since."""
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
