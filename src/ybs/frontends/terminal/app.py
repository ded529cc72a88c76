"""The terminal frontend: opens a session, or helps to set one up, and lets the person talk until they leave."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from errno import EIO
from typing import TYPE_CHECKING, TypeAlias

from ybs.commands.figures import amount, cost
from ybs.core.messages import Usage
from ybs.core.wording import plural
from ybs.frontends.terminal.mishaps import put_mishap
from ybs.frontends.terminal.questions.late import say
from ybs.frontends.tty import is_dumb
from ybs.security.unicode import printable
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.frontends.terminal.session import TerminalSession
    from ybs.session.options import Options
    from ybs.session.session import Session

    Opener: TypeAlias = Callable[[Options], Session]


#: Exit code when the terminal has gone away.
HANGUP = 129
INTERRUPTED = 130


def chat(
    options: "Options",
    *,
    prompt: str = "",
    command: str = "",
    is_verbose: bool = False,
    opener: "Opener | None" = None,
) -> int:
    """Open a session, talk, and return the exit code. `opener` opens another session in tests.

    `prompt` goes to the model, whatever it begins with; without one `command` is taken, as if it were typed.
    """
    session = (opener or open_or_set_up)(options)
    session.view.is_verbose = is_verbose
    try:
        return asyncio.run(talk(session, prompt, command, leaving=lambda: farewell(session)))
    except EOFError:  # the terminal was closed under us
        return HANGUP
    except OSError as error:
        if error.errno != EIO:
            raise
        return HANGUP


def open_or_set_up(options: "Options") -> "Session":
    """Open a session; where nothing is configured the person chooses first, and decides about trust then."""
    from msgspec.structs import replace

    from ybs.agent.model_choice import NothingConfigured, is_chosen, lacks_model
    from ybs.commands.open import open_session
    from ybs.session.settings import load_settings

    loaded = load_settings(options)
    options = replace(options, loaded=loaded)
    if not lacks_model(options.host, loaded.config):
        with suppress(NothingConfigured):  # a router may have too few models
            session = open_session(with_trust(options))
            if not is_chosen(loaded.config) and loaded.config.safety.mode == "ask":
                say_mode()
            return session
    chosen = with_choice(options)
    if chosen is None:
        raise NothingConfigured
    return open_session(with_trust(chosen))


def with_choice(options: "Options") -> "Options | None":
    """Let the person choose a model; None where they do not. In incognito the choice is for this run only."""
    from msgspec.structs import replace

    from ybs.core.errors import ConfigError
    from ybs.frontends.terminal.start.setup import choose, keep, words_of
    from ybs.session.settings import load_settings

    incognito = load_settings(options).config.incognito
    settings = choose(options.host, is_incognito=incognito.enabled, only_here=incognito.only_here)
    if settings is None:
        return None
    if incognito.enabled:
        say(f"{words_of(settings)}, for this run only; nothing was saved.\n")
    else:
        try:
            keep(options.host, settings)
        except ConfigError as error:  # ybs works with a home that cannot be written, too
            say(f"{error}\nThe choice is used for this run only.\n")
        else:
            settings = {"llm.model": None}  # a --model before it was meant for no provider
    say_mode()
    return replace(options, overrides={**options.overrides, **settings}, loaded=None)


def say_mode() -> None:
    """Say what the mode `ask` does, to a person who has chosen nothing yet."""
    from ybs.frontends.terminal.start.setup import KEY, MODE_ASK

    say(f"{MODE_ASK}\nTo be asked before each edit, too, set {KEY} to true.\n")


def with_trust(options: "Options") -> "Options":
    """Let the person decide what the project's own files may do, where they want more than any project may."""
    from msgspec.structs import replace

    from ybs.session.settings import load_settings

    loaded = load_settings(options)
    review = loaded.review
    is_asked = review is not None and not loaded.config.incognito.enabled  # a yes is written down
    if review is not None and is_asked and review.needs_question:
        from ybs.frontends.terminal.questions.late import ask_trust  # few projects want anything
        from ybs.trust.decision import is_refused

        if not is_refused(options.host, review) and ask_trust(options.host, review):
            # It is read again: what changed in the meantime is not trusted.
            return replace(options, loaded=None)
    return replace(options, loaded=loaded)


async def talk(
    session: "TerminalSession", prompt: str, command: str, *, leaving: "Callable[[], list[str]]"
) -> int:
    """Let the person talk until they leave, and return the exit code; `leaving` gives what is said then."""
    asyncio.get_running_loop().set_exception_handler(
        put_mishap
    )  # its own would print past the gate
    async with session:
        if session.config.ui.plain or is_dumb():
            from ybs.frontends.terminal.plain.plain import (
                PlainTerminal,  # few want it, or have no other terminal
            )

            code = await PlainTerminal(session).run(prompt, command)
        else:
            from ybs.frontends.terminal.output import window_title
            from ybs.frontends.terminal.prompt.history import open_history
            from ybs.frontends.terminal.terminal import Terminal

            with window_title(session):
                code = await Terminal(session, history=open_history(session)).run(prompt, command)
        lines = leaving() if code in (0, INTERRUPTED) else []
    if lines:
        say("\n".join(lines))
    return code


def farewell(session: Session) -> list[str]:
    """Return the lines; none where nothing was said."""
    jobs = session.status().jobs
    stopped = [f"{plural(jobs, 'background job')} stopped."] if jobs else []
    if not session.turns:
        return stopped
    usage = sum((turn.usage for turn in session.turns), Usage())
    tokens = f"{amount(usage.input_tokens + usage.output_tokens)} tokens"
    spent = ", ".join(filter(None, (tokens, cost(usage))))
    about = f"{plural(len(session.turns), 'turn')}, {spent}"
    name, path = session.journal.name, session.journal.path
    if not path:
        return [*stopped, f"This session was not saved ({about})."]
    title = f" \u201c{printable(title)}\u201d" if (title := session.journal.replay.title) else ""
    return [*stopped, f"Session {name}{title}: {about}.", f"Continue it with: ybs --resume {name}"]
