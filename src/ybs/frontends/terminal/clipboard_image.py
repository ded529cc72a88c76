"""Takes an image from the clipboard, by a program of this machine, into a private file that goes with the process."""

import asyncio
import atexit
import os
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import mkdtemp

from ybs.core.errors import YbsError
from ybs.frontends.terminal.clipboard import DESKTOP, PROGRAM_SECONDS

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


async def save_image(
    environ: Mapping[str, str] = os.environ, *, away_from: Collection[Path]
) -> Path:
    """Write the clipboard's image into a file and return its path. Raises NoImage."""
    from ybs.security.launcher import environ_away, trusted_program
    from ybs.security.sandbox.environment import build_open

    commands = readers(environ)
    if not commands:
        raise NoImage("there is no clipboard with images here; type or drop the path of an image")
    desktop = {name: environ[name] for name in DESKTOP if name in environ}
    variables = environ_away(build_open(environ, declared=desktop), away_from)
    missing: list[str] = []
    for name, *options in commands:
        program = trusted_program(name, away_from=away_from, environ=environ)
        if program is None:
            missing.append(name)
        elif (data := await _output([str(program), *options], variables)).startswith(_PNG):
            return _written(data)
    if len(missing) == len(commands):
        raise NoImage(f"to attach an image from the clipboard, install {' or '.join(missing)}")
    raise NoImage("the clipboard holds no image")


async def _output(command: list[str], variables: dict[str, str]) -> bytes:
    from ybs.security.launcher import start_in_loop
    from ybs.security.sandbox.launch import Launch

    try:
        process = await start_in_loop(Launch(command, variables), stdout=PIPE)
    except OSError:
        return b""
    try:
        async with asyncio.timeout(PROGRAM_SECONDS):
            return (await process.communicate())[0]
    except TimeoutError:
        process.kill()
        await process.wait()
        return b""


def _written(data: bytes) -> Path:
    folder = Path(mkdtemp(prefix="ybs-"))  # 0700
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "image.png"
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path
