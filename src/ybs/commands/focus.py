"""The command /focus: what the work in this project is about now."""

import asyncio

from ybs.session.reply import Reply
from ybs.session.session import Session

_NONE = "No focus is set for this project. Set one with /focus TEXT; it is kept in .ybs/FOCUS.md."


async def focus(session: Session, argument: str) -> Reply:
    """Show the project's focus, put another in its place, or clear it."""
    from ybs.context.focus import read_focus

    folder = session.folder
    if not argument:
        text = await asyncio.to_thread(read_focus, folder)
        return Reply(text=text or _NONE)
    if not session.environment.incognito.may_write:
        from ybs.security.incognito import WRITES_NOTHING

        return Reply(text=f"The focus was not changed: {WRITES_NOTHING}.", is_error=True)
    if argument.lower() == "clear":
        return await _clear(session)
    return await _set(session, argument)


async def _set(session: Session, text: str) -> Reply:
    from ybs.context.focus import FOCUS_FILE, write_focus

    await asyncio.to_thread(write_focus, session.folder, text)
    session.context.tell(f"The focus of this project is now: {text}")
    return Reply(
        text=f"Saved in {FOCUS_FILE}: it applies from your next message on, and in later sessions."
    )


async def _clear(session: Session) -> Reply:
    from ybs.context.focus import clear_focus

    if not await asyncio.to_thread(clear_focus, session.folder):
        return Reply(text=_NONE)
    session.context.tell("The focus of this project was removed.")
    return Reply(text="The focus was cleared; this applies from your next message on.")
