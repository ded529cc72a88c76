"""Commands about memories: /memorize keeps one, /memories lists, searches, shows and forgets them."""

import asyncio
from typing import TYPE_CHECKING

from ybs.commands.figures import number_in
from ybs.core.cutting import first_words
from ybs.core.errors import YbsError
from ybs.core.wording import plural
from ybs.session.reply import Menu, MenuItem, Reply
from ybs.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ybs.context.memory import Memories
    from ybs.context.memory_file import Memory

#: So many are offered at once.
MOST_MEMORIES = 200
_LABEL = 60
_FOR_ALL = "everywhere:"
#: What shows one by its name, whatever it is called: `forget 1`, for example.
_SHOW = "/memories show "
_USAGE = (
    "Usage: /memorize TEXT keeps it for this project, /memorize everywhere: TEXT for all of them.\n"
    "To have something of this conversation kept, ask the model to memorize it."
)


async def memorize(session: Session, argument: str) -> Reply:
    """Keep a text for later sessions in this project, or in all."""
    is_for_all = argument.lower().startswith(_FOR_ALL)
    text = argument[len(_FOR_ALL) :].strip() if is_for_all else argument
    if not text:
        return Reply.error(_USAGE)
    memories = _memories(session)

    def keep() -> Reply:
        draft = memories.draft(text, for_all=is_for_all)
        path = memories.keep(text, for_all=is_for_all)
        where = "all projects" if is_for_all else "this project"
        lines = [f"Saved for {where}: {session.host.short(str(path))}"]
        lines += ["A secret in it was removed."] * draft.has_secret
        return Reply(text="\n".join(lines))

    return await asyncio.to_thread(keep)


async def show_memories(session: Session, argument: str) -> Reply:
    """List the memories, or those that words find; show or forget one, or bring back what was forgotten last."""
    action, _, rest = argument.partition(" ")
    match action.lower(), rest.strip():
        case "", _:
            return await asyncio.to_thread(_list, session)
        case "forget", "":
            return Reply.error("Usage: /memories forget N, or a name")
        case "forget", word:
            return await asyncio.to_thread(_forget, session, word)
        case "undo", "":
            memory = await asyncio.to_thread(_memories(session).bring_back)
            return Reply(text=f"Restored: {first_words(memory.text, _LABEL)}")
        case "show", word if word:
            memory = await asyncio.to_thread(_memories(session).find, _meant(session, word))
            return _shown(session, memory)
        case _:
            return await asyncio.to_thread(_look, session, argument)


def _memories(session: Session) -> "Memories":
    return session.context.memories


def _list(session: Session) -> Reply:
    memories = _memories(session)
    found = memories.all()
    notes = [f"{each.name} was not read, because {each.reason}." for each in memories.unread[:3]]
    if (more := len(memories.unread) - len(notes)) > 0:
        notes.append(f"{plural(more, 'other file')} too.")
    if not found:
        return Reply(
            text="\n".join(["There are no notes yet. Save one with /memorize TEXT.", *notes])
        )
    if (older := len(found) - MOST_MEMORIES) > 0:
        notes.append(f"{older:,} older notes are not shown; find them with /memories WORDS.")
    return _offered(found[:MOST_MEMORIES], "Memories", notes)


def _offered(memories: "Sequence[Memory]", title: str, notes: "Sequence[str]" = ()) -> Reply:
    items = tuple(
        MenuItem(
            f"{_SHOW}{each.name}.md",
            first_words(each.text, _LABEL),
            ", ".join(filter(None, (each.day, each.whose))),
        )
        for each in memories
    )
    menu = Menu(title, items)
    hint = "/memories N shows a note in full; /memories forget N deletes it."
    return Reply(menu=menu, notes=(hint, *notes))


def _look(session: Session, words: str) -> Reply:
    """Show the memory that is named, else those that the words find."""
    memories = _memories(session)
    try:
        return _shown(session, memories.find(_meant(session, words)))
    except YbsError:
        if found := memories.search(words):
            title = f"Memories about “{first_words(words, _LABEL)}”, best match first"
            return _offered(found, title)
        if number_in(words):
            raise
    return Reply(text=f"No note matches “{first_words(words, _LABEL)}”.")


def _shown(session: Session, memory: "Memory") -> Reply:
    whose = ", ".join(filter(None, (memory.day, memory.whose)))
    lines = [memory.text, "", f"{whose}: {session.host.short(str(memory.path))}"]
    if number := _number_of(session, memory):
        lines.append(f"/memories forget {number} deletes it.")
    return Reply(text="\n".join(lines))


def _number_of(session: Session, memory: "Memory") -> int:
    """Return the number of a memory that can be forgotten in the list that was shown last; 0: it has none."""
    offered = session.offered.get("memories")
    if offered is None or memory.place == "repository":
        return 0
    line = f"{_SHOW}{memory.name}.md"
    return next((n for n, item in enumerate(offered.items, 1) if item.line == line), 0)


def _forget(session: Session, word: str) -> Reply:
    memory = _memories(session).forget(_meant(session, word))
    session.offered.pop("memories", None)  # its numbers are those of before
    back = "/memories undo restores it, until this session ends."
    return Reply(text=f"Forgotten:\n{memory.text}\n\n{back}")


def _meant(session: Session, word: str) -> str:
    """Return the name that a number of the list that was shown last stands for."""
    number, offered = number_in(word), session.offered.get("memories")
    if offered is None or not 1 <= number <= len(offered.items):
        return word
    return offered.items[number - 1].line.removeprefix(_SHOW)
