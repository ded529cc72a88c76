"""Keys that terminals do not tell apart by themselves, such as Shift-Enter: asked for, and read.

https://sw.kovidgoyal.net/kitty/keyboard-protocol/ and https://invisible-island.net/xterm/modified-keys.html
"""

import os
import re
import sys
from asyncio import TimerHandle, get_running_loop
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from fcntl import ioctl
from functools import partial
from termios import FIONREAD
from typing import TypeAlias, cast

from prompt_toolkit.input import Input
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import Output

#: A key, a character, or Escape and one of them for Alt.
Pressed: TypeAlias = Keys | str | tuple[Keys | str, ...]
#: Kitty's first and third flag: tell keys apart, and say what a key is on a Latin keyboard; xterm's first level.
#: A terminal that misreads one takes it for a colour or a jump of the cursor, so both are saved and restored.
ASK = "\x1b7\x1b[>4;1m\x1b[>5u\x1b8"
TAKE_BACK = "\x1b7\x1b[<u\x1b[>4m\x1b8"
#: Terminals that know one of the two, or read the question without a sign of it.
_KNOWN = (
    *("xterm", "tmux", "kitty", "foot", "alacritty", "ghostty", "wezterm", "rio", "contour"),
    *("konsole", "mintty", "iterm", "vte", "gnome"),
)
_SEQUENCE = re.compile(r"\x1b\[(?:27;(\d{1,4});(\d{1,7})~|(\d{1,7})(?:;(\d{1,4}))?u)\Z")
#: A key with its other faces: `CSI key:shifted:latin;modifiers u`.
_FACES = re.compile(r"\x1b\[(\d{1,7})(?::\d*)?(?::(\d{1,7}))?;(\d{1,4})(?::(\d+))?u")
#: A whole sequence: a key, or what a terminal says by itself or when it is asked: modes, colours, focus, its name.
_WHOLE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|(?:\]\d|P[\d>!+$]|_G)[^\x07\x1b]*(?:\x07|\x1b\\))")
#: The beginning of one, at the end of what was read.
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]P_]|(?:\]\d|P[\d>!+$]|_G)[^\x07\x1b]*\x1b?)?\Z")
#: Keys, answers and clicks that have numbers in them: prompt_toolkit reads them. `ESC [[` begins a key of Linux.
_READ = re.compile(r"\x1b\[(?:\d+;\d+R|<?[\d;]*[mM]|\[)\Z")
_SHIFT, _ALT, _CTRL, _META = 1, 2, 4, 32
_FOREIGN = 8 | 16  # the keys of the desktop
_ENTERS, _TAB, _ESCAPE, _BACKSPACES = (13, 57414), 9, 27, (8, 127)
_PASTE_BEGIN, _PASTE_END = "\x1b[200~", "\x1b[201~"
#: What comes so soon behind the end of a paste belongs to it: it may hold ends of its own, and come in pieces. Enter alone is a key, as
#: programs send it behind a paste, and so is Ctrl-C.
_SETTLES_SECONDS = 0.1
_ALONE = ("\r", "\x03")
#: Who looks so much later than that had work to do, while more may have come: then the time begins anew.
_LATE_SECONDS = 0.03
_PRIVATE = range(0xE000, 0xF900)
_C1, _SURROGATES = range(0x80, 0xA0), range(0xD800, 0xE000)
#: Keys of the number block that have no text.
_BLOCK: dict[int, Keys] = {
    57417: Keys.Left,
    57418: Keys.Right,
    57419: Keys.Up,
    57420: Keys.Down,
    57421: Keys.PageUp,
    57422: Keys.PageDown,
    57423: Keys.Home,
    57424: Keys.End,
    57425: Keys.Insert,
    57426: Keys.Delete,
}
_BLOCK_TEXT = {57399 + place: text for place, text in enumerate("0123456789./*-+")}
_BLOCK_TEXT[57415] = "="
#: What Ctrl makes of a character that is not a letter, as terminals have always done.
_CONTROLS = {
    **dict.fromkeys(" 2@", "\x00"),
    **dict.fromkeys("3[", "\x1b"),
    **dict.fromkeys("4\\", "\x1c"),
    **dict.fromkeys("5]", "\x1d"),
    **dict.fromkeys("6^~", "\x1e"),
    **dict.fromkeys("7/_-", "\x1f"),
    **dict.fromkeys("8?", "\x7f"),
}


