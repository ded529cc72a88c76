"""The terminal's output: the cells that are drawn pass the gate too, such as what was pasted into the prompt."""

import re
from errno import EIO

from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth

from ybs.security.unicode import has_suspects, replace_hidden

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
