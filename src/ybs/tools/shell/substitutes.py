"""Suggest substitutes for a program that was not found: another name of it, or a file of that name."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

from ybs.core.errors import ToolError
from ybs.core.lazy import lazy
from ybs.security.commands.command import MOVING
from ybs.tools.shell.output import CommandOutput
from ybs.tools.shell.process import ShellCommand, run_command
from ybs.tools.shell.programs import (
    FILE,
    INTERPRETERS,
    OTHER,
    OTHER_NAMES,
    RUNNERS,
    called,
    missing_in,
)
from ybs.tools.shell.shells import Shells

_MOST_SECONDS: Final = 5.0
_MOST_CHARS: Final = 2_000
_MOVES = lazy(rf"\b(?:{'|'.join(MOVING)})\b")
_EXECUTABLE: Final = "+x"
_FOR_BASH: Final = "#!bash"
#: Prints the programs that are there; `./` if the file is, and what is known of it.
_PROBE: Final = f"""
for each in {{programs}}; do command -v "$each" >/dev/null 2>&1 && echo "$each"; done
if [ -f './{{name}}' ]; then
    echo ./
    [ -x './{{name}}' ] && echo '{_EXECUTABLE}'
    head -n 1 './{{name}}' | grep -q '^#!.*bash' && echo '{_FOR_BASH}'
fi
true
"""


async def substitute_for(
    command: str, said: str, folder: Path, shells: Shells, *, read_only: bool
) -> str:
    """Return a line about what can be run instead; nothing where that is not certain. `said` is what the shell wrote."""
    name = missing_in(said)
    if not name:
        return ""
    other = OTHER_NAMES.get(name, "")
    programs = " ".join((*INTERPRETERS, other))
    probe = _PROBE.format(programs=programs, name=name)
    there = await _lines_of(probe, folder, shells, read_only=read_only)
    if other and other in there:
        return OTHER.format(name=name, other=other)
    is_here = re.search(called(name), command) and not re.search(_MOVES(), command)
    run = _way_to_run(name, there) if is_here and "./" in there else ""
    return FILE.format(name=name, command=run) if run else ""


async def _lines_of(
    command: str, folder: Path, shells: Shells, *, read_only: bool
) -> Collection[str]:
    """Return what a command prints that runs where the one before did; nothing where it cannot be run."""
    output = CommandOutput(_MOST_CHARS)
    try:
        launch, mark = shells.prepare(command, folder, read_only=read_only)
        looking = ShellCommand(
            launch=launch, folder=folder, mark=mark, output=output, watch=shells.watch
        )
        await run_command(looking, _MOST_SECONDS)
    except (OSError, ToolError):
        return ()
    return output.stdout.text().splitlines()


def _way_to_run(name: str, there: Collection[str]) -> str:
    """Return the command that runs a file of the folder; nothing where there is none."""
    runners = ("bash",) if _FOR_BASH in there else RUNNERS.get(Path(name).suffix, ())
    for each in runners:
        if each in there:
            return f"{each} {name}"
    return f"./{name}" if _EXECUTABLE in there and not runners else ""
