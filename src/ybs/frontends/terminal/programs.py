"""Subcommands of ybs that run on the terminal of a chat, as programs of their own."""

import sys
from pathlib import Path

from ybs.config.host import Host
from ybs.session.status import Status


def command_of(name: str) -> list[str]:
    """Return the command that runs a subcommand with the Python and the ybs of this process."""
    return [sys.executable, "-m", "ybs", name]


def chosen_line(host: Host, state: Status) -> str:
    """Return the line that takes the model of the settings as they are now; nothing where it is in use."""
    from ybs.trust.settings import load

    llm = load(host, folder=Path(state.folder)).config.llm
    if not llm.provider or (llm.provider, llm.model) == (state.provider, state.model):
        return ""
    return f"/provider {llm.provider} {llm.model or ''}".rstrip()
