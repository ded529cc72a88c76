"""Commands that are programs of their own, which a frontend runs on its terminal: /doctor and /setup."""

from ybs.session.reply import Reply
from ybs.session.session import Session

IN_A_SHELL = "Run `ybs {}` in your shell: here it cannot ask you anything."


async def check_machine(_session: Session, _argument: str) -> Reply:
    """Check this machine, and say how to fix what does not work."""
    return Reply(text=IN_A_SHELL.format("doctor"), program="doctor")


async def set_up(_session: Session, _argument: str) -> Reply:
    """Choose the provider and the model, and save a key."""
    return Reply(text=IN_A_SHELL.format("setup"), program="setup")
