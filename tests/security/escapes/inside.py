"""Runs in the sandbox: makes every attempt of a plan in a process of its own and prints what came of it."""

import ctypes
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

CANARY = re.compile(r"canary-[0-9a-f]{16}|it-was-seen")
SECONDS = 5
LIBRARY = ctypes.CDLL(None, use_errno=True)

_DENIED = (
    1,
    38,
)  # EPERM, ENOSYS: the filter's answers; the kernel's own are others for these arguments


def reached(*arguments):
    """Return whether a system call got past the filter. Its arguments are wrong on purpose, so nothing happens."""
    ctypes.set_errno(0)
    result = LIBRARY.syscall(*arguments)
    return result >= 0 or ctypes.get_errno() not in _DENIED


def in_shell(attempt, names):
    """Return "won" if the shell command showed a canary, or what it said."""
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", attempt["text"]], env={**os.environ, **names}, cwd=names["P"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "timed out"
    said = done.stdout.decode("utf-8", "replace")
    return "won" if CANARY.search(said) else f"{done.returncode} {said[-200:]}"


def in_python(attempt, names):
    """Return "won", "host" for what only the host can see, or why not."""
    space = {
        **names, "os": os, "socket": socket, "ctypes": ctypes, "fcntl": fcntl, "reached": reached,
        "libc": LIBRARY, "won": False,
    }  # fmt: skip
    exec(attempt["text"], space)
    return {True: "won", False: "no"}.get(space["won"], space["won"])


def in_child(attempt, names):
    """Attempt it in a child, so that nothing of it reaches the next one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        try:
            said = in_python(attempt, names)
        except OSError as error:
            said = f"{type(error).__name__}: {error}"
        except BaseException as error:  # a mistake in the table, not a sandbox that holds
            said = f"BROKEN {type(error).__name__}: {error}"
        os.write(writing, str(said).encode("utf-8", "replace"))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    os.waitpid(child, 0)
    return said or "died"


def main():
    plan = json.loads(Path(sys.argv[1]).read_text())
    names = plan["names"]
    texts = {name: str(value) for name, value in names.items()}
    os.chdir(names["P"])
    results = {
        one["id"]: in_shell(one, texts) if one["how"] == "sh" else in_child(one, names)
        for one in plan["attempts"]
    }
    sys.stdout.write("RESULTS " + json.dumps(results))


main()
