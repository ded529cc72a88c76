"""A slash command: data and a function. Packages beside ybs bring others (the entry points `ybs.commands`)."""

from collections.abc import Awaitable, Callable, Sequence
from enum import IntEnum
from typing import TypeAlias

from msgspec import Struct

from ybs.session.reply import Reply
from ybs.session.session import Session

#: Takes the session and what stands behind the name.
Run: TypeAlias = Callable[[Session, str], Awaitable[Reply]]
#: Takes the session and returns what the argument of a command may be.
Choices: TypeAlias = Callable[[Session], Sequence[str]]


class Owner(IntEnum):
    """Whose a command is. Of two with one name the first one's is used."""

    PERSON = 0
    PROJECT = 1
    PLUGIN = 2


class SlashCommand(Struct, frozen=True):
    """One command: its names (the first is shown), its arguments, what it does, and how.

    `waits`: it waits for the end of a running turn, but for one that `shows_bare` and has no argument. `choices`
    lists what its argument may be. `activity` is said while it works, where that may take long. `owner` is whose it is.
    """

    names: tuple[str, ...]
    arguments: str
    summary: str
    run: Run
    waits: bool = False
    shows_bare: bool = False
    choices: Choices | None = None
    activity: str = ""
    owner: Owner = Owner.PERSON


def as_meant(line: str) -> str:
    """Return a typed line, or the command to leave for the words that other programs leave at."""
    return "/quit" if line.strip().lower() in ("exit", "quit", ":q") else line
