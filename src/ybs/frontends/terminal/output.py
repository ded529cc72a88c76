"""What acts on the terminal: its output, which the drawn cells pass on their way, notifications, and the window's title."""

import asyncio
import os
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from errno import EIO
from pathlib import Path
from typing import Literal, TypeAlias

from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth

from ybs.core.envelope import Envelope
from ybs.core.events import (
    ConfirmationAnswered,
    ConfirmationAsked,
    SessionEnded,
    Titled,
    TurnFinished,
    UserSaid,
)
from ybs.frontends.layout import clipped
from ybs.frontends.terminal.session import TerminalSession
from ybs.frontends.terminal.signs import fit_encoding
from ybs.security.unicode import has_suspects, printable, replace_hidden

#: The few sequences that act on a terminal on purpose: the bell, a notification in words of our own, a clipboard's new
#: content in base64, and the window's title. All but the title may stand in the envelope in which tmux or screen passes them on.
_BARE = (
    r"\x1b]9;[a-z ]{1,40}|\x1b]777;notify;ybs;[a-z ]{1,40}|\x1b]52;c;[A-Za-z0-9+/]{0,100000}={0,2}"
)
_ACTING = re.compile(rf"\x07|(?:{_BARE})\x07")
#: The title ends in ST and not in the bell, which who does not know it would ring.
_TITLE = re.compile(r"\x1b\[2[23];2t|\x1b\]2;[^\x00-\x1f\x7f-\x9f]{1,100}\x1b\\")
_TMUX = re.compile(r"\x1bPtmux;((?:[^\x1b]|\x1b\x1b)*)\x1b\\")
_SCREEN = re.compile(r"\x1bP([^\x1b]*|\x1b[^\x1b]*)\x1b\\")


class GatedOutput(Vt100_Output):
    """Writes a sign of the same width in place of characters that nobody sees."""

    def write(self, data: str) -> None:
        """Write text; control characters have been made visible before, or are by prompt_toolkit."""
        if not data.isascii() and has_suspects(data):
            data = replace_hidden(data, lambda run: "?" * get_cwidth(run))
        super().write(data)

    def erase_down(self) -> None:
        """Erase from the beginning of a line on. Who erases all in one from the first line has tmux keep it above."""
        self.write_raw("\x1b[K\x1b7\x1b[B\x1b[J\x1b8")

    def flush(self) -> None:
        """Hand over what was written; a terminal that is gone gets no more, and its end is told by its signal."""
        try:
            super().flush()
        except OSError as error:
            if error.errno != EIO:
                raise


def act(output: Output, sequence: str) -> None:
    """Write a sequence that acts on the terminal. Raises ValueError for one that is not known here."""
    if not is_known(sequence):
        raise ValueError("not a sequence that ybs writes")
    output.write_raw(sequence)
    output.flush()


def scroll_away(output: Output) -> None:
    """Move all that is on the screen up and out of it, to where it can be scrolled back to."""
    output.write_raw("\n" * output.get_size().rows)


def begin_line(output: Output) -> None:
    """Erase the cursor's line, where the terminal may have echoed what was typed ahead, and begin there."""
    output.write_raw("\r\x1b[K")


def is_known(sequence: str) -> bool:
    """Return whether the sequence is the bell, a notification or a clipboard's content, in an envelope or bare, or a title."""
    if _TITLE.fullmatch(sequence):
        return True
    if whole := _TMUX.fullmatch(sequence):
        return bool(_ACTING.fullmatch(whole[1].replace("\x1b\x1b", "\x1b")))
    pieces = _SCREEN.findall(sequence)
    if pieces and _SCREEN.sub("", sequence) == "":
        return bool(_ACTING.fullmatch("".join(pieces)))
    return bool(_ACTING.fullmatch(sequence))


How: TypeAlias = Literal["off", "bell", "desktop"]
#: A turn that took less than this has been watched.
LONG_SECONDS = 20.0
BELL = "\a"
WAITS, DONE = "ybs waits for you", "ybs is done"
#: Terminals that know OSC 777 (rxvt's) and not OSC 9 (iTerm2's); most of the others know OSC 9.
_OSC_777 = ("rxvt", "foot")


def call(how: How, words: str, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return what the terminal is sent to call the person; tmux and screen pass on little but the bell."""
    if how == "off":
        return ()
    if how == "bell":
        return (BELL,)
    bell = (BELL,) if environ.get("TMUX") or environ.get("STY") else ()
    is_777 = "VTE_VERSION" in environ or environ.get("TERM", "").startswith(_OSC_777)
    kind = "777;notify;ybs;" if is_777 else "9;"
    return (passed_on(f"\x1b]{kind}{words}\x07", environ), *bell)


def passed_on(sequence: str, environ: Mapping[str, str] = os.environ) -> str:
    """Put a sequence into the envelope in which tmux or screen passes it on to its own terminal."""
    if environ.get("TMUX"):
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    if environ.get("STY"):  # screen takes no more than 768 bytes at once
        pieces = (sequence[start : start + 700] for start in range(0, len(sequence), 700))
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return sequence


#: Keep the title that the window has, and bring it back: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html
KEEP, RESTORE = "\x1b[22;2t", "\x1b[23;2t"
_AT_WORK, _ASKS = "* ", "? "
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
        mark = _ASKS if self._asked else _AT_WORK if self._is_working else ""
        state = self._session.status()
        name = clipped(printable("" if state.incognito else state.title), _MOST_NAME) or "ybs"
        folder = clipped(printable(Path(state.folder).name), _MOST_FOLDER)
        text = fit_encoding(f"{mark}{name} - {folder}", self._output.encoding())
        if text != self._shown:
            self._shown = text
            act(self._output, f"\x1b]2;{text}\x1b\\")
