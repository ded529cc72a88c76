import asyncio
import gc
import signal
import subprocess
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from ybs.security.sandbox.child import Failed, _end, run_child
from ybs.security.sandbox.launch import Launch

pytestmark = pytest.mark.integration


async def run(
    code: str,
    *,
    stdin: bytes | None = None,
    timeout_seconds: float = 5.0,
    has_own_group: bool = True,
) -> bytes:
    return await run_child(
        Launch(["/bin/sh", "-c", code], {"PATH": "/usr/bin:/bin"}),
        folder=Path("/"),
        stdin=stdin,
        timeout_seconds=timeout_seconds,
        most_bytes=1000,
        has_own_group=has_own_group,
    )


async def test_a_child_reads_its_input_and_is_given_only_these_variables():
    assert await run("cat; env | grep -c HOME || true", stdin=b"in\n") == b"in\n0\n"
    assert await run("exec <&-; printf done", stdin=b"x" * 1_000_000) == b"done"


async def test_what_nobody_reads_keeps_no_pipe_open():
    with pytest.raises(Failed, match="printed more"):
        await run("head -c 3000000 /dev/zero")
    gc.collect()  # an open pipe would be a warning, and that an error


async def test_a_child_whose_pipe_is_full_is_ended_all_the_same():
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", "cat /dev/zero", stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    stdout: Any = process.stdout
    while not stdout._paused:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await _end(process, has_own_group=True)
    assert process.returncode == -signal.SIGKILL


async def test_a_child_that_fails_says_why():
    with pytest.raises(Failed, match="no good"):
        await run("echo no good >&2; exit 3")
    with pytest.raises(Failed, match="ended with code 3"):
        await run("exit 3")


async def test_a_child_that_complains_without_end_still_ends():
    with pytest.raises(Failed):
        await run("head -c 100000 /dev/zero >&2; exit 1")


async def test_what_a_child_has_started_dies_with_it(tmp_path: Path):
    note = tmp_path / "pid"
    with pytest.raises(Failed, match="longer"):
        await run(f"sleep 60 & echo $! > {note}; wait", timeout_seconds=0.3)
    pid = int(note.read_text())
    for _ in range(1000):
        if not is_alive(pid):
            break
        await asyncio.sleep(0.001)
    assert not is_alive(pid)


def is_alive(pid: int) -> bool:
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return done.stdout.strip()[:1] not in (b"", b"Z")


async def test_a_child_in_the_group_of_its_parent_is_killed_alone():
    with pytest.raises(Failed, match=r"longer than 0\.05 s"):
        await run("exec sleep 1000", timeout_seconds=0.05, has_own_group=False)
