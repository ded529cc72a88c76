"""The terminal door: opens a session, or helps to set one up, and lets the person talk until they leave."""

import asyncio
from collections.abc import Callable
from errno import EIO
from typing import TYPE_CHECKING, TypeAlias

from ybs.ui.signs import is_dumb

if TYPE_CHECKING:
    from ybs.session.options import Options
    from ybs.session.session import Session

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
    from ybs.session.options import load_settings
    from ybs.session.wiring import NothingConfigured, open_session

    try:
        return open_session(with_trust(options))
    except NothingConfigured:
        if load_settings(options).config.incognito.enabled:  # the choice would be written down
            raise
        from ybs.ui.setup import set_up  # the first run only

        if not set_up():
            raise
        return open_session(options)


def with_trust(options: "Options") -> "Options":
    """Let the person decide what the project's own files may do, where they want more than any project may."""
    from msgspec.structs import replace

    from ybs.session.options import load_settings

    loaded = load_settings(options)
    review = loaded.review
    is_asked = review is not None and not loaded.config.incognito.enabled  # a yes is written down
    if review is not None and is_asked and review.needs_question:
        from ybs.ui.trust import ask_trust  # few projects want anything

        if ask_trust(review):
            return options  # read again: what changed in the meantime is not trusted
    return replace(options, loaded=loaded)


async def _talk(session: "Session", prompt: str) -> int:
    async with session:
        if is_dumb():
            from ybs.ui.plain import PlainTerminal  # only where the cursor cannot move

            return await PlainTerminal(session).run(prompt)
        from ybs.ui.terminal import Terminal

        return await Terminal(session).run(prompt)
