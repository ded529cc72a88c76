"""Commands about saved sessions: list them, go on with one, copy, name and describe them."""

import asyncio
import re
from time import time as now
from typing import TYPE_CHECKING

from ybs.commands.figures import age, number_in
from ybs.core.cutting import first_words
from ybs.core.errors import YbsError
from ybs.core.events import Event, Titled
from ybs.core.wording import plural
from ybs.security.incognito import WRITES_NOTHING
from ybs.security.unicode import printable
from ybs.session.reply import Menu, MenuItem, Reply, Table
from ybs.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ybs.transcripts.reading import Saved

#: So many are offered at once.
MOST_SESSIONS = 200
NOT_BEGUN = "This session is still empty."
_LABEL, _TITLE = 60, 80
_UNSAFE = re.compile(r"[^\w.-]+")


async def show_sessions(session: Session, argument: str) -> Reply:
    """Offer the saved sessions of this folder, or of all folders, the newest first."""
    if number_in(argument):
        return await resume(session, argument)
    if argument.lower() not in ("", "all"):
        return Reply.error("Usage: /sessions, /sessions all, or /sessions NUMBER")
    is_all = bool(argument)
    saved = [each for each in await _listed(session, is_all=is_all) if each.messages]
    if not saved:
        more = "" if is_all else " /sessions all lists those of all folders."
        return Reply(
            text=f"There are no saved sessions{' of this folder' * (not is_all)} yet.{more}"
        )
    items = tuple(_item(session, each) for each in saved[:MOST_SESSIONS])
    title = "Saved sessions" if is_all else "Saved sessions of this folder"
    menu = Menu(title, items)
    session.offered["resume"] = menu  # /resume 2 takes one of these too
    hidden = len(saved) - len(items)
    notes = [f"{hidden:,} older sessions are not shown."] * bool(hidden)
    if not is_all:
        notes.append("/sessions all lists those of all folders.")
    return Reply(menu=menu, notes=("Resume one with /sessions NUMBER.", *notes))


async def _listed(session: Session, *, is_all: bool) -> "Sequence[Saved]":
    """Return the saved sessions, those of this folder first, and one-shots behind the conversations."""
    folder = str(session.folder)
    store = session.journal.store()
    if is_all:
        return await asyncio.to_thread(store.numbered, folder)
    found = await asyncio.to_thread(lambda: store.sessions(project=folder))
    return sorted(found, key=lambda each: each.is_one_shot)


def _item(session: Session, saved: "Saved") -> MenuItem:
    is_current = saved.name == session.journal.name
    elsewhere = [session.host.short(saved.project)] * (saved.project != str(session.folder))
    is_open = ["open in another ybs"] * (saved.is_open is True and not is_current)
    kind = ["one-shot"] * saved.is_one_shot
    told = [age(now() - saved.changed_at), plural(saved.messages, "message")]
    facts = [*told, *kind, *elsewhere, *is_open]
    return MenuItem(
        f"/resume {saved.name}",
        first_words(printable(saved.title), _LABEL) or saved.name,
        ", ".join(facts),
        is_current=is_current,
    )


async def resume(session: Session, argument: str) -> Reply:
    """Go on with a saved session, in its file or with `fork` in a copy; with no name, offer them."""
    words = argument.split()
    is_fork = len(words) > 1 and words[-1].lower() == "fork"
    wanted = argument.rpartition(" ")[0].strip() if is_fork else argument
    if not wanted:
        return await show_sessions(session, "")
    saved = await _found(session, wanted)
    if saved.name == session.journal.name and not is_fork:
        return Reply(text="You are in this session: nothing changed.")
    return await _go_on(session, saved.name, is_fork=is_fork)


async def _found(session: Session, wanted: str) -> "Saved":
    """Find a session by a name, a title, or a number of the list that was shown last. Raises YbsError."""
    number, offered = number_in(wanted), session.offered.get("resume")
    if offered is not None and 1 <= number <= len(offered.items):
        wanted = offered.items[number - 1].line.removeprefix("/resume ")
    folder = str(session.folder)
    return await asyncio.to_thread(session.journal.store().find, wanted, project=folder)


