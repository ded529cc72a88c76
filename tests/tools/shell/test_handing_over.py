"""A running command that the person sends to the background: nothing of it is lost, and it still ends with the session."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hosts import this_host
from processes import comes
from ybs.core.errors import ToolError
from ybs.core.ports import ToolOutput
from ybs.security.paths.roots import Roots
from ybs.tools.builtin.run_shell import OutsideArguments, RunShell, RunShellArguments
from ybs.tools.shell import jobs as room
from ybs.tools.shell import process
from ybs.tools.workspace import Workspace

pytestmark = pytest.mark.integration

WORK = "echo out; echo err >&2; while ! [ -e go ]; do sleep 0.01; done; echo more; exit 3"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.05)
    monkeypatch.setattr(process, "PIPE_SECONDS", 0.05)
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(room, "_LOOK_SECONDS", 0.01)


@pytest.fixture
async def workspace(project: Path) -> AsyncIterator[Workspace]:
    workspace = Workspace(Roots(this_host(), project))
    yield workspace
    await workspace.shells.aclose()


async def hand_over(
    workspace: Workspace, command: str, show: Callable[[str], None] = lambda _text: None
) -> ToolOutput:
    """Run a command and hand it over as soon as it has written both of its first lines."""
    seen: list[str] = []

    def see(text: str) -> None:
        seen.append(text)
        show(text)
        if {"out", "err"} <= set("".join(seen).split()):
            workspace.shells.send_to_background()

    return await RunShell(workspace).run(RunShellArguments(command=command), see)


async def test_what_it_wrote_comes_at_once_and_the_rest_from_the_job(workspace, project):
    told = await hand_over(workspace, WORK)
    assert told.output.startswith("out\nerr\n[job-1 running for 0:0")
    assert told.output.endswith("[the person sent it to the background as job-1, where it goes on]")
    assert not told.is_error
    assert workspace.shells.running_jobs == ("job-1",)
    (project / "go").touch()
    job = workspace.shells.jobs.find("job-1")
    await job.wait(5)
    assert job.told(2000).output.startswith("more\n[job-1 ended with exit code 3 after")


async def test_nothing_is_shown_of_it_any_more_as_the_output_of_the_call(workspace, project):
    shown: list[str] = []
    await hand_over(workspace, WORK, shown.append)
    (project / "go").touch()
    await workspace.shells.jobs.find("job-1").wait(5)
    assert "more" not in "".join(shown)


async def test_the_file_with_the_whole_of_a_long_output_is_named(workspace, home):
    told = await hand_over(workspace, f"seq 1 30000; {WORK}")
    file = Path(told.display["output_file"])
    assert str(file) in told.output
    assert file.is_relative_to(home)
    assert "29999\n30000\nout\n" in await asyncio.to_thread(file.read_text)
    assert "output_file" not in (await hand_over(workspace, WORK)).display


async def test_it_ends_with_the_session(workspace: Workspace, project: Path) -> None:
    await hand_over(workspace, "trap 'touch ended; exit' TERM; " + WORK)
    await workspace.shells.aclose()
    assert await comes(lambda: (project / "ended").exists())


async def test_nothing_happens_where_no_command_is_waited_for(workspace: Workspace) -> None:
    assert workspace.shells.send_to_background() == 0
    await RunShell(workspace).run(RunShellArguments(command="true"), lambda _text: None)
    assert workspace.shells.send_to_background() == 0
    assert workspace.shells.running_jobs == ()


async def test_a_command_outside_the_sandbox_stays_in_front(workspace, project) -> None:
    written: list[str] = []
    arguments = OutsideArguments(command=WORK, is_asked=True, why_loading=lambda: "any file")
    running = asyncio.create_task(RunShell(workspace).run(arguments, written.append))
    assert await comes(lambda: "out" in "".join(written))
    assert workspace.shells.send_to_background() == 0
    (project / "go").touch()
    assert (await running).display["exit_code"] == 3


async def test_a_command_stays_in_front_where_too_many_jobs_run(workspace, project, monkeypatch):
    monkeypatch.setattr(room, "MOST_RUNNING", 0)
    running = asyncio.create_task(RunShell(workspace).run(RunShellArguments(command=WORK), print))
    assert await comes(lambda: bool(workspace.shells.in_front))
    with pytest.raises(ToolError, match="jobs are running"):
        workspace.shells.send_to_background()
    (project / "go").touch()
    ended = await running
    assert ended.display["exit_code"] == 3


async def test_a_cancelled_command_is_ended_although_it_was_just_handed_over(workspace):
    running = asyncio.create_task(RunShell(workspace).run(RunShellArguments(command=WORK), print))
    assert await comes(lambda: bool(workspace.shells.in_front))
    workspace.shells.send_to_background()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert workspace.shells.running_jobs == ()
