import asyncio
import gc
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from time import monotonic
from typing import Any

import pytest

from rows import every_row
from ybs.security.launcher import start_in_loop
from ybs.security.sandbox import child
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
    launch = Launch(["/bin/cat", "/dev/zero"], {})
    process = await start_in_loop(launch, stdout=PIPE, stderr=PIPE)
    stdout: Any = process.stdout
    while not stdout._paused:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await _end(process, has_own_group=True)
    assert process.returncode == -signal.SIGKILL


@every_row(
    ("code", "said"), [("echo no good >&2; exit 3", "no good"), ("exit 3", "it ended with code 3")]
)
async def test_a_child_that_fails_says_why(code: str, said: str):
    with pytest.raises(Failed) as caught:
        await run(code)
    assert (str(caught.value), caught.value.code) == (said, 3)


async def test_a_child_that_complains_without_end_still_ends():
    with pytest.raises(Failed) as caught:
        await run("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1")
    assert str(caught.value) == "x" * 20_001


async def test_as_much_as_may_be_printed_is():
    assert await run("head -c 1000 /dev/zero") == bytes(1000)
    with pytest.raises(Failed, match="it printed more than 1,000 bytes"):
        await run("head -c 1001 /dev/zero")


async def test_a_child_without_input_does_not_find_a_pipe_to_read_from():
    """Or `rg` would search in that, and not in the folder."""
    look = "[ -c /dev/stdin ] && echo device; [ -p /dev/stdin ] && echo pipe; cat"
    assert await run(look) == b"device\n"
    assert await run(look, stdin=b"") == b"pipe\n"


@every_row("program", ["/bin/true", "/gone"])
async def test_descriptors_are_closed_whether_it_starts_or_not(program: str):
    reading, writing = os.pipe()
    launch = Launch([program], {}, descriptors=(writing,))
    with suppress(FileNotFoundError):
        await run_child(launch, folder=Path("/"), stdin=None, timeout_seconds=5, most_bytes=1)
    assert os.read(reading, 1) == b""
    os.close(reading)


class FakeProcess:
    """A program with a number that nobody has, and no pipes."""

    pid = 2**30
    stdout = stderr = None

    def __init__(self, returncode: int | None) -> None:
        self.returncode = returncode

    async def wait(self) -> None:
        self.returncode = self.returncode or 0

    def close(self) -> None:
        pass


@every_row(("returncode", "killed"), [(None, [2**30]), (0, []), (1, [])])
async def test_the_group_of_one_that_has_ended_may_be_another_ones_by_now(
    monkeypatch: pytest.MonkeyPatch, returncode: int | None, killed: list[int]
):
    seen: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, _signal: seen.append(group))
    process: Any = FakeProcess(returncode)
    await _end(process, has_own_group=True)
    assert seen == killed
    assert process.returncode is not None


async def test_only_one_that_hangs_at_two_looks_in_a_row_is_killed(monkeypatch):
    looks = [True, False, True, True]
    ended = asyncio.Event()
    monkeypatch.setattr(child, "_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(child, "is_stuck", lambda _pid: looks.pop(0))
    monkeypatch.setattr(child, "_kill", lambda *_, **__: ended.set())
    process: Any = FakeProcess(None)
    watch = child._Watch(process, has_own_group=True)
    async with asyncio.timeout(5):
        await ended.wait()
    assert (looks, watch.has_killed) == ([], True)
    watch.end()


async def test_nobody_looks_at_one_that_has_ended(monkeypatch: pytest.MonkeyPatch):
    watches: list[child._Watch] = []

    class Kept(child._Watch):
        def __init__(self, process: Any, *, has_own_group: bool) -> None:
            super().__init__(process, has_own_group=has_own_group)
            watches.append(self)

    monkeypatch.setattr(child, "_Watch", Kept)
    await run("true")
    assert [watch._timer.cancelled() for watch in watches] == [True]


async def test_nothing_waits_for_a_pipe_that_somebody_else_holds_open():
    begun = monotonic()
    with pytest.raises(Failed, match="longer"):
        await run("sleep 5 & wait", timeout_seconds=0.1, has_own_group=False)
    assert monotonic() - begun < 4
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


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
