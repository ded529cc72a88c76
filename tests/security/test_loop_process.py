"""Programs beside the event loop: that each is known to have ended, and none is left behind by a loop that ends."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from time import monotonic

import pytest

from rows import every_row
from ybs.security.launcher import start_in_loop
from ybs.security.loop_process import LoopProcess
from ybs.security.sandbox.launch import Launch

pytestmark = pytest.mark.integration


async def started(code: str, *words: str) -> LoopProcess:
    environ = {"PATH": "/usr/bin:/bin"}
    launch = Launch(("/bin/sh", "-c", code, "sh", *words), environ)
    return await start_in_loop(launch, stdin=PIPE, stdout=PIPE, stderr=PIPE)


async def read_all(process: LoopProcess) -> tuple[bytes, bytes]:
    assert process.stdout
    assert process.stderr
    return await process.stdout.read(), await process.stderr.read()


async def test_its_pipes_are_streams_and_its_end_is_a_code():
    process = await started("cat; echo no >&2; exit 3")
    assert process.stdin
    process.stdin.write(b"a" * 300_000)
    await process.stdin.drain()
    process.stdin.close()
    assert await read_all(process) == (b"a" * 300_000, b"no\n")
    assert await process.wait() == await process.wait() == process.returncode == 3
    process.close()


@every_row("end, code", [(LoopProcess.kill, -signal.SIGKILL), (LoopProcess.terminate, -signal.SIGTERM)])  # fmt: skip
async def test_it_is_ended(end: Callable[[LoopProcess], None], code: int):
    process = await started("exec sleep 60")
    end(process)
    assert await process.wait() == code
    end(process)  # no error where it has ended
    process.close()


async def test_it_has_ended_although_something_else_holds_its_pipes():
    process = await started("setsid sleep 60 & echo $!")
    assert process.stdout
    stray = int(await process.stdout.readline())
    try:
        assert await asyncio.wait_for(process.wait(), 5) == 0
    finally:
        os.kill(stray, signal.SIGKILL)
        process.close()


async def test_it_has_ended_although_nobody_reads_what_it_printed():
    process = await started("head -c 1000000 /dev/zero")
    await asyncio.sleep(0.05)  # the streams are full
    process.kill()
    assert await asyncio.wait_for(process.wait(), 5) == -signal.SIGKILL
    process.close()


@every_row("steps", range(8))
def test_a_loop_that_ends_waits_for_no_program_and_leaves_none(steps: int, tmp_path: Path):
    note = tmp_path / f"pid{steps}"

    async def work() -> None:
        process = await started('echo $$ > "$1"; exec sleep 60', str(note))
        try:
            await process.wait()
        finally:
            process.kill()
            process.close()

    async def main() -> "asyncio.Task[None]":
        task = asyncio.ensure_future(work())
        for _ in range(steps):
            await asyncio.sleep(0)
        return task

    begun = monotonic()
    assert asyncio.run(main()).cancelled()
    assert monotonic() - begun < 5
    if note.exists() and (pid := note.read_text()):
        while Path(f"/proc/{pid.strip()}").exists() and monotonic() - begun < 5:
            pass
        assert not Path(f"/proc/{pid.strip()}").exists()
