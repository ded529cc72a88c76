"""Puts text on the clipboard: by a program of this machine, and by asking the terminal, which may be far away."""

import atexit
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from prompt_toolkit.output import Output

from ybs.core.errors import YbsError
from ybs.core.time_limits import time_limit
from ybs.frontends.terminal.output import act, passed_on
from ybs.security.unicode import printable

#: Terminals drop longer sequences (xterm takes 100,000 characters, which are 75,000 bytes in base64).
MAX_OSC_BYTES = 74_000
PROGRAM_SECONDS = 3.0
_MOST_IMAGE_BYTES = 100_000_000
#: What these programs need of the environment beyond what any program gets; keys are not among it.
DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "TMUX", "TMUX_TMPDIR")
NO_PROGRAM = "there is no clipboard here: no wl-copy, xclip, xsel, pbcopy or tmux that works"


def osc52(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the sequence that asks the terminal to take the text (OSC 52); "" where it is too long for it."""
    from base64 import b64encode  # few copy

    data = printable(text).encode()
    if len(data) > MAX_OSC_BYTES:
        return ""
    return passed_on(f"\x1b]52;c;{b64encode(data).decode()}\x07", environ)


def programs(environ: Mapping[str, str] = os.environ) -> list[list[str]]:
    """List the commands that take the clipboard's new content on standard input, the likeliest first."""
    found: list[list[str]] = []
    is_remote = bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))
    if not is_remote and sys.platform == "darwin":
        found.append(["pbcopy"])
    if not is_remote and environ.get("WAYLAND_DISPLAY"):
        found.append(["wl-copy"])
    if not is_remote and environ.get("DISPLAY"):
        found += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    if environ.get("TMUX"):
        found.append(["tmux", "load-buffer", "-w", "-"])
    return found


async def copy(text: str, output: Output) -> str:
    """Copy by a program of this machine, else by the terminal, which may stand elsewhere; say what was done."""
    sequence = ""
    program = await copy_by_program(text)
    if not program and (sequence := osc52(text)):
        act(output, sequence)
    return said(text, program, is_sent=bool(sequence))


async def copy_by_program(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Give the text to the first program that takes it and return its name; "" where none does.

    Programs of the project do not count, whatever PATH says.
    """
    from ybs.security.launcher import environ_away, trusted_program
    from ybs.security.sandbox.launch import open_environment_of  # few copy

    data = printable(text).encode()
    desktop = {name: environ[name] for name in DESKTOP if name in environ}
    variables = environ_away(open_environment_of(environ, declared=desktop))
    for name, *options in programs(environ):
        path = trusted_program(name, environ=environ)
        if path is not None and await _feed([str(path), *options], data, variables):
            return name
    return ""


def said(text: str, program: str, *, is_sent: bool) -> str:
    """Return a message about what happened to the text."""
    size = f"{len(text):,} character{'s' * (len(text) != 1)}"
    if program:
        return f"copied {size} ({program})"
    if is_sent:
        return f"{size} sent to the terminal (OSC 52; not every terminal takes it)"
    return f"not copied: {size} are more than a terminal's clipboard takes (74,000 bytes)"


async def _feed(command: list[str], data: bytes, variables: dict[str, str]) -> bool:
    """Run a program with the text as its input; return whether it did its work."""
    from subprocess import PIPE

    from ybs.security.launcher import start_in_loop
    from ybs.security.sandbox.launch import Launch

    try:
        program = await start_in_loop(Launch(command, variables), stdin=PIPE)
    except OSError:
        return False
    try:
        async with time_limit(PROGRAM_SECONDS):
            program.give(data)
            await program.wait()
    except TimeoutError:
        program.kill()
    finally:
        program.close()
    return program.returncode == 0


_PNG = b"\x89PNG\r\n\x1a\n"


class NoImage(YbsError):
    """The clipboard holds no image, or no program can read it."""


def readers(environ: Mapping[str, str] = os.environ) -> list[list[str]]:
    """List the commands that print the clipboard's image as PNG, the likeliest first."""
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return []
    found: list[list[str]] = []
    if sys.platform == "darwin":
        found.append(["pngpaste", "-"])
    if environ.get("WAYLAND_DISPLAY"):
        found.append(["wl-paste", "--type", "image/png"])
    if environ.get("DISPLAY"):
        found.append(["xclip", "-selection", "clipboard", "-t", "image/png", "-o"])
    return found


async def save_image(environ: Mapping[str, str] = os.environ) -> Path:
    """Write the clipboard's image into a file and return its path. Raises NoImage."""
    from ybs.security.launcher import environ_away, trusted_program
    from ybs.security.sandbox.launch import open_environment_of

    commands = readers(environ)
    if not commands:
        raise NoImage("there is no clipboard with images here; type or drop the path of an image")
    desktop = {name: environ[name] for name in DESKTOP if name in environ}
    variables = environ_away(open_environment_of(environ, declared=desktop))
    missing: list[str] = []
    for name, *options in commands:
        program = trusted_program(name, environ=environ)
        if program is None:
            missing.append(name)
        elif (data := await _output([str(program), *options], variables)).startswith(_PNG):
            return _written(data)
    if len(missing) == len(commands):
        raise NoImage(f"to attach an image from the clipboard, install {' or '.join(missing)}")
    raise NoImage("the clipboard holds no image")


async def _output(command: list[str], variables: dict[str, str]) -> bytes:
    from ybs.security.launcher import OWN_FOLDER
    from ybs.security.sandbox.child import Failed, run_child
    from ybs.security.sandbox.launch import Launch

    with suppress(Failed, OSError):
        return await run_child(
            Launch(command, variables),
            folder=OWN_FOLDER,
            stdin=None,
            timeout_seconds=PROGRAM_SECONDS,
            most_bytes=_MOST_IMAGE_BYTES,
        )
    return b""


def _written(data: bytes) -> Path:
    folder = Path(mkdtemp(prefix="ybs-"))  # 0700
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "image.png"
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path
