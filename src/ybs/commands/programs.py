"""Commands that are programs of their own, which a frontend runs on its terminal: /doctor and /setup."""

from ybs.session.reply import Reply, TerminalActions
from ybs.session.session import Session


async def check_machine(_session: Session, _argument: str) -> Reply:
    """Check this machine, and say how to fix what does not work."""
    return Reply(terminal=TerminalActions(program="doctor"))


async def set_up(_session: Session, _argument: str) -> Reply:
    """Choose the provider and the model, and save a key."""
    return Reply(terminal=TerminalActions(program="setup"))
