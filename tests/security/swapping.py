"""A job in the real sandbox that waits until a file is being written, and puts a link in its folder's place."""

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from security.escapes.world import PYTHON
from ybs.config.host import Host
from ybs.security.sandbox import landlock as landlock_module
from ybs.security.sandbox.bubblewrap import Bubblewrap, attempt, find
from ybs.security.sandbox.landlock import open_kernel
from ybs.security.sandbox.launch import Backend
from ybs.security.sandbox.places import see

#: Exchanges a folder with a link (renameat2, RENAME_EXCHANGE), in one of two ways: once, as soon as a file in it is new
#: or touched; or without end.
SWAPPER = """
import ctypes, os, sys
swap = ctypes.CDLL(None).renameat2
watched, one, two = (os.fsencode(word) for word in sys.argv[1:])
def mark():
    try:
        found = os.stat(watched, follow_symlinks=False)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
before = mark() if watched else None
print("ready", flush=True)
while True:
    if not watched:
        assert swap(-100, one, -100, two, 2) == 0
    elif (now := mark()) is not None and now != before:
        print(swap(-100, one, -100, two, 2), flush=True)
        break
"""


def host_in(home: Path) -> Host:
    """Return a host whose own state is kept beside the home folder, so that nothing but an attack changes what is in there."""
    return Host.of({"HOME": str(home), "XDG_STATE_HOME": str(home.parent / "state")})


def bubblewrap(project: Path, home: Path) -> Backend:
    program = find()
    options, why = attempt(program) if program else (None, "bubblewrap is not installed")
    if options is None or program is None:
        pytest.skip(f"NOT TESTED: {why}")
    return Bubblewrap(see(host_in(home), project), program, options, why)


def landlock(project: Path, home: Path) -> Backend:
    kernel, why = landlock_module.attempt(open_kernel())
    if kernel is None:
        pytest.skip(f"NOT TESTED: {why}")
    return landlock_module.Landlock(see(host_in(home), project), kernel, why)


SANDBOXES = {"bubblewrap": bubblewrap, "landlock": landlock}


@contextmanager
def job(
    sandbox: Backend, folder: Path, one: Path, two: Path, watched: Path | None = None
) -> Generator[subprocess.Popen[bytes]]:
    """Run the swapper as a background job of a model runs, until the block ends."""
    words = (str(watched or ""), str(one), str(two))
    launch = sandbox.launch((PYTHON, "-I", "-S", "-c", SWAPPER, *words), folder, os.environ)
    try:
        running = subprocess.Popen(
            launch.argv,
            cwd=folder,
            env=dict(launch.environ),
            pass_fds=launch.descriptors,
            preexec_fn=launch.before_exec,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)
    with running:
        try:
            assert running.stdout is not None
            assert running.stderr is not None
            if running.stdout.readline() != b"ready\n":
                pytest.fail(running.stderr.read().decode())
            yield running
        finally:
            running.kill()
