"""`ybs sandbox exec -- CMD`: one command in the cage that the model's commands run in."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ybs.session.options import load_settings
from ybs.session.workshop import Workshop

if TYPE_CHECKING:
    from types import FrameType

    from ybs.session.options import Options

_NOT_FOUND = 127


def execute(options: "Options", command: Sequence[str], *, network: bool = False) -> int:
    """Run the command to its end and return its exit code; 128 and the signal's number where one ended it.

    Raises Refused where there is no cage.
    """
    workshop = Workshop(options, load_settings(options))
    workshop.sandbox.check()
    launch = workshop.sandbox.start(command, workshop.folder, os.environ, network=network)
    # A terminal is not handed in: what runs in the cage could type on it, or change its settings.
    stdin = subprocess.DEVNULL if sys.stdin is None or sys.stdin.isatty() else None
    try:
        child = subprocess.Popen(
            launch.argv,
            stdin=stdin,
            env=dict(launch.environ),
            cwd=workshop.folder,
            pass_fds=launch.descriptors,
            preexec_fn=launch.before_exec,
            start_new_session=True,
        )
    except FileNotFoundError:
        sys.stderr.write(f"ybs: {command[0]}: not found\n")
        return _NOT_FOUND
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)
    return _followed(child)


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
