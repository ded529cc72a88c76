"""The title of the terminal's window: what the session is about, whether ybs works or waits, and in which folder."""

import asyncio
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from prompt_toolkit.output import Output

from ybs.core.envelope import Envelope
from ybs.core.events import (
    ConfirmationAnswered,
    ConfirmationAsked,
    SessionEnded,
    Titled,
    TurnFinished,
    UserSaid,
)
from ybs.core.wording import first_words
from ybs.frontends.terminal.output import GatedOutput, act
from ybs.frontends.terminal.session import TerminalSession
from ybs.frontends.terminal.signs import fit_encoding
from ybs.security.unicode import printable

#: Keep the title that the window has, and bring it back: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html
KEEP, RESTORE = "\x1b[22;2t", "\x1b[23;2t"
WORKS, WAITS = "* ", "? "
_MOST_NAME, _MOST_FOLDER = 50, 30
#: Terminals without a window, some of which would print the title.
_WITHOUT = ("linux", "dumb", "cons", "vt")


@contextmanager
def window_title(
    session: TerminalSession, output: Output | None = None, environ: Mapping[str, str] = os.environ
) -> Generator[None]:
    """Show the session in the window's title as long as it lasts; the title that was there comes back."""
    if not session.config.ui.terminal_title or environ.get("TERM", "dumb").startswith(_WITHOUT):
        yield
        return
    title = WindowTitle(session, output or GatedOutput.from_pty(sys.stdout, term=environ["TERM"]))
    end = session.subscribe(title)
    try:
        yield
    finally:
        end()
        title.end()


class WindowTitle:
    """Takes events and changes the title with them."""

    def __init__(self, session: TerminalSession, output: Output) -> None:
        self._session, self._output = session, output
        self._asked: set[str] = set()
        self._is_working = False
        self._shown = ""
        act(output, KEEP)
        self._show()

    def __call__(self, envelope: Envelope) -> None:
        """Take an event."""
        match envelope.event:
            case ConfirmationAsked(id=name):
                self._asked.add(name)
            case ConfirmationAnswered(id=name):
                self._asked.discard(name)
            case UserSaid() if envelope.is_main:
                self._is_working = self._session.is_busy
            case TurnFinished() if envelope.is_main:
                self._is_working = False
                self._asked.clear()
            case SessionEnded():  # in a moment there may be another one
                asyncio.get_running_loop().call_soon(self._show)
                return
            case Titled():
                pass
            case _:
                return
        self._show()

    def end(self) -> None:
        """Bring back the title that the window had."""
        act(self._output, RESTORE)

    def _show(self) -> None:
        mark = WAITS if self._asked else WORKS if self._is_working else ""
        state = self._session.status()
        name = first_words(printable("" if state.incognito else state.title), _MOST_NAME) or "ybs"
        folder = first_words(printable(Path(state.folder).name), _MOST_FOLDER)
        text = fit_encoding(f"{mark}{name} - {folder}", self._output.encoding())
        if text != self._shown:
            self._shown = text
            act(self._output, f"\x1b]2;{text}\x1b\\")
