"""The real command on a real pseudo-terminal, seen through a terminal emulator."""

import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import pexpect
import pyte

YBS = str(Path(sys.executable).with_name("ybs"))


class Screen:
    """Starts `ybs` on a pseudo-terminal; use it with `with`."""

    def __init__(
        self,
        *words: str,
        columns: int = 80,
        rows: int = 24,
        environ: Mapping[str, str] | None = None,
        command: Sequence[str] = (YBS,),
    ) -> None:
        environment = {**os.environ, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
        environment.pop("NO_COLOR", None)
        self.columns = columns
        with warnings.catch_warnings():
            # A fork beside the thread of a server is well where the new program comes at once.
            warnings.filterwarnings("ignore", ".*multi-threaded", DeprecationWarning)
            self.child = pexpect.spawn(
                command[0],
                [*command[1:], *words],
                dimensions=(rows, columns),
                env={**environment, **(environ or {})},
                encoding="utf-8",
                timeout=8,
            )
        self.child.delaybeforesend = None
        self._screen = pyte.HistoryScreen(columns, rows, history=1000)
        self._stream = pyte.Stream(self._screen)
        self.raw: str = ""

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_error: object) -> None:
        self.child.close(force=True)

    @property
    def text(self) -> str:
        """What is seen, with what scrolled away above it."""
        above = [
            "".join(line[column].data for column in range(self.columns)).rstrip()
            for line in self._screen.history.top
        ]
        return "\n".join([*above, *(line.rstrip() for line in self._screen.display)]).rstrip()

    @property
    def picture(self) -> str:
        """What the window shows, and where its cursor stands."""
        cursor = self._screen.cursor
        place = "hidden" if cursor.hidden else f"row {cursor.y + 1}, column {cursor.x + 1}"
        lines = [line.rstrip() for line in self._screen.display]
        return "\n".join(lines).rstrip() + f"\n[{self.columns} columns, cursor: {place}]\n"

    def keys(self, text: str) -> None:
        """Type."""
        self.child.send(text)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self.child.setwinsize(rows, columns)
        self._screen.resize(rows, columns)
        self.columns = columns

    def sees(self, pattern: str, seconds: float = 20) -> str:
        """Wait until the regular expression is found on the screen, and return the screen."""
        ends_at = time.monotonic() + seconds
        while not re.search(pattern, text := self.text):
            if time.monotonic() > ends_at:
                raise AssertionError(f"{pattern!r} never came to be seen:\n{text}")
            while not self._read(0.05) and time.monotonic() <= ends_at:
                pass
        return text

    def ends(self) -> int:
        """Wait until the command has ended and return its exit code."""
        while self.child.isalive():
            self._read(0.05)
        self._read(0)
        code = self.child.exitstatus
        return code if code is not None else -(self.child.signalstatus or 0)

    def keys_until_it_ends(self, keys: str, seconds: float = 20) -> None:
        """Press keys, and again after a while where they came too soon, as a person would."""
        ends_at = time.monotonic() + seconds
        while self.child.isalive() and time.monotonic() < ends_at:
            self.stays(0.5)
            with suppress(OSError):  # it has ended just now
                self.keys(keys)
            self.stays(0.5)

    def stays(self, seconds: float = 0.4) -> str:
        """Go on reading for a moment and return the screen."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            self._read(0.02)
        return self.text

    def looks(self, is_so: Callable[[str], bool], seconds: float) -> bool:
        """Wait until the picture is as it should be; return whether it came to be."""
        ends_at = time.monotonic() + seconds
        while not is_so(self.picture):
            if time.monotonic() > ends_at:
                return False
            self._read(0.05)
        return True

    def _read(self, seconds: float) -> bool:
        """Wait for output and tell whether there was any."""
        try:
            piece = self.child.read_nonblocking(65_536, seconds)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return False
        self.raw += piece
        self._stream.feed(piece)
        return True


class Tmux:
    """Starts a command in a tmux of its own: a real terminal, which folds lines anew when its size changes."""

    _numbers = count()

    def __init__(self, *command: str, columns: int, rows: int) -> None:
        name = f"ybs-test-{os.getpid()}-{next(self._numbers)}"
        self._tmux = ("tmux", "-L", name, "-f", "/dev/null")
        size = ("-x", str(columns), "-y", str(rows))
        self._do("set", "-g", "history-limit", "50000", ";", "new", "-d", *size, *command)

    def __enter__(self) -> "Tmux":
        return self

    def __exit__(self, *_error: object) -> None:
        self._do("kill-server")

    @property
    def text(self) -> str:
        """What is seen, with what scrolled away above it; folded lines are whole again."""
        return self._do("capture-pane", "-p", "-J", "-S", "-")

    def keys(self, text: str) -> None:
        """Type."""
        self._do("send-keys", "-l", text)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self._do("resize-window", "-x", str(columns), "-y", str(rows))

    def sees(self, pattern: str, seconds: float = 20) -> str:
        """Wait until the regular expression is found, and return the text."""
        ends_at = time.monotonic() + seconds
        while not re.search(pattern, text := self.text):
            if time.monotonic() > ends_at:
                raise AssertionError(f"{pattern!r} never came to be seen:\n{text}")
            time.sleep(0.02)
        return text

    def _do(self, *words: str) -> str:
        return subprocess.run(
            [*self._tmux, *words], check=True, capture_output=True, text=True
        ).stdout
