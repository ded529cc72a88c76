"""`ybs sandbox exec -- CMD`: one command in the sandbox that the model's commands run in."""

import os
import signal
import sys
from contextlib import suppress
from subprocess import DEVNULL, PIPE
from threading import Thread
from time import sleep
from typing import IO, TYPE_CHECKING

from ybs.frontends.headless.output import tell
from ybs.security.launcher import persons_program, start
from ybs.security.sandbox.launch import Access, Launch
from ybs.session.settings import environment_of, ready_settings
from ybs.tools.shell.orphans import CommandMark
from ybs.tools.shell.path_leases import WAIT_SECONDS, may_begin

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path
    from subprocess import Popen
    from types import FrameType

    from ybs.session.options import Options

_NOT_FOUND = 127
_CHUNK = 65_536


def execute(arguments: "Namespace", options: "Options") -> int:
    """Run the command to its end and return its exit code; 128 and the signal's number where one ended it.

    Raises Refused where there is no sandbox.
    """
    command: list[str] = arguments.command
    environment = environment_of(options, ready_settings(options))
    environment.sandbox.check()
    launch = environment.sandbox.start(
        command,
        environment.folder,
        environment.host.environ,
        Access(network=arguments.network, is_command=True),
    )
    mark = CommandMark.new()  # it says until the end of this function that the command runs
    while not may_begin(mark, launch.writable):
        sleep(WAIT_SECONDS)
    # A terminal is not handed in: what runs in the sandbox could read what is typed there (from its standard output
    # too), or change its settings.
    stdin = DEVNULL if sys.stdin is None or sys.stdin.isatty() else None
    out, errors = (PIPE if os.isatty(number) else None for number in (1, 2))
    try:
        child = start(
            _found(launch, environment.folder),
            folder=environment.folder,
            stdin=stdin,
            stdout=out,
            stderr=errors,
        )
    except FileNotFoundError:
        tell(f"ybs: {command[0]}: not found")
        return _NOT_FOUND
    handed_on = [
        _hand_on(pipe, number)
        for number, pipe in ((1, child.stdout), (2, child.stderr))
        if pipe is not None
    ]
    code = _followed(child)
    for thread in handed_on:
        thread.join()
    return code


def _found(launch: Launch, folder: "Path") -> Launch:
    """Return a launch with the whole path of its program, which may be one of the project: the person named it."""
    program = launch.argv[0]
    if "/" in program:
        found = os.path.join(folder, program)  # noqa: PTH118 - `./x` stays as it was typed
    else:
        found = persons_program(program, environ=launch.environ) or program
    return Launch((found, *launch.argv[1:]), launch.environ, launch.descriptors, launch.before_exec)


def _hand_on(pipe: IO[bytes], number: int) -> Thread:
    """Start a thread that writes what comes out of the pipe to the descriptor."""

    def copy() -> None:
        with pipe:
            while data := os.read(pipe.fileno(), _CHUNK):
                with suppress(OSError), open(number, "wb", closefd=False) as terminal:
                    terminal.write(data)  # reading goes on when the terminal has gone

    thread = Thread(target=copy, daemon=True)
    thread.start()
    return thread


def _followed(child: "Popen[bytes]") -> int:
    """Wait for the child and hand on the signals that should end it."""

    def hand_on(number: int, _frame: "FrameType | None") -> None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)

    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, hand_on) for number in ending]
    try:
        code = child.wait()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        for number, handler in zip(ending, before, strict=True):
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code
