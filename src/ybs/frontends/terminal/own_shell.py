"""The person's own shell, for `!!command`: on their terminal, with their environment, outside of the sandbox.

The program gets a terminal of its own (https://man7.org/linux/man-pages/man7/pty.7.html), and everything passes through, as
with script(1). So Ctrl-C is for the program, its job control works, and what it writes can be kept. Nothing is cleaned on the
way: it is the person's own program on the person's own terminal, and only they can start it.
"""

import asyncio
import fcntl
import os
import pwd
import re
import select
import signal
import struct
import sys
import termios
import tty
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from ybs.security.launcher import spawn
from ybs.session.own_commands import OwnRun, RunOwn

if TYPE_CHECKING:
    from ybs.frontends.terminal.prompt.input import Prompt

#: So many bytes of the beginning and of the end are kept.
MOST_HEAD, MOST_TAIL = 64_000, 448_000
#: A shell that has ended is found out about within this time, also where something it started holds the terminal.
LOOK_SECONDS = 0.1
#: When nothing has come for so long after the end, there is nothing more.
QUIET_SECONDS = 0.05
#: A program that does not end when its terminal is gone is ended after this time.
GRACE_SECONDS = 1.0
#: Shells that know `-i` beside `-c`: aliases and functions are the person's own too.
_INTERACTIVE = frozenset(("bash", "zsh", "fish", "ksh", "mksh"))
_CHUNK = 65_536
_MODE = re.compile(rb"\x1b\[\?([0-9;]{1,20})([hl])")
_LONGEST_MODE = 24
_OTHER_SCREEN = re.compile(rb"\x1b\[\?(1049|1047|47)h.*?(?:\x1b\[\?\1l|\Z)", re.DOTALL)
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])")
_SHOWN_CURSOR = b"25"
#: Modes that a program may leave behind: keys of the cursor, the mouse, focus, the other screen, pastes.
_LEFT_BEHIND = frozenset(
    (b"1", b"9", b"1000", b"1002", b"1003", b"1004", b"1005", b"1006", b"1015", b"47", b"1047")
) | {b"1049", b"2004", b"2026"}  # fmt: skip
_DEFAULTS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP)  # fmt: skip


def shell_of(environ: Mapping[str, str]) -> list[str]:
    """Return the person's shell with the options that make it take a command."""
    shell = environ.get("SHELL", "")
    if not shell.startswith("/"):
        with suppress(KeyError):
            shell = pwd.getpwuid(os.getuid()).pw_shell
    if not (shell.startswith("/") and os.access(shell, os.X_OK)):
        shell = "/bin/sh"
    return [shell, "-ic" if Path(shell).name in _INTERACTIVE else "-c"]


async def run_own(
    command: str,
    folder: Path,
    *,
    terminal: tuple[int, int] = (0, 1),
    environ: Mapping[str, str] = os.environ,
) -> OwnRun:
    """Run a command in the person's shell on a terminal (its keys, its screen). Raises OSError where it cannot be started."""
    passing = PassThrough(terminal)
    argv = [*shell_of(environ), command]
    loop = asyncio.get_running_loop()
    work = loop.run_in_executor(None, passing.run, argv, dict(environ), folder)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        passing.stop()
        await asyncio.wait((work,))
        raise


def own_runner(window: "Prompt", draw: Callable[[], None]) -> RunOwn:
    """Return what runs commands in the place of the prompt; `draw` writes down what was to stand above it."""

    async def run(command: str, folder: Path) -> OwnRun:
        async with window.away():
            draw()
            terminal = window.app.input.fileno(), sys.stdout.fileno()
            return await run_own(command, folder, terminal=terminal)

    return run


