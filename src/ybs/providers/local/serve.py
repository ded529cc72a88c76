"""The server's process: llama.cpp's own HTTP server, until it is told to end or nobody has used it for long.

Run by `server.py` as `python -m ybs.providers.local.serve` with a Job as JSON on standard input.
"""

import os
import signal
import sys
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from importlib import import_module
from pathlib import Path
from threading import Event
from time import time
from typing import Any

import msgspec

from ybs.providers.local.server import ServerArguments
from ybs.security.incognito import leave_no_dump

LOOK_SECONDS = 10.0


def main() -> None:
    """Serve until the end."""
    leave_no_dump()  # it would hold what was asked
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=ServerArguments)
    os.chdir(Path(job.state_file).parent)  # the folder it was started in may go away
    ended = Event()

    def end(_number: int, _frame: object) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    server = start(job)
    end_log(f"ready on port {job.port}\n")
    wait_until_unused(job, ended, is_working=lambda: is_working(job))
    del server
    Path(job.state_file).unlink(missing_ok=True)
    os._exit(0)  # llama.cpp's threads do not end by themselves


def end_log(last: str) -> None:
    """Write a last line: what follows would be about requests, and some of llama.cpp's messages quote answers."""
    sys.stderr.write(last)
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def start(job: ServerArguments) -> Any:
    """Start llama.cpp's server; it returns once the model is loaded."""
    llama: Any = import_module("xllamacpp")  # the extra `local`; it has no types
    parameters = llama.CommonParams()
    parameters.model.path = job.model
    parameters.model_alias = {job.alias}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = job.port
    parameters.ui = False
    parameters.api_keys = [job.key]
    parameters.n_ctx = job.window
    parameters.n_parallel = 1
    parameters.use_jinja = True
    if job.template:
        parameters.chat_template = job.template
    parameters.cpuparams.n_threads = job.threads
    parameters.cpuparams_batch.n_threads = job.threads
    return llama.Server(parameters)


def wait_until_unused(
    job: ServerArguments,
    ended: Event,
    *,
    is_working: Callable[[], bool],
    look_seconds: float = LOOK_SECONDS,
    now: Callable[[], float] = time,
) -> None:
    """Return when told to end, or when no run has touched the state file for `idle_seconds`.

    A state file that is gone means that nobody can find this server again, so it ends.
    """
    last_used = now()
    while not ended.wait(look_seconds):
        try:
            last_used = max(last_used, Path(job.state_file).stat().st_mtime)
        except OSError:
            return
        if now() - last_used < job.idle_seconds:
            continue
        if not is_working():
            return
        last_used = now()


def is_working(job: ServerArguments) -> bool:
    """Ask the server whether it is writing an answer right now."""
    connection = HTTPConnection("127.0.0.1", job.port, timeout=5)
    try:
        connection.request("GET", "/slots", headers={"Authorization": f"Bearer {job.key}"})
        slots = msgspec.json.decode(connection.getresponse().read())
    except (OSError, HTTPException, msgspec.DecodeError):
        return False
    finally:
        connection.close()
    return any(slot.get("is_processing") for slot in slots)


if __name__ == "__main__":
    main()