async def _go_on(session: Session, name: str, *, is_fork: bool) -> Reply:
    from ybs.config.private_file import Busy

    has_jobs = bool(session.environment.has_jobs())
    try:
        await session.resume(name, is_fork=is_fork)
    except Busy as error:
        text = f"{name} is open in another ybs. Continue in a copy with `/resume {name} fork`."
        raise YbsError(text) from error
    reply = resumed_reply(session, is_fork=is_fork)
    if not has_jobs:
        return reply
    from msgspec.structs import replace

    return replace(reply, text=f"{reply.text}\nThe background jobs were stopped.")


def resumed_reply(session: Session, *, is_fork: bool = False) -> Reply:
    """Say what a session goes on from, what is different from then, and show what was said last."""
    from ybs.session.exchange import earlier_exchanges, last_exchange, told_beside

    messages, whole = session.conversation.messages, session.journal.replay.restorable() or ()
    ends = {turn.place: turn.end for turn in session.history.turns if turn.place >= 0}
    events = last_exchange(messages, ends, told_beside(session.journal.earlier))
    earlier = earlier_exchanges(messages, ends) if events else earlier_exchanges(whole)
    events = (*earlier, *(events or last_exchange(whole)))
    count = plural(len(messages), "message")
    title = f" “{name}”" if (name := session.journal.replay.title) else ""
    copy = f", in a copy: {session.journal.name}" if is_fork else ""
    first = f"Resumed{title}, {count}{copy}."
    return Reply(text="\n".join([first, *_differences(session)]), events=events)


def _differences(session: Session) -> list[str]:
    """Say what is not as it was when the session was left."""
    replay, now, lines = session.journal.replay, session.state, list[str]()
    folder = str(session.folder)
    if session.is_cut_short:
        lines.append("ybs ended in the midst of the last turn; /retry goes on with it.")
    if damaged := session.journal.damaged:
        lines.append(f"{plural(damaged, 'damaged line')} of its file could not be read.")
    if replay.started is not None and replay.started.folder != folder:
        lines.append(
            f"The session was started in {session.host.short(replay.started.folder)}; you are now in {folder}."
        )
    provider = replay.config.get("provider", now.provider)
    model = replay.config.get("model", "")
    if model and (model, provider) != (now.model, now.provider):
        is_same = provider == now.provider
        back = f"/model {model}" if is_same else f"/provider {provider} {model}"
        then = model if is_same else f"{provider} {model}"
        now_used = now.model if is_same else f"{now.provider} {now.model}"
        lines.append(f"It used {then} before and uses {now_used} now; {back} switches back.")
    if why := _why_not_saved(session):
        lines.append(f"From here on, this session is not saved: {why}.")
    return lines


async def fork(session: Session, _argument: str) -> Reply:
    """Leave this session's file as it is, and go on in a copy of it."""
    if not session.journal.name:
        return Reply.error(NOT_BEGUN)
    if not session.journal.path:
        return Reply.error(f"There is no file: {_why_not_saved(session)}.")
    before = session.journal.name
    reply = await _go_on(session, before, is_fork=True)
    lines = reply.text.split("\n")[1:]
    first = f"You continue in a copy, {session.journal.name}; {before} stays as it is."
    return Reply(text="\n".join([first, *lines]))


async def save(session: Session, argument: str) -> Reply:
    """Write a copy of the session under a name of its own. Nothing is overwritten."""
    if not session.environment.incognito.may_write:
        return Reply.error(f"Not saved: {WRITES_NOTHING}.")
    if not session.journal.name:
        return Reply.error(f"Not saved: {NOT_BEGUN[0].lower()}{NOT_BEGUN[1:]}")
    path = session.journal.path
    if not argument and path:
        name = session.journal.name
        return Reply(
            text=f"This session is saved continuously, as {name}. /save NAME saves a copy."
        )
    name = file_name(argument)
    if argument and not any(each.isalpha() for each in name):
        return Reply.error("The name needs at least one letter: /save NAME")
    source = session.journal.name if path else _written(session)
    if argument:
        store = session.journal.store()
        try:
            await asyncio.to_thread(lambda: store.copy(source, name, title=_title(argument)))
        finally:
            if not path:
                store.delete(source)
    return Reply(text=f"Saved as {name or source}. You continue in the original session.")


