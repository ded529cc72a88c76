"""Background jobs: how many, how long they are remembered, and that they end."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from processes import comes, ends, in_no_time, is_alive, size_of
from rows import every_row
from ybs.core.errors import ToolError
from ybs.core.ports import ToolOutput
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.launch import Need
from ybs.tools.shell import jobs as room
from ybs.tools.shell import process
from ybs.tools.shell.jobs import Job, Jobs
from ybs.tools.shell.output import CommandOutput, OutputWindow
from ybs.tools.shell.process import Ended
from ybs.tools.shell.shells import Shells


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.05)
    monkeypatch.setattr(process, "PIPE_SECONDS", 0.05)
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(room, "_LOOK_SECONDS", 0.01)


@pytest.fixture
async def shells(project: Path) -> AsyncIterator[Shells]:
    shells = Shells(Roots(this_host(), project))
    yield shells
    await shells.aclose()


async def start(shells: Shells, command: str, *, most_chars: int = 1000) -> Job:
    live = OutputWindow(lambda text: None)
    return await shells.jobs.start(command, Path.cwd(), most_chars=most_chars, live=live)


def test_a_word_that_may_become_a_token_waits_for_its_end() -> None:
    """Nothing would mask its two halves."""
    output = CommandOutput(1000, streams=1)
    for piece, told in (
        (b"saw ghp_" + b"aB3d", "saw "),
        (b"E5f", ""),
        (b"", "ghp_" + "aB3dE5f"),  # as it was: nothing more comes for now
        (b"", ""),
        (b"G7 and\nport 8", "ghp_" + "aB3dE5fG7 and\nport 8"),  # whole, so that it is masked
        (b"000\nAre you sure? [y/n]", "000\nAre you sure? [y/n]"),
        (b" task-1", " "),
        (b"2 ended\n", "task-12 ended\n"),
        (b"ghi", "ghi"),
        (b" job-12", " "),
        (b"", "job-12"),
        (b" 12345\xc3", " 12345"),
        (b"\xa4 downloading", "\u00e4 downloading"),
        (b"....", "...."),
    ):
        output.add(0, piece)
        assert (output.take(is_last=False).text(), piece) == (told, piece)
    output.add(0, b" ghp_" + b"aB3d")
    assert output.take(is_last=True).text() == " ghp_" + "aB3d"


@pytest.mark.integration
async def test_each_reading_gives_what_is_new(shells: Shells, project: Path):
    job = await start(shells, "echo a; while ! [ -e go ]; do sleep 0.01; done; echo b >&2; exit 4")
    await job.wait(5)
    assert in_no_time(job.told(2000).output) == "a\n[job-1 running for 0:00]"
    assert in_no_time(job.told(2000).output) == "[no new output]\n[job-1 running for 0:00]"
    (project / "go").touch()
    await job.wait(5)
    assert in_no_time(job.told(2000).output) == "b\n[job-1 ended with exit code 4 after 0:00]"
    assert job.told(2000).output.startswith("[no new output]")


@pytest.mark.integration
async def test_a_long_output_is_cut_and_whole_in_a_file(shells: Shells):
    job = await start(shells, "seq 1000")
    while job.ended is None:  # on a busy machine it may pause
        await job.wait(5)
    text = job.told(1000).output
    assert len(text) < 1000
    assert text.startswith("1\n")
    assert "left out" in text
    path = re.search(r"\[whole output, 3,893 bytes, 1,000 lines: (\S+) - ", text)
    assert path is not None
    assert size_of(path[1]) == 3893


@pytest.mark.integration
async def test_what_is_cut_is_always_in_a_file(shells: Shells):
    for size in (1000 - room._NOTE_ROOM, 1000 - room._NOTE_ROOM + 1):
        job = await start(shells, f"printf '%0{size}d' 0")
        assert await comes(lambda job=job: job.ended is not None)
        text = job.told(1000).output
        assert ("left out" in text) == ("[whole output, " in text) == (size > 200)


@pytest.mark.integration
async def test_a_job_that_ends_by_itself_is_not_called_stopped(shells: Shells):
    job = await start(shells, "kill -SEGV $$")
    assert await comes(lambda: job.ended is not None)
    await job.stop()
    assert in_no_time(job.state) == "ended with signal SIGSEGV (exit code -11) after 0:00"


@pytest.mark.integration
async def test_waiting_ends_when_output_pauses_and_when_the_time_is_over(shells: Shells):
    loop = asyncio.get_running_loop()
    talking, silent = await start(shells, "echo ready; sleep 60"), await start(shells, "sleep 60")
    began = loop.time()
    await talking.wait(30)
    await silent.wait(0.05)
    await silent.wait(0)
    assert loop.time() - began < 5


@pytest.mark.integration
async def test_stopping_ends_the_group_and_a_second_time_does_nothing(shells: Shells):
    job = await start(shells, "sleep 60 & echo $! $$; wait")
    await job.wait(5)
    pids = [int(pid) for pid in job.output.stdout.text().split()]
    await job.stop()
    await job.stop()
    assert job.ended is not None
    assert job.ended.exit_code == -signal.SIGTERM
    for pid in pids:
        assert await ends(pid)


@pytest.mark.integration
async def test_one_that_is_stopped_leaves_nothing_running(shells: Shells):
    job = await start(shells, "exec sleep 60")
    await job.stop()
    assert job.ended == Ended(exit_code=-signal.SIGTERM)


@pytest.mark.integration
async def test_stopping_kills_what_ignores_the_polite_signal(shells: Shells):
    job = await start(shells, "trap '' TERM; echo $$; while :; do sleep 0.05; done")
    await job.wait(5)
    await job.stop()
    assert job.ended is not None
    assert job.ended.exit_code == -signal.SIGKILL
    assert in_no_time(job.state) == "stopped after 0:00"


@pytest.mark.integration
async def test_what_a_job_leaves_running_ends_with_it(shells: Shells):
    job = await start(shells, "sleep 60 & echo $!")
    assert await comes(lambda: job.ended is not None)
    told = job.told(2000).output
    assert await ends(int(told.splitlines()[0]))
    assert "left in the background were ended with it" in told


@pytest.mark.integration
async def test_jobs_end_with_the_session(shells: Shells):
    jobs = [await start(shells, "echo $$; sleep 60") for _ in range(3)]
    for job in jobs:
        await job.wait(5)
    pids = [int(job.output.stdout.text()) for job in jobs]
    assert all(is_alive(pid) for pid in pids)
    await shells.aclose()
    for pid in pids:
        assert await ends(pid)


@pytest.mark.slow
async def test_jobs_end_side_by_side(shells: Shells, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process, "GRACE_SECONDS", 1.0)
    for _ in range(4):
        await (await start(shells, "trap '' TERM; echo; while :; do sleep 0.05; done")).wait(5)
    began = room.monotonic()
    await shells.aclose()
    assert room.monotonic() - began < 4 * 1.0


@pytest.mark.integration
async def test_a_job_outlives_the_task_that_started_it(shells: Shells):
    async def turn() -> Job:
        return await start(shells, "sleep 60")

    task = asyncio.create_task(turn())
    job = await task
    await asyncio.sleep(0)
    assert job.ended is None


@pytest.mark.integration
async def test_the_number_of_jobs_is_bounded(shells: Shells, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(room, "MOST_RUNNING", 2)
    first = await start(shells, "sleep 60")
    await start(shells, "sleep 60")
    with pytest.raises(ToolError, match=r"2 jobs are running(.|\n)*job-1  running"):
        await start(shells, "sleep 60")
    await first.stop()
    assert (await start(shells, "sleep 60")).name == "job-3"


@pytest.mark.integration
async def test_ended_jobs_are_forgotten_in_time(shells: Shells, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(room, "MOST_ENDED", 2)
    for _ in range(4):
        await (await start(shells, "true")).wait(5)
    await start(shells, "sleep 60")
    assert [job.name for job in shells.jobs.all] == ["job-3", "job-4", "job-5"]


@pytest.mark.integration
async def test_a_job_that_is_not_there_is_named_with_those_that_are(shells: Shells):
    with pytest.raises(ToolError, match=r"no job 'job-9'\. The jobs are: none"):
        shells.jobs.find("job-9")
    job = await start(shells, "sleep 60")
    assert shells.jobs.find(" 1 ") is shells.jobs.find("job-1") is job


@pytest.mark.integration
async def test_the_listing_has_a_line_for_each(shells: Shells):
    assert shells.jobs.listing() == "There are no background jobs."
    await start(shells, "sleep 60;\n" + "x " * 100)
    line = shells.jobs.listing()
    assert in_no_time(line).startswith("job-1  running for 0:00  sleep 60; x x x")
    assert line.endswith(" x…")


def test_the_time_is_written_as_a_clock_so_that_waiting_is_no_repetition():
    from ybs.guards.loops import DURATION

    job = object.__new__(Job)
    job.ended, job._started = None, room.monotonic() - 3725
    assert job.state == "running for 62:05"
    assert DURATION().search(job.state) is None


OUTLIVED = """
import asyncio, os, sys
from pathlib import Path
from ybs.config.host import Host
from ybs.security.paths.roots import Roots
from ybs.tools.shell.output import OutputWindow
from ybs.tools.shell.process import Ended
from ybs.tools.shell.shells import Shells

