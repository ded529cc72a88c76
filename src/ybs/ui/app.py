"""The terminal door: opens a session, or helps to set one up, and lets the person talk until they leave."""

import asyncio
from collections.abc import Callable
from errno import EIO
from typing import TYPE_CHECKING, TypeAlias

from ybs.ui.signs import is_dumb

if TYPE_CHECKING:
    from ybs.session.session import Session
    from ybs.session.wiring import Options

    Opener: TypeAlias = Callable[[Options], Session]

#: Exit code when the terminal has gone away.
HANGUP = 129


def chat(options: "Options", *, prompt: str = "", opener: "Opener | None" = None) -> int:
    """Open a session, talk, and return the exit code. `opener` opens another session in tests."""
    session = (opener or open_or_set_up)(options)
    try:
        return asyncio.run(_talk(session, prompt))
    except EOFError:  # the terminal was closed under us
        return HANGUP
    except OSError as error:
        if error.errno != EIO:
            raise
        return HANGUP


def open_or_set_up(options: "Options") -> "Session":
    """Open a session; where nothing is configured the person chooses first."""
    from ybs.session.wiring import NothingConfigured, open_session

    try:
        return open_session(options)
    except NothingConfigured:
        from ybs.ui.setup import set_up  # the first run only

        if not set_up():
            raise
        return open_session(options)


async def _talk(session: "Session", prompt: str) -> int:
    async with session:
        if is_dumb():
            from ybs.ui.plain import PlainTerminal  # only where the cursor cannot move

            return await PlainTerminal(session).run(prompt)
        from ybs.ui.terminal import Terminal

        return await Terminal(session).run(prompt)
