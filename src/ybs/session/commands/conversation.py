"""Commands about the conversation: begin anew, go back, take out of it."""

from time import monotonic
from typing import TYPE_CHECKING

from ybs.security.incognito import WRITES_NOTHING
from ybs.session.figures import first_words, in_columns, number_in, time
from ybs.session.reply import Menu, MenuItem, Reply
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.session.composer import Heard

#: /rewind offers so many prompts.
MOST_PROMPTS = 100
HAS_GONE_ON = "The conversation has gone on since that was offered. /rewind shows it as it is now."
FILES_STAY = "Files stay as they are."
_LABEL = 60


async def clear(session: Session, _argument: str) -> Reply:
    """Forget the conversation."""
    session.clear()
    return Reply(text="The conversation is empty.")


async def begin_anew(session: Session, _argument: str) -> Reply:
    """Begin a new session with the same model and mode, incognito if this one is."""
    has_jobs = bool(session.rooms.workspace.shells.running_jobs)
    is_incognito = session.rooms.incognito.is_on
    await session.start_anew(is_incognito=is_incognito)
    kind = "A new, empty session" + ", incognito as before" * is_incognito
    return Reply(text=f"{kind}.{' What ran in the background was ended.' * has_jobs}")


async def rewind(session: Session, argument: str) -> Reply:
    """Offer the person's prompts, or go back to before the N-th last and give its words back."""
    prompts = session.prompts()[::-1]
    if not prompts:
        return Reply(text="There is nothing to go back to.", is_error=bool(argument))
    if not argument:
        return _offer(session, prompts)
    wanted, _, total = argument.partition(" of ")
    number = number_in(wanted)
    if not 1 <= number <= len(prompts):
        return Reply(
            text=f"Usage: /rewind, or /rewind N with N up to {len(prompts)}", is_error=True
        )
    if total and not _is_as_offered(session, number, prompts, total):
        return Reply(text=HAS_GONE_ON, is_error=True)
    place, words = prompts[number - 1]
    session.rewind(place)
    turns = "one prompt" if number == 1 else f"{number} prompts"
    return Reply(text=f"Went back by {turns}. {FILES_STAY}", draft=words)


def _offer(session: Session, prompts: list[tuple[int, str]]) -> Reply:
    heard = {id(each.message): each for each in session.rooms.composer.heard}
    messages = session.conversation.messages
    items = tuple(
        MenuItem(
            line=f"/rewind {number} of {len(prompts)}",
            label=_label(words),
            detail=_when(number, heard.get(id(messages[place]))),
        )
        for number, (place, words) in enumerate(prompts[:MOST_PROMPTS], 1)
    )
    width = len(str(len(items)))
    rows = [(f"{number:>{width}}", item.label, item.detail) for number, item in enumerate(items, 1)]
    lines = [f"  {line}" for line in in_columns(rows)]
    title = f"Go back to before a prompt. {FILES_STAY}"
    text = "\n".join([title, *lines, "/rewind N goes there, its words in the prompt."])
    return Reply(text=text, menu=Menu(title=title, items=items))


def _when(number: int, heard: "Heard | None") -> str:
    """Say how far back a prompt lies, and whether it was said while a turn ran."""
    back = "the last prompt" if number == 1 else f"{number} prompts back"
    if heard is None:
        return back
    ago = f"{time(monotonic() - heard.at_seconds)} ago"
    return ", ".join([back, ago, *["said while it worked"] * heard.is_meanwhile])


def _label(words: str) -> str:
    return first_words(words, _LABEL) or "(a picture)"


def _is_as_offered(
    session: Session, number: int, prompts: list[tuple[int, str]], total: str
) -> bool:
    """Tell whether the prompt stands where the menu showed it: a turn may have read more since."""
    offered = session.offered.get("rewind")
    items = offered.items if offered else ()
    return (
        number_in(total) == len(prompts)
        and number <= len(items)
        and items[number - 1].label == _label(prompts[number - 1][1])
    )


async def copy(session: Session, argument: str) -> Reply:
    """Copy an answer, or the last code block in one. The door says whether that worked."""
    from ybs.security.unicode import printable
    from ybs.session.answers import answers_of, last_code

    words = argument.lower().split()
    wants_code = "code" in words
    numbers = [word for word in words if word != "code"]
    answers = answers_of(session.conversation.messages)
    number = number_in("".join(numbers) or "1")
    if not number or len(numbers) > 1:
        return Reply(text="Usage: /copy, /copy N or /copy code", is_error=True)
    if number > len(answers):
        there = "is no answer" if not answers else f"are only {len(answers)} answers"
        there = "is only one answer" if len(answers) == 1 else there
        return Reply(text=f"There {there} to copy.", is_error=True)
    text = last_code(answers[number - 1]) if wants_code else answers[number - 1]
    if text is None:
        return Reply(text="There is no code block in that answer.", is_error=True)
    what = "code block" if wants_code else "answer"
    lines = text.count("\n") + 1
    said = f"The {what}, {lines:,} line{'' if lines == 1 else 's'}:"
    return Reply(text=said, clipboard=printable(text))


async def export(session: Session, argument: str) -> Reply:
    """Write the conversation into a new file: Markdown, or JSON lines where its name asks for them."""
    import asyncio

    from ybs.security.new_file import find_place, write_new

    if not session.rooms.incognito.may_write:
        text = f"Not written: {WRITES_NOTHING}. /copy copies the last answer."
        return Reply(text=text, is_error=True)
    messages = tuple(session.conversation.messages)
    if not messages:
        return Reply(text="There is nothing to export yet.", is_error=True)
    roots, name = session.rooms.workspace.roots, session.rooms.session_started.session
    place = find_place(roots, argument, f"{name}.md")
    from ybs.session.export import lines_of, markdown_of

    is_data = place.suffix.lower() in (".json", ".jsonl")
    data = (
        lines_of(session, messages)
        if is_data
        else markdown_of(session, messages).encode("utf-8", "replace")
    )
    await asyncio.to_thread(write_new, roots, place, data)
    return Reply(text=f"Exported {len(messages):,} messages: {place}")


async def leave(_session: Session, _argument: str) -> Reply:
    """Leave ybs."""
    return Reply(text="", wants_quit=True)
