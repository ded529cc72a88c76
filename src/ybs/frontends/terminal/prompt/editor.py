"""The person's own editor: has a text edited in a private file that is gone afterwards."""

import asyncio
import os
import shlex
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ybs.core.errors import YbsError

if TYPE_CHECKING:
    from asyncio.subprocess import Process

#: Tried in this order where $VISUAL and $EDITOR name none.
USUAL = ("nano", "vim", "vi")
MOST_BYTES = 20_000_000
#: An editor that does not end when it is told to is ended after this time.
GRACE_SECONDS = 1.0


class NoEditor(YbsError):
    """No editor was found, or it failed; the text is as it was."""


def editor_command(
    away_from: Collection[Path], environ: Mapping[str, str] = os.environ
) -> list[str]:
    """Return the editor and its arguments. What lies in a root (`away_from`) does not count. Raises NoEditor."""
    from ybs.security.launcher import persons_program  # the first Ctrl-G only

    for name in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(environ.get(name, ""))
        except ValueError as error:
            raise NoEditor(f"${name} cannot be read: {error}") from error
        if words and (found := persons_program(words[0], away_from=away_from, environ=environ)):
            return [found, *words[1:]]
        if words:
            raise NoEditor(f"${name} does not name a program outside of this project: {words[0]}")
    for name in USUAL:
        if found := persons_program(name, away_from=away_from, environ=environ):
            return [found]
    raise NoEditor("no editor found; set the variable EDITOR")


async def edit(text: str, command: list[str], away_from: Collection[Path] = ()) -> str:
    """Have the text edited on this terminal and return it; the editor finds no program in a root (`away_from`). Raises NoEditor."""
    from tempfile import TemporaryDirectory

    from ybs.security.firewall.vault import without_secrets
    from ybs.security.launcher import environ_away, start_in_loop
    from ybs.security.sandbox.launch import Launch

    with TemporaryDirectory(prefix="ybs-", ignore_cleanup_errors=True) as folder:  # 0700
        file = _write(Path(folder), text)
        try:
            process = await start_in_loop(
                Launch((*command, str(file)), environ_away(without_secrets(os.environ), away_from)),
                folder=folder,
                stdin=None,
                stdout=None,
                stderr=None,
                has_own_group=False,
            )
        except (OSError, ValueError) as error:
            raise NoEditor(f"{command[0]} cannot be started: {error}") from error
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:  # ybs ends
                await _end(process)
        if code:
            raise NoEditor(f"{command[0]} ended with code {code}; nothing was changed")
        return _read(file)


async def _end(process: "Process") -> None:
    process.terminate()
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE_SECONDS):
            await process.wait()
            return
    process.kill()
    await process.wait()


def _write(folder: Path, text: str) -> Path:
    file = folder / "prompt.md"
    file.touch(mode=0o600)
    file.write_text(text, "utf-8", "replace")
    return file


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise NoEditor(f"the edited text cannot be read: {error}") from error
    if len(data) > MOST_BYTES:
        raise NoEditor(f"the edited text is larger than {MOST_BYTES:,} bytes")
    return data.decode("utf-8", "replace").removesuffix("\n")