def file_name(name: str) -> str:
    """Return a name that is safe as that of a file."""
    safe = _UNSAFE.sub("-", name.removesuffix(".jsonl"))
    return safe.strip("-.")[:_TITLE].rstrip("-.")


def _written(session: Session) -> str:
    """Write down a session that was not, because nobody wanted it; return its name. Raises YbsError and OSError."""
    from ybs.core.events import SessionEnded, SystemPrompted, TurnFinished
    from ybs.session.export import event_of
    from ybs.session.masking import masked_event

    messages, firewall = session.conversation.messages, session.environment.secrets.firewall
    begins = {turn.place for turn in session.journal.replay.past_turns.open if turn.place > 0}
    said = [event_of(message) for message in messages]
    for place in sorted(begins, reverse=True):
        said.insert(place, TurnFinished(reason="done"))
    name = session.journal.store().create()
    log = session.journal.store().open_log(name)
    events: list[Event] = [
        session.beginning(name),
        SystemPrompted(content=session.conversation.system),
        *said,
        Titled(title=session.journal.replay.title),
        SessionEnded(reason="copied", message_count=len(messages)),
    ]
    try:
        for event in events:
            log.add(masked_event(firewall, event))
        if log.problem:
            raise YbsError(f"Not saved: {log.problem}")
    finally:
        log.close()
    return name


async def rename(session: Session, argument: str) -> Reply:
    """Give the session another title."""
    if not argument:
        title = session.journal.replay.title
        return Reply(
            text=f"Title: {title}"
            if title
            else "This session has no title yet. Set one with /rename TITLE."
        )
    title = _title(argument)
    session.emit(Titled(title=title))
    return Reply(text=f"Title: {title}")


async def show_session(session: Session, _argument: str) -> Reply:
    """Show what is known of this session: its title, file, size, age, and whether it is saved."""
    journal = session.journal
    if not journal.name:
        why = _why_not_saved(session)
        kept = (
            f"It will not be saved: {why}." if why else "It will be saved from the first prompt on."
        )
        return Reply(text=f"{NOT_BEGUN} {kept}")
    turns = len(session.turns)
    why = _why_not_saved(session)
    rows = [
        ("title", journal.replay.title),
        ("name", journal.name),
        ("file", journal.path and session.host.short(journal.path)),
        ("messages", f"{len(session.conversation.messages):,}"),
        ("turns", f"{turns:,}"),
        ("begun", _begun(journal.name, journal.path)),
        ("saved", f"no: {why}" if why else "continuously"),
    ]
    return Reply(tables=(Table.of(row for row in rows if row[1]),))


def _begun(name: str, path: str) -> str:
    """Return when a session began: its name tells, or its first line."""
    if found := re.match(r"session-(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)", name):
        return "{}-{}-{} {}:{}".format(*found.groups())
    from datetime import datetime
    from pathlib import Path

    from ybs.transcripts.line import decoded

    with Path(path).open("rb") as file:
        line = decoded(file.readline())
    if line is None or not line.timestamp:
        return ""
    return f"{datetime.fromisoformat(line.timestamp).astimezone():%Y-%m-%d %H:%M}"


def _why_not_saved(session: Session) -> str:
    if not session.environment.incognito.may_write:
        return WRITES_NOTHING
    if not session.journal.may_write:
        return "session.auto_save is off (/save saves it once)"
    return session.journal.problem


def _title(words: str) -> str:
    return first_words(printable(words), _TITLE)