async def main():
    shells = Shells(Roots(Host.of(os.environ), Path.cwd()))
    command = "setsid sh -c 'echo $$ > stray; exec sleep 60' & echo $$ > pid; sleep 60"
    await shells.jobs.start(command, Path.cwd(), most_chars=99, live=OutputWindow(print))
    while not all(Path(name).exists() and Path(name).read_text() for name in ("pid", "stray")):
        await asyncio.sleep(0.01)
    print("ready", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.integration
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="strays need /proc")
async def test_jobs_end_when_ybs_is_killed(project: Path):
    ybs = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OUTLIVED), stdout=subprocess.PIPE, cwd=project
    )
    assert ybs.stdout is not None
    assert await ybs.stdout.readline() == b"ready\n"
    pids = [int((project / name).read_text()) for name in ("pid", "stray")]
    assert all(is_alive(pid) for pid in pids)
    ybs.kill()
    await ybs.wait()
    for pid in pids:
        assert await ends(pid)


@pytest.mark.integration
async def test_the_line_of_a_job_cuts_no_word(shells: Shells):
    token = "ghp_" + "aB3dE5fG7hI9jK1l" + "M2nO4pQ6rS8tU0vWxYz1"
    await start(shells, f"sleep 9; curl -sS -H 'Authorization: token {token}' http://127.0.0.1:9/x")
    assert shells.jobs.listing().endswith("Authorization: token…")


