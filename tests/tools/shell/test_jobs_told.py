"""What is told of background jobs, and which of them are remembered, without a process."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hosts import this_host
from rows import every_row
from ybs.core.errors import ToolError
from ybs.core.ports import ToolOutput
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.attempts import Attempts
from ybs.security.sandbox.launch import Need
from ybs.tools.shell import jobs as room
from ybs.tools.shell.jobs import Job
from ybs.tools.shell.output import Live, Output
from ybs.tools.shell.overflow import Outputs, Spill
from ybs.tools.shell.process import Command, Ended
from ybs.tools.shell.shells import Shells


@pytest.fixture
async def shells(project: Path) -> AsyncIterator[Shells]:
    shells = Shells(Roots(this_host(), project))
    yield shells
    await shells.aclose()


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
    job = Job("job-7", text, shell, Output(1000, streams=1), judge)
    await job.stop()
    return job


@pytest.mark.parametrize(
    ("seconds", "clock"), [(0, "0:00"), (9.9, "0:09"), (59, "0:59"), (60, "1:00"), (3661, "61:01")]
)
async def test_how_long_it_runs_is_told_as_a_clock(
    monkeypatch: pytest.MonkeyPatch, seconds: float, clock: str
):
    monkeypatch.setattr(room, "monotonic", lambda: 100.0 + seconds)
    shell: Any = FakeShell(Ended(exit_code=3))
    job = Job("job-7", "make   all", shell, Output(1000, streams=1))
    assert job.line == f"job-7  running for {clock}  make all"
    shell.ended.set()
    await asyncio.wait((job._task,))
    monkeypatch.setattr(room, "monotonic", lambda: 9999.0)  # it counts no more
    assert job.state == f"ended with exit code 3 after {clock}"
    assert job.seconds == pytest.approx(seconds)


@pytest.mark.parametrize(("length", "shown"), [(80, "x" * 80), (81, "x" * 80 + "...")])
async def test_a_long_command_is_cut_in_the_list(length: int, shown: str):
    assert (await ended_job("x" * length)).line.endswith(f"  {shown}")


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


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_cut_output_is_told_with_where_the_whole_is(project: Path, keeps: bool):
    job = await ended_job()
    outputs = Outputs(Roots(this_host(), project)) if keeps else None
    job.output.spill = Spill(outputs, 5)
    job.output.add(0, b"line\n" * 300)
    told = job.told(802)
    note = job.output.spill.note()
    text = "l\n[... 1,498 bytes (299 lines) left out ...]"
    assert told.output == f"{text}\n{note}\n[job-7 {job.state}]"
    assert isinstance(told.display, dict)
    assert told.display.get("output_file") == (str(job.output.spill.path) if keeps else None)


async def test_one_that_has_ended_is_not_ended_again():
    shell: Any = FakeShell(Ended(exit_code=0))
    job = Job("job-7", "x", shell, Output(1000, streams=1))
    await job.stop()
    ends = shell.ends
    await job.stop()
    assert (job.state.split(" ")[0], shell.ends) == ("stopped", ends)


@every_row(
    ("said_at", "least", "most"),
    [
        ((0.0,), 1.0, 1.5),  # until it pauses
        ((0.0, 0.8, 1.6), 2.6, 3.2),
        ((3.0,), 4.0, 4.6),  # a pause before the first word is none
        ((), 5.0, 5.5),
    ],
)
async def test_a_job_is_waited_for_until_it_pauses_or_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, said_at: tuple[float, ...], least: float, most: float
):
    shell: Any = FakeShell(Ended(exit_code=0))
    job = Job("job-7", "x", shell, Output(1000, streams=1))
    now, left = 0.0, list(said_at)

    def clock() -> float:
        nonlocal now
        now += 0.1
        while left and left[0] < now:
            left.pop(0)
            job.output.add(0, b"word")
        return now

    monkeypatch.setattr(room, "monotonic", clock)
    monkeypatch.setattr(room, "_LOOK_SECONDS", 0)
    await job.wait(5)
    assert least <= now <= most
    await job.stop()


async def test_both_streams_of_a_job_go_one_way(
    shells: Shells, project: Path, monkeypatch: pytest.MonkeyPatch
):
    begun: list[Command] = []

    def start(command: Command) -> FakeShell:
        begun.append(command)
        return FakeShell(Ended(exit_code=0))

    monkeypatch.setattr(room.Shell, "start", start)
    watch: Any = SimpleNamespace(close=lambda: None)
    shells._watch = watch
    live = Live(lambda _text: None)
    job = shells.jobs.start("x", project, most_chars=1000, live=live)
    (command,) = begun
    assert (command.streams, command.folder, command.watch, command.live) == (
        1,
        project,
        watch,
        live,
    )
    assert command.output.stdout is command.output.stderr
    assert command.output.spill is not None
    assert command.output.spill._room == 200
    await job.stop()


async def test_what_runs_tells_no_exit_code():
    shell: Any = FakeShell(Ended(exit_code=0, left_running=True))
    job = Job("job-7", "x", shell, Output(1000, streams=1), lambda *_: Need("no"))
    told = job.told(2000)
    assert isinstance(told.display, dict)
    assert (told.display["running"], told.display["exit_code"]) == (True, None)
    assert told.output.startswith("[no new output]\n[job-7 running for ")
    assert told.output.count("\n") == 1
    job.output.add(0, b"a\xc3")
    assert job.told(2000).output.startswith("a\n"), "the other half of a character may come"
    await job.stop()
    assert job.told(2000).output.startswith("\ufffd\n")


async def test_the_oldest_that_have_ended_are_forgotten(
    shells: Shells, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(room, "MOST_ENDED", 2)
    jobs = shells.jobs
    running: Any = FakeShell(Ended(exit_code=0))
    first = jobs.adopt("runs", running, Output(10))
    assert first._need is None
    for _ in range(4):
        shell: Any = FakeShell(Ended(exit_code=0))
        await jobs.adopt("x", shell, Output(10)).stop()
    assert [job.name for job in jobs.all] == ["job-1", "job-3", "job-4", "job-5"]
    shell = FakeShell(Ended(exit_code=0))
    attempts = Attempts(())
    last = jobs.adopt("x", shell, Output(10), attempts)
    assert last._need is not None
    assert last._need.args == (attempts,)
    assert [job.name for job in jobs.all] == ["job-1", "job-4", "job-5", "job-6"]
    assert jobs.running == (first, last)
    assert [jobs.find(name).name for name in ("job-4", "4", " 5\n")] == ["job-4", "job-4", "job-5"]
    with pytest.raises(ToolError) as caught:
        jobs.find("9" * 50)
    said = f"There is no job {'9' * 40!r}. The jobs are: job-1, job-4, job-5, job-6"
    assert str(caught.value) == said
    jobs.forget(jobs.find("4"))
    assert jobs.listing().count("\n") == 2
    monkeypatch.setattr(room, "MOST_RUNNING", 2)
    with pytest.raises(ToolError, match="2 jobs are running"):
        jobs.check()
    monkeypatch.setattr(room, "MOST_RUNNING", 3)
    jobs.check()


@every_row(("most_chars", "expected"), [(1000, 200), (803, 3), (802, 2), (801, 2), (0, 2)])
def test_notes_have_room_beside_the_output(most_chars: int, expected: int):
    assert room._room(most_chars) == expected


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
