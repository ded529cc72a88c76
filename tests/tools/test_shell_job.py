"""shell_job: reading, stopping and listing what run_shell left in the background."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from processes import ends, in_no_time
from ybs.tools.shell import jobs, process

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.05)
    monkeypatch.setattr(process, "PIPE_SECONDS", 0.05)
    monkeypatch.setattr(jobs, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(jobs, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr("ybs.tools.builtin.run_shell.FIRST_SECONDS", 0.1)


@pytest.fixture
async def running(make_bench: Any) -> AsyncIterator[Any]:
    bench = make_bench()
    command = "echo $$; while ! [ -e go ]; do sleep 0.01; done; echo done; exit 2"
    await bench.ok("run_shell", command=command, background=True)
    yield bench
    await bench.workspace.shells.aclose()


async def test_reading_gives_what_is_new_and_how_the_job_is_doing(running: Any):
    answered = await running.ok("shell_job", id="job-1", wait=0)
    assert in_no_time(answered.output) == "[no new output]\n[job-1 running for 0:00]"
    assert answered.display["stdout"] == ""
    (running.workspace.roots.folder / "go").touch()
    answered = await running.ok("shell_job", id="job-1")
    assert in_no_time(answered.output) == "done\n[job-1 ended with exit code 2 after 0:00]"
    assert in_no_time(answered.result.summary) == "job-1 ended with exit code 2 after 0:00"
    display = answered.display
    assert display.pop("duration") > 0
    assert display == {"id": "job-1", "running": False, "exit_code": 2, "stdout": "done"}


async def test_stopping_ends_the_job(make_bench: Any):
    bench = make_bench()
    started = await bench.ok("run_shell", command="echo $$; sleep 60", background=True)
    answered = await bench.ok("shell_job", id="job-1", action="stop")
    assert "[job-1 stopped after 0:0" in answered.output
    assert await ends(int(started.output.split()[0]))


async def test_listing_names_them_all(running: Any):
    answered = await running.ok("shell_job", action="list")
    assert in_no_time(answered.output).startswith("job-1  running for 0:00  echo $$; while")
    assert answered.result.summary == "1 job"


async def test_a_single_job_needs_no_name_and_a_number_will_do(running: Any):
    assert "[job-1 running" in (await running.ok("shell_job", wait=0)).output
    assert "[job-1 running" in (await running.ok("shell_job", id="1", wait=0)).output
    assert "[job-1 running" in (await running.ok("shell_job", id=1, wait=-5)).output


async def test_a_job_that_is_not_there_is_an_error(bench: Any, running: Any):
    assert "There is no job 'job-7'. The jobs are: job-1" in await running.fails(
        "shell_job", id="job-7"
    )
    assert "Name the job in `id`.\nThere are no" in await bench.fails("shell_job", wait=0)


async def test_nobody_is_asked_not_even_where_nothing_may_run(make_bench: Any):
    for mode in ("ask", "plan", "deny"):
        answered = await make_bench(mode=mode).call("shell_job", action="list")
        assert answered.output == "There are no background jobs."


@pytest.mark.parametrize("asked", [1, 10**9])
async def test_waiting_is_bounded(running: Any, monkeypatch: pytest.MonkeyPatch, asked: int):
    seen: list[float] = []

    async def wait(_job: jobs.Job, seconds: float) -> None:
        seen.append(seconds)

    monkeypatch.setattr(jobs.Job, "wait", wait)
    await running.ok("shell_job", id="job-1", wait=asked)
    assert seen == [min(asked, 120)]


async def test_reading_side_by_side_loses_and_repeats_nothing(make_bench: Any):
    bench = make_bench(max_output_chars=100_000)
    command = "for n in $(seq 3000); do echo $n; done; sleep 60"
    told = [(await bench.ok("run_shell", command=command, background=True)).output]
    while "3000\n" not in "".join(told):
        reads = [bench.ok("shell_job", id="job-1", wait=wait) for wait in (0, 1, 2)]
        told += [answered.output for answered in await asyncio.gather(*reads)]
    await bench.workspace.shells.aclose()
    numbers = [line for text in told for line in text.splitlines() if line.isdecimal()]
    assert sorted(map(int, numbers)) == list(range(1, 3001))
