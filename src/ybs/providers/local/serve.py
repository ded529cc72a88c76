"""The server's process: llama.cpp's own HTTP server, until it is told to end or nobody has used it for long.

Run by `server.py` as `python -m ybs.providers.local.serve` with ServerArguments as JSON on standard input. The server is that
of the extra `local`, in this process, or a program that this process starts and ends.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from subprocess import PIPE, STDOUT, TimeoutExpired
from threading import Event, Thread
from time import time
from typing import TYPE_CHECKING, Any

import msgspec

from ybs.config import private_file
from ybs.core.decoding import from_json
from ybs.providers.local.server import SOCKET, ServerArguments, SocketConnection
from ybs.security.incognito import leave_no_dump
from ybs.security.launcher import start as start_program
from ybs.security.sandbox.launch import Launch

if TYPE_CHECKING:
    from subprocess import Popen

LOOK_SECONDS = 10.0
CHILD_SECONDS = 5.0
#: So many tokens a processor reads at a time: after each it tells how far it is.
BATCH = 256


def main() -> None:
    """Serve until the end."""
    leave_no_dump()  # it would hold what was asked
    job = from_json(sys.stdin.buffer.read(), ServerArguments)
    os.chdir(Path(job.state_file).parent)  # the folder it was started in may go away
    ended = Event()

    def end(_number: int, _frame: object) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if job.program:
        code = run_program(job, ended)
    else:
        server = start(job)
        end_log("ready\n")
        wait_until_unused(job, ended, is_working=lambda: is_working(job))
        del server
        code = 0
    Path(job.state_file).unlink(missing_ok=True)
    os._exit(code)  # llama.cpp's threads do not end by themselves


def run_program(job: ServerArguments, ended: Event) -> int:
    """Serve with a program of the person's until the end, or until it ends; return the exit code."""
    environ = {**os.environ, "LLAMA_API_KEY": job.key}
    launch = Launch(program_arguments(job), environ, before_exec=_end_with_parent)
    folder = Path(job.state_file).parent  # where its socket is
    child = start_program(launch, folder=folder, stdout=PIPE, stderr=STDOUT, has_own_group=False)
    log = Thread(target=_keep_log, args=(child, job), daemon=True)
    log.start()
    Thread(target=lambda: (child.wait(), ended.set()), daemon=True).start()
    wait_until_unused(job, ended, is_working=lambda: is_working(job))
    if child.poll() is not None:
        log.join(CHILD_SECONDS)  # its last words say why
        return child.returncode if child.returncode >= 0 else 128 - child.returncode
    child.terminate()
    try:
        child.wait(CHILD_SECONDS)
    except TimeoutExpired:
        child.kill()
    return 0


def program_arguments(job: ServerArguments) -> list[str]:
    """Return the command of llama.cpp's own server; the key is not in it, since arguments are visible."""
    words = [job.program, "--model", job.model, "--alias", job.alias]
    words += ["--host", SOCKET, "--jinja", "--parallel", "1"]
    words += ["--ctx-size", str(job.window), "--n-gpu-layers", str(job.gpu_layers)]
    words += [] if job.gpu_layers else ["--batch-size", str(BATCH)]
    words += ["--threads", str(job.threads), "--threads-batch", str(job.reading_threads)]
    if job.slots_folder:
        words += ["--slot-save-path", job.slots_folder]
    if job.template:
        file = Path(job.state_file).with_name("llama.template.jinja")
        private_file.replace(file, job.template.encode(), waits=False)
        words += ["--chat-template-file", str(file)]
    return words


def _end_with_parent() -> None:
    """Have the kernel end the child when this process is killed: nobody could find it again."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _keep_log(child: "Popen[bytes]", job: ServerArguments) -> None:
    """Hand on what the program says until it is ready: what follows would be about requests."""
    assert child.stdout is not None  # noqa: S101 - asked for above
    is_ready = False
    for line in child.stdout:
        is_ready = is_ready or is_up(job)
        if not is_ready:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()


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
    parameters.hostnames = [SOCKET]
    parameters.ui = False
    parameters.api_keys = [job.key]
    parameters.n_ctx = job.window
    parameters.n_gpu_layers = job.gpu_layers
    if not job.gpu_layers:
        parameters.n_batch = BATCH
    parameters.n_parallel = 1
    parameters.use_jinja = True
    if job.slots_folder:
        parameters.slot_save_path = f"{job.slots_folder}/"
    if job.template:
        parameters.chat_template = job.template
    parameters.cpuparams.n_threads = job.threads
    parameters.cpuparams_batch.n_threads = job.reading_threads
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
    try:
        slots = msgspec.json.decode(_asked(job, "/slots")[1])
        return any(slot.get("is_processing") for slot in slots)
    except (OSError, HTTPException, msgspec.DecodeError, AttributeError):
        return False


def is_up(job: ServerArguments) -> bool:
    """Ask the server whether it has loaded the model."""
    try:
        return _asked(job, "/health")[0] == 200
    except (OSError, HTTPException):
        return False


def _asked(job: ServerArguments, path: str) -> tuple[int, bytes]:
    connection = SocketConnection(str(Path(job.state_file).with_name(SOCKET)), timeout=5)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {job.key}"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


if __name__ == "__main__":
    main()
