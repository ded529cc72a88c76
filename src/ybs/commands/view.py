"""Commands about what the person sees: /stream and /verbose."""

from ybs.session.reply import Reply
from ybs.session.session import Session


async def change_streaming(session: Session, argument: str) -> Reply:
    """Show the answer as it comes, or when it is whole."""
    state = _wanted(argument, session.view.streams)
    if state is None:
        return Reply(text="Usage: /stream, /stream on or /stream off", is_error=True)
    session.view.streams = state
    how = "while they are written" if state else "when they are complete"
    return Reply(text=f"Answers are shown {how}.")


async def change_verbosity(session: Session, argument: str) -> Reply:
    """Show more or less of the work."""
    state = _wanted(argument, session.view.is_verbose)
    if state is None:
        return Reply(text="Usage: /verbose, /verbose on or /verbose off", is_error=True)
    session.view.is_verbose = state
    what = "in full: arguments, outputs, thinking" if state else "shortened"
    return Reply(text=f"The work is shown {what}.")


def _wanted(argument: str, now: bool) -> bool | None:
    """Read `on` or `off`; nothing turns it round. None for what makes no sense."""
    return {"": not now, "on": True, "off": False}.get(argument.lower())
