"""`ybs sandbox exec -- CMD`: one command in the sandbox that the model's commands run in."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import IO, TYPE_CHECKING

from ybs.frontends.headless.output import tell
from ybs.security.sandbox.launch import Access
from ybs.session.settings import environment_of, load_settings

if TYPE_CHECKING:
    from types import FrameType

    from ybs.session.options import Options

_NOT_FOUND = 127
_CHUNK = 65_536


def execute(options: "Options", command: Sequence[str], *, network: bool = False) -> int:
    """Run the command to its end and return its exit code; 128 and the signal's number where one ended it.

    Raises Refused where there is no sandbox.
    """
    environment = environment_of(options, load_settings(options))
    environment.sandbox.check()
    launch = environment.sandbox.start(
        command, environment.folder, environment.host.environ, Access(network=network)
    )
    # A terminal is not handed in: what runs in the sandbox could read what is typed there (from its standard output
    # too), or change its settings.
    stdin = subprocess.DEVNULL if sys.stdin is None or sys.stdin.isatty() else None
    out, errors = (subprocess.PIPE if os.isatty(number) else None for number in (1, 2))
    try:
        child = subprocess.Popen(
            launch.argv,
            stdin=stdin,
            stdout=out,
            stderr=errors,
            env=dict(launch.environ),
            cwd=environment.folder,
            pass_fds=launch.descriptors,
            preexec_fn=launch.before_exec,
            start_new_session=True,
        )
    except FileNotFoundError:
        tell(f"ybs: {command[0]}: not found")
        return _NOT_FOUND
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)
    handed_on = [
        _hand_on(pipe, number)
        for number, pipe in ((1, child.stdout), (2, child.stderr))
        if pipe is not None
    ]
    code = _followed(child)
    for thread in handed_on:
        thread.join()
    return code


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


def _followed(child: "subprocess.Popen[bytes]") -> int:
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
