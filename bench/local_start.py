"""The local model's server: its second start by ybs against a bare start of llama.cpp's with the same arguments."""

import asyncio
import json
import os
import subprocess
import sys
import time
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lab import HERE, Lab, Row, median

from ybs.config.host import Host
from ybs.providers.local import models, process, server
from ybs.providers.local.model import notes_of
from ybs.providers.local.template import templates_of

LIMIT = 1.2
_LOOK_SECONDS = 0.01


def measure(lab: Lab, rounds: int) -> list[Row]:
    here = Host.of(os.environ)
    if not models.starter_installed(here) or find_spec("xllamacpp") is None:
        return [Row("not measured: the starter model is not installed", 0, "x")]
    own = Host.of({**os.environ, "YBS_HOME": str(lab.folder / "ybs")})
    return asyncio.run(rows(own, models.starter_path(here), max(3, rounds // 3)))


async def rows(host: Host, model: Path, rounds: int) -> list[Row]:
    head = notes_of(host, model).head
    template = next(templates_of(model, head)).text
    wanted = server.Wanted(model=str(model), alias="bench", shape=head.shape, template=template)
    job, _ = await started(host, wanted)  # the first one reads the file from the disk
    bare, managed = list[float](), list[float]()
    for _ in range(rounds):
        bare.append(bare_start(job))
        managed.append((await started(host, wanted))[1])
    return [
        Row("second start / bare start, until the model is there", median(managed) / median(bare), "x", LIMIT),
        Row("second start", 1000 * median(managed), "ms"),
        Row("bare start", 1000 * median(bare), "ms"),
    ]  # fmt: skip


async def started(host: Host, wanted: server.Wanted) -> tuple[dict[str, Any], float]:
    """Return what ybs starts its server with, and the seconds until it is healthy; it is ended again."""
    jobs: list[bytes] = []
    spawn = process.spawn

    def noted(argv: list[str], words: bytes, *more: Any) -> int:
        jobs.append(words)
        return spawn(argv, words, *more)

    process.spawn = noted
    lease = server.ServerLease(host)
    try:
        began = time.monotonic()
        await server.ensure(host, wanted, lease, told=lambda _: None)
        seconds = time.monotonic() - began
    finally:
        process.spawn = spawn
        lease.release()
        await server.stop(host)
    return json.loads(jobs[-1]), seconds


def bare_start(job: dict[str, Any]) -> float:
    """Return the seconds until llama.cpp's server, started alone, is healthy."""
    job = {**job, "port": server.free_port()}
    began = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, str(HERE / "bare_llama.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # as ybs starts it: on a busy machine Linux shares out the cores by sessions
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps(job).encode())
    child.stdin.close()
    try:
        while not is_healthy(job):
            if child.poll() is not None:
                raise SystemExit(f"the bare server ended with {child.returncode}")
            time.sleep(_LOOK_SECONDS)
        return time.monotonic() - began
    finally:
        child.kill()
        child.wait()


def is_healthy(job: dict[str, Any]) -> bool:
    connection = HTTPConnection("127.0.0.1", job["port"], timeout=5)
    try:
        connection.request("GET", "/health", headers={"Authorization": f"Bearer {job['key']}"})
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