class ExtendedKeys:
    """Asks the terminal to tell keys apart, as a context manager; `away` takes that back for a while."""

    def __init__(self, output: Output, environ: Mapping[str, str] = os.environ) -> None:
        self._output = output
        self._is_known = knows_extended_keys(environ)

    def __enter__(self) -> None:
        self._write(ASK)

    def __exit__(self, *_error: object) -> None:
        self._write(TAKE_BACK)

    @contextmanager
    def away(self) -> Generator[None]:
        """Leave the keys as other programs expect them."""
        self._write(TAKE_BACK)
        try:
            yield
        finally:
            self._write(ASK)

    def _write(self, sequence: str) -> None:
        if self._is_known:
            self._output.write_raw(sequence)
            self._output.flush()


def knows_extended_keys(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal may be asked."""
    if environ.get("TERM_PROGRAM") == "Apple_Terminal":
        return False
    return environ.get("TERM", "").startswith(_KNOWN) or bool(environ.get("TMUX"))


def read_extended(put_in: Input) -> None:
    """Have an input understand what is sent for such keys, and take long pastes in time."""
    if isinstance(put_in, Vt100Input):
        put_in.vt100_parser = KeyParser(
            put_in.vt100_parser.feed_key_callback,
            partial(pending_bytes, put_in),
            settles_seconds=_SETTLES_SECONDS if os.isatty(put_in.fileno()) else 0.0,
        )


def read_typed_ahead(put_in: Input, *, may_send: bool = True) -> None:
    """Take a new line in the pending input for Enter: the terminal made it of one, as it read whole lines then (ICRNL).

    Without `may_send` it stays a new line.
    """
    if isinstance(put_in, Vt100Input) and isinstance(put_in.vt100_parser, KeyParser):
        put_in.vt100_parser.typed_ahead = pending_bytes(put_in) if may_send else 0


def pending_bytes(put_in: Input) -> int:
    """Return how many bytes of the terminal's input have not been read yet; 0 where it is no terminal."""
    number = put_in.fileno()
    if not os.isatty(number):
        return 0
    return int.from_bytes(ioctl(number, FIONREAD, bytes(4)), sys.byteorder)


class KeyParser(Vt100Parser):
    """Reads keys as prompt_toolkit does, and those in the two extended forms."""

    #: How many of the next bytes were typed while the terminal made a new line of Enter.
    typed_ahead = 0

    def __init__(
        self,
        feed_key_callback: Callable[[KeyPress], None],
        pending: Callable[[], int] = int,
        settles_seconds: float = 0.0,
    ) -> None:
        self._pending = pending  # how much has come and was not read yet
        self._settles_seconds = settles_seconds  # how soon behind a paste belongs to it
        self._settling: TimerHandle | None = None
        super().__init__(feed_key_callback)

    def reset(self, request: bool = False) -> None:
        """Begin anew."""
        self._begun = ""
        self._settle()
        self._forget_paste()
        super().reset(request)

    def _forget_paste(self) -> None:
        self._pieces: list[str] = []
        self._tail, self._is_ending = "", False

    def feed(self, data: str) -> None:
        """Take a piece of input."""
        if self.typed_ahead:
            data = self._with_enters(data)
        if not self._in_bracketed_paste:
            if self._settling is not None and data not in _ALONE:
                data = self._without_rest(data)
            keys, begin, paste = (self._begun + data).partition(_PASTE_BEGIN)
            self._begun = ""
            if not begin and (found := _BEGUN.search(keys)):
                keys, self._begun = keys[: found.start()], found[0]
            if "\x1b" in keys:
                keys = _WHOLE.sub(_key_or_nothing, _FACES.sub(_latin, keys))
            super().feed(keys + begin)
            if not paste:
                return
            data = paste
        # The pieces are joined once, at the end: a paste of megabytes comes in thousands of them.
        self._pieces.append(data)
        self._is_ending |= _PASTE_END in self._tail + data
        self._tail = (self._tail + data)[1 - len(_PASTE_END) :]
        if not self._is_ending or self._pending():
            return
        # The last end is the terminal's: what is pasted may hold some, and what follows them was not typed.
        text, end, rest = "".join(self._pieces).rpartition(_PASTE_END)
        self._forget_paste()
        super().feed(text.replace(_PASTE_END, "") + end)
        self._begin_settling()
        self.feed(rest)

    def _begin_settling(self) -> None:
        """Take what comes from now on for a part of the paste, until nothing has come for a while."""
        if self._settles_seconds:
            self._settle()
            loop = get_running_loop()
            due = loop.time() + self._settles_seconds
            self._settling = loop.call_at(due, self._settle_if_idle, due)

    def _settle_if_idle(self, due: float) -> None:
        is_late = get_running_loop().time() > due + _LATE_SECONDS
        self._settle()
        if is_late:
            self._begin_settling()

    def _settle(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
        self._settling = None

    def _without_rest(self, data: str) -> str:
        """Take what belongs to the paste before; return what does not: what the terminal says, the next paste, and a sequence that has begun."""
        rest, begin, paste = (self._begun + data).partition(_PASTE_BEGIN)
        self._begun = ""
        begun = None if begin else _BEGUN.search(rest)
        rest, left = (rest[: begun.start()], begun[0]) if begun else (rest, "")
        said = "".join(found[0] for found in _WHOLE.finditer(rest) if _READ.match(found[0]))
        if text := _WHOLE.sub("", rest):
            super().feed(_PASTE_BEGIN + text + _PASTE_END)
            self._begin_settling()
        return said + begin + paste + left

    def _with_enters(self, data: str) -> str:
        """Put Enter in place of the new lines that were made of it."""
        said = data.encode(errors="surrogateescape")  # as it was decoded
        ahead, rest = said[: self.typed_ahead], said[self.typed_ahead :]
        self.typed_ahead -= len(ahead)
        return (ahead.replace(b"\n", b"\r") + rest).decode(errors="surrogateescape")

    def flush(self) -> None:
        """Treat the input so far as complete: Esc alone, or Alt with a character; more than that is not a key."""
        begun, self._begun = self._begun, ""
        if len(begun) <= 2:
            super().feed(begun)
        super().flush()

    def _get_match(self, prefix: str) -> Keys | tuple[Keys, ...] | None:
        if prefix == "\x1b\r":  # Alt-Enter of old: Esc and Enter do not come in one piece
            return Keys.ControlJ
        if prefix.startswith("\x1b[") and (found := _SEQUENCE.match(prefix)):
            code, modifiers = found[2] or found[3], found[1] or found[4] or "1"
            # The parser hands characters on as keys too; only its types do not say so.
            return cast("Keys", key_of(int(code), int(modifiers)))
        return super()._get_match(prefix)

    def _call_handler(self, key: str | Keys | tuple[Keys, ...], insert_text: str) -> None:
        if isinstance(key, str) and not isinstance(key, Keys):
            insert_text = key  # a character, whatever sequence it came in
        super()._call_handler(key, insert_text)


def key_of(code: int, modifiers: int) -> Pressed:
    """Return prompt_toolkit's name of a key; Ignore if it has none."""
    bits = modifiers - 1
    is_shifted, is_ctrl, is_alt = bool(bits & _SHIFT), bits & _CTRL, bits & (_ALT | _META)
    if bits & _FOREIGN:
        return Keys.Ignore
    if code in _ENTERS:
        return Keys.ControlJ if is_shifted or is_ctrl or is_alt else Keys.ControlM
    if code == _TAB:
        return Keys.BackTab if is_shifted else Keys.ControlI
    if code in _BACKSPACES:
        return (Keys.Escape, Keys.ControlH) if is_ctrl or is_alt else Keys.ControlH
    if code > sys.maxunicode:
        return Keys.Ignore
    key = _control(chr(code)) if is_ctrl else _plain(code, is_shifted=is_shifted)
    return (Keys.Escape, key) if is_alt and key is not Keys.Ignore else key


def _plain(code: int, *, is_shifted: bool) -> Keys | str:
    if code == _ESCAPE:
        return Keys.Escape
    if code in _PRIVATE:
        return _BLOCK.get(code) or _BLOCK_TEXT.get(code, Keys.Ignore)
    if code < ord(" ") or code in _C1 or code in _SURROGATES:
        return Keys.Ignore
    capital = chr(code).upper() if is_shifted else ""
    return capital if len(capital) == 1 else chr(code)  # that of sharp s is two


def _control(character: str) -> Keys:
    is_letter = character.isascii() and character.isalpha()
    control = chr(ord(character) & 0x1F) if is_letter else _CONTROLS.get(character, "")
    key = ANSI_SEQUENCES.get(control, Keys.Ignore)
    return key if isinstance(key, Keys) else Keys.Ignore


def _key_or_nothing(found: re.Match[str]) -> str:
    """Leave of the sequences those that are keys."""
    sequence = found[0]
    is_key = sequence in ANSI_SEQUENCES or _SEQUENCE.match(sequence) or _READ.match(sequence)
    return sequence if is_key else ""


def _latin(found: re.Match[str]) -> str:
    """Leave of a key's faces the one that Ctrl and Alt mean: on a Cyrillic keyboard Ctrl-C is the key of C."""
    key, latin, modifiers, event = found.groups()
    if event == "3":  # it was let go
        return ""
    is_command = int(modifiers) - 1 & (_ALT | _CTRL)
    return f"\x1b[{latin if latin and is_command else key};{modifiers}u"
