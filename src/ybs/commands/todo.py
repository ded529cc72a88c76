"""The command /todo: the steps that the model has noted, and how far each is."""

from ybs.session.reply import Reply
from ybs.session.session import Session

NONE = "The model has noted no steps in this conversation. For long work it keeps a list by itself, and does so when asked."


async def show_steps(session: Session, _argument: str) -> Reply:
    """Show the list as the model keeps it."""
    return Reply(text=session.context.steps or NONE)