@pytest.mark.integration
async def test_ended_commands_are_off_the_watchs_list(shells: Shells):
    read, write = os.pipe()
    watch = shells.watch
    kept, watch._pipe = watch._pipe, write
    job = await start(shells, "true")
    await job.wait(5)
    watch._pipe = kept
    os.close(write)
    began, ended = os.read(read, 100).decode().split()
    os.close(read)
    assert ended == f"-{began}"


@pytest.mark.integration
def test_all_jobs_are_gone_when_the_loop_ends_without_a_close(project: Path):
    shells = Shells(Roots(this_host(), project))
    pids: list[int] = []

    async def main() -> None:
        job = await start(shells, "echo $$; sleep 60")
        await job.wait(5)
        pids.append(int(job.output.stdout.text()))

    asyncio.run(main())
    shells.close_watch()
    assert asyncio.run(comes(lambda: not is_alive(pids[0])))


def test_jobs_are_made_once(project: Path):
    shells = Shells(Roots(this_host(), project))
    assert isinstance(shells.jobs, Jobs)
    assert shells.jobs is shells.jobs


class FakeShell:
    """A running command that ends when it is told to."""

    def __init__(self, outcome: Ended) -> None:
        self.started, self.ended, self.outcome = 100.0, asyncio.Event(), outcome
        self.ends = 0

    async def end(self) -> None:
        self.ends += 1
        self.ended.set()


async def ended_job(text: str = "x", needs: str | None = None, **how: Any) -> Job:
    shell: Any = FakeShell(Ended(**{"exit_code": 0, **how}))
    judge = None if needs is None else lambda *said: Need(f"{said}: {needs}") if needs else None
    job = Job("job-7", text, shell, CommandOutput(1000, streams=1), judge)
    await job.stop()
    return job


async def test_all_is_told_of_a_job_that_has_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(room, "monotonic", lambda: 101.23456)
    job = await ended_job(exit_code=1, left_running=True, needs="it wrote")
    job.output.add(0, b"\nsaid\n\n")
    state = "stopped after 0:01"
    needs = "(1, 'said'): it wrote"
    held = f"[nothing was changed: {needs}. Without `background` the person is asked]"
    assert job.told(2000) == ToolOutput(
        output=f"said\n[job-7 {state}]\n{room.LEFT_RUNNING}\n{held}",
        summary=f"job-7 {state}",
        display={
            "id": "job-7", "running": False, "exit_code": 1, "stdout": "said", "duration": 1.235,
        },
    )  # fmt: skip
    again = await ended_job(needs="")
    assert again.told(2000).output == f"[no new output]\n[job-7 {state}]"


@every_row(
    ("exit_code", "how"),
    [
        (0, "exit code 0"),
        (3, "exit code 3"),
        (-1, "signal SIGHUP (exit code -1)"),
        (-9, "signal SIGKILL (exit code -9)"),
        (-200, "exit code -200"),
    ],
)
def test_how_a_command_ended_is_said(exit_code: int, how: str):
    assert Ended(exit_code=exit_code).how == how