class PassThrough:
    """Runs one program on a terminal of its own and passes everything between that and the person's."""

    def __init__(self, terminal: tuple[int, int]) -> None:
        self._keys, self._screen = terminal
        self._wake, self._waker = os.pipe()
        self._master = self._pid = -1
        self._size = b""
        self._pending = b""
        self._is_closed = False
        self._modes = Modes()
        self._kept = _Kept()

    def stop(self) -> None:
        """End the program: its terminal goes."""
        with suppress(OSError):
            os.write(self._waker, b"x")

    def run(self, argv: list[str], environ: dict[str, str], folder: Path) -> OwnRun:
        """Run the program to its end; the terminal is then as it was, however the program left it. Raises OSError."""
        modes = termios.tcgetattr(self._keys)
        try:
            self._start(argv, environ, folder, modes)
            tty.setraw(self._keys, termios.TCSADRAIN)
            code = self._pass()
        finally:
            termios.tcsetattr(self._keys, termios.TCSADRAIN, modes)
            self._show(self._modes.restoring(is_at_line_start=self._kept.ends_line))
            for descriptor in (self._master, self._wake, self._waker):
                with suppress(OSError):
                    os.close(descriptor)
        return OwnRun(exit_code=code, output=self._kept.text())

    def _start(
        self, argv: list[str], environ: dict[str, str], folder: Path, modes: list[Any]
    ) -> None:
        self._master, slave = os.openpty()
        try:
            termios.tcsetattr(slave, termios.TCSANOW, modes)
            self._follow_size()
            # The first terminal that the leader of a session opens is the one that controls it.
            opened = (os.POSIX_SPAWN_OPEN, 0, os.ttyname(slave), os.O_RDWR, 0)
            copied = [(os.POSIX_SPAWN_DUP2, 0, number) for number in (1, 2)]
            self._pid = spawn(
                argv, environ, opened, *copied, folder=folder,
                setsid=True, setsigmask=(), setsigdef=_DEFAULTS,
            )  # fmt: skip
        finally:
            os.close(slave)

    def _pass(self) -> int:
        os.set_blocking(self._master, False)
        reading = [self._master, self._keys, self._wake]
        while (code := self._ended()) is None:
            self._follow_size()
            waiting = [self._master] if self._pending else []
            ready, writable, _ = select.select(reading, waiting, [], LOOK_SECONDS)
            if self._wake in ready or (self._keys in ready and not self._take_keys()):
                return self._hang_up()
            if writable:
                self._hand_keys_on()
            if self._master in ready:
                self._hand_on()
            if self._is_closed:
                reading = [self._wake]  # nobody has the terminal open any more
        self._drain()
        return code

    def _drain(self) -> None:
        """Pass on what is left. What goes on in the background may hold the terminal open, and go on writing."""
        until = monotonic() + GRACE_SECONDS
        while not self._is_closed and monotonic() < until:
            if not select.select([self._master], [], [], QUIET_SECONDS)[0]:
                return
            self._hand_on()

    def _ended(self) -> int | None:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None

    def _take_keys(self) -> bool:
        try:
            data = os.read(self._keys, _CHUNK)
        except OSError:
            return False
        self._pending += data
        self._hand_keys_on()
        return bool(data)

    def _hand_keys_on(self) -> None:
        with suppress(OSError):  # full for now, or nobody reads
            self._pending = self._pending[os.write(self._master, self._pending) :]

    def _hand_on(self) -> None:
        """Pass on what the program has written."""
        try:
            data = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._is_closed = not data
        self._modes.feed(data)
        self._kept.feed(data)
        self._show(data)

    def _show(self, data: bytes) -> None:
        with suppress(OSError):  # the terminal has gone
            while data:
                try:
                    data = data[os.write(self._screen, data) :]
                except BlockingIOError:
                    select.select([], [self._screen], [], LOOK_SECONDS)

    def _follow_size(self) -> None:
        with suppress(OSError):
            size = fcntl.ioctl(self._screen, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
            if size != self._size:
                self._size = size
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def _hang_up(self) -> int:
        """End the program and what stands in its foreground, politely at first."""
        groups = {self._pid}
        with suppress(OSError):
            groups.add(os.tcgetpgrp(self._master))
        for number in (signal.SIGHUP, signal.SIGKILL):
            for group in groups:
                with suppress(OSError):
                    os.killpg(group, number)
            until = monotonic() + GRACE_SECONDS
            while monotonic() < until:
                if (code := self._ended()) is not None:
                    return code
                select.select([], [], [], LOOK_SECONDS)
        return -signal.SIGKILL  # another person's, such as sudo: its terminal is gone


class Modes:
    """The modes of a terminal that a program has changed, so that what it left behind can be taken back."""

    def __init__(self) -> None:
        self._changed: set[bytes] = set()
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Read what the program writes."""
        text = self._rest + data
        for numbers, how in _MODE.findall(text):
            for number in numbers.split(b";"):
                if (how == b"h") == (number in _LEFT_BEHIND):
                    self._changed.add(number)
                else:
                    self._changed.discard(number)
        self._rest = text[-_LONGEST_MODE:]

    def restoring(self, *, is_at_line_start: bool) -> bytes:
        """Return what makes the terminal as it was; the cursor is in the first column then."""
        off = b"".join(b"\x1b[?%bl" % number for number in self._changed & _LEFT_BEHIND)
        cursor = b"\x1b[?25h" if _SHOWN_CURSOR in self._changed else b""
        return off + cursor + b"\x1b[0m\x1b>" + (b"" if is_at_line_start else b"\r\n")


class _Kept:
    """The beginning and the end of what a program wrote."""

    def __init__(self) -> None:
        self._head, self._tail, self._left_out = b"", b"", 0

    def feed(self, data: bytes) -> None:
        """Take what it wrote."""
        room = MOST_HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * MOST_TAIL:
            self._drop()

    def _drop(self) -> None:
        excess = max(len(self._tail) - MOST_TAIL, 0)
        self._left_out, self._tail = self._left_out + excess, self._tail[excess:]

    @property
    def ends_line(self) -> bool:
        """Whether the cursor stands in the first column, as far as can be told."""
        last = _SEQUENCE.sub(b"", (self._head + self._tail)[-_CHUNK:])
        return not last or last.endswith((b"\n", b"\r"))

    def text(self) -> str:
        """Return it as a person would have read it: without what was drawn on the other screen, and without controls."""
        from ybs.tools.shell.terminal_text import as_seen

        self._drop()
        gap = b"\n[... %d bytes left out ...]\n" % self._left_out if self._left_out else b""
        data = _OTHER_SCREEN.sub(b"", self._head + gap + self._tail)
        return as_seen(data.decode(errors="replace").replace("\r\n", "\n")).strip("\n")
