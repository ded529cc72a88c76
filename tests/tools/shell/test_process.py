"""The process under run_shell: its start, its end, and what it leaves."""

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from errno import EAGAIN
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hosts import this_host
from processes import comes, ends, is_alive, open_descriptors
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.launch import Access, Launch
from ybs.security.sandbox.launch import Starter as Bare
from ybs.tools.shell import orphans, process
from ybs.tools.shell import process as room
from ybs.tools.shell.output import CommandOutput, OutputWindow
from ybs.tools.shell.process import Ended, Pump, Shell, ShellCommand, run_command
from ybs.tools.shell.shells import Shells


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.05)
    monkeypatch.setattr(process, "PIPE_SECONDS", 0.05)


class Place:
    """Where commands run, and what came of the last one."""

    def __init__(self, project: Path) -> None:
        self.folder = project
        self.shells = Shells(Roots(this_host(), project))
        self.output = CommandOutput(1000)

    def command(self, text: str, live: Callable[[str], None] | None = None) -> ShellCommand:
        launch, mark = self.shells.prepare(text, self.folder)
        self.output = CommandOutput(1000)
        return ShellCommand(
            launch=launch,
            folder=self.folder,
            mark=mark,
            output=self.output,
            watch=self.shells.watch,
            live=OutputWindow(live) if live else None,
        )

    async def run(self, text: str, seconds: float = 8) -> Ended:
        return await run_command(self.command(text), seconds)

    @property
    def stdout(self) -> str:
        return self.output.stdout.text()


@pytest.fixture
def place(project: Path) -> Iterator[Place]:
    place = Place(project)
    assert place.shells.watch is not None  # its pipe is open before descriptors are counted
    yield place
    place.shells.close_watch()


@pytest.mark.integration
async def test_s18_a_command_that_ignores_the_polite_signal_is_killed_with_its_group(place: Place):
    ended = await place.run(
        "trap '' TERM; sh -c \"trap '' TERM; sleep 60\" & echo $! $$; wait", seconds=0.3
    )
    assert ended == Ended(exit_code=-signal.SIGKILL, timed_out=True)
    for pid in place.stdout.split():
        assert await ends(int(pid))


DAEMON = (
    "import os, sys, time\n"
    "if os.fork(): sys.exit()\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "open('pid', 'w').write(str(os.getpid()))\n"
    "for d in range(3): os.close(d)\n"
    "time.sleep(60)\n"
)
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="strays are only found through /proc"
)


@pytest.mark.integration
@needs_proc
async def test_a_process_that_left_the_group_and_lost_its_parent_ends_with_the_call(place: Place):
    (place.folder / "daemon.py").write_text(DAEMON)
    ended = await place.run(
        f"{sys.executable} -S daemon.py; while ! [ -s pid ]; do sleep 0.01; done"
    )
    assert ended.left_running
    assert await ends(int((place.folder / "pid").read_text()))


@pytest.mark.slow
@needs_proc
async def test_a_process_that_left_the_group_ends_when_the_time_is_over(place: Place):
    ended = await place.run("setsid sh -c 'echo $$; sleep 60; echo' & wait", seconds=0.3)
    assert ended.timed_out
    assert await ends(int(place.stdout))


@pytest.mark.integration
@needs_proc
async def test_only_the_calls_own_strays_end(place: Place):
    bystander = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    try:
        assert not (await place.run("true")).left_running
        assert is_alive(bystander.pid)
    finally:
        bystander.kill()
        await bystander.wait()


@pytest.mark.integration
async def test_a_command_inside_another_ybs_is_found_by_both(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RUN_BY_YBS", "ybs-outer.1;")
    place = Place(project)
    await place.run("echo $RUN_BY_YBS")
    place.shells.close_watch()
    assert place.stdout.startswith("ybs-outer.1;ybs-")


@pytest.mark.integration
async def test_what_holds_the_output_open_does_not_hold_the_call(place: Place):
    ended = await place.run("sleep 60 & echo $!; exit 3")
    assert ended == Ended(exit_code=3, left_running=True)
    assert await ends(int(place.stdout))


@pytest.mark.integration
async def test_there_is_no_terminal_to_read_from(place: Place):
    started = time.monotonic()
    assert (await place.run("read x < /dev/tty")).exit_code > 0
    assert (await place.run("cat; read x")).exit_code > 0
    assert time.monotonic() - started < 5


@pytest.mark.integration
async def test_cancelling_ends_the_command_and_passes(place: Place):
    started = asyncio.Event()
    command = place.command("echo $$; sleep 60", lambda text: started.set())
    task = asyncio.create_task(run_command(command, 60))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await ends(int(place.stdout))


@pytest.mark.integration
def test_cancelled_again_and_again_nothing_is_left_when_the_loop_ends(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(process, "GRACE_SECONDS", 60)

    async def main(number: int) -> None:
        started = asyncio.Event()
        command = place.command(
            "trap '' TERM; sh -c \"trap '' TERM; sleep 60\" & echo $! $$; wait; wait",
            lambda text: started.set(),
        )
        task = asyncio.create_task(run_command(command, 60))
        await started.wait()
        for _ in range(number + 1):  # at different steps of the end
            task.cancel()
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    pids: list[int] = []
    for number in range(4):
        asyncio.run(main(number))
        pids += [int(pid) for pid in place.stdout.split()]
    gc.collect()  # what was not waited for would warn now, which is an error here
    assert len(pids) == 8
    for pid in pids:
        assert asyncio.run(ends(pid))


@pytest.mark.integration
async def test_output_is_shown_piece_by_piece_before_the_end(place: Place):
    shown: list[str] = []
    first = asyncio.Event()

    def show(text: str) -> None:
        shown.append(text)
        first.set()

    task = asyncio.create_task(
        run_command(
            place.command("echo a; while ! [ -e go ]; do sleep 0.01; done; echo b", show), 8
        )
    )
    await first.wait()
    assert shown == ["a\n"]
    (place.folder / "go").touch()
    await task
    assert "".join(shown) == "a\nb\n"


@pytest.mark.integration
async def test_the_last_lines_of_a_flood_are_shown_although_nothing_more_comes(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ybs.tools.shell.output.LIVE_CHARS", 10)
    monkeypatch.setattr("ybs.tools.shell.output.LOOK_SECONDS", 0.05)
    monkeypatch.setattr(process, "LOOK_SECONDS", 0.05)
    last = asyncio.Event()

    def show(text: str) -> None:
        if "linking" in text:
            last.set()

    command = place.command("seq 1000; echo linking; while ! [ -e go ]; do sleep 0.01; done", show)
    task = asyncio.create_task(run_command(command, 8))
    await last.wait()
    (place.folder / "go").touch()
    await task


@pytest.mark.integration
async def test_bytes_that_are_no_text_and_characters_cut_in_two_are_survived(place: Place):
    shown: list[str] = []
    command = place.command(r"printf '\303'; sleep 0.02; printf '\274\377'", shown.append)
    await run_command(command, 8)
    assert place.stdout == "".join(shown) == "ü\ufffd"


@pytest.mark.integration
async def test_a_reader_woken_for_nothing_goes_on(place: Place, monkeypatch: pytest.MonkeyPatch):
    read = os.read
    calls: list[int] = []

    def sometimes(descriptor: int, size: int) -> bytes:
        calls.append(descriptor)
        if len(calls) == 1:
            raise BlockingIOError
        return read(descriptor, size)

    monkeypatch.setattr(process, "_read_some", sometimes)
    await place.run("echo x")
    assert place.stdout == "x\n"
    assert len(calls) > 1


@pytest.mark.slow
async def test_endless_output_neither_fills_memory_nor_outlives_its_time(place: Place):
    ended = await place.run("cat /dev/zero", seconds=0.3)
    assert ended.timed_out
    assert place.output.stdout.size > 1_000_000
    assert len(place.stdout) < 1200


def no_process(*args: Any, **options: Any) -> None:
    raise OSError(11, "Resource temporarily unavailable")


@pytest.mark.integration
async def test_a_shell_that_cannot_start_leaves_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    before = open_descriptors()
    monkeypatch.setattr("subprocess.Popen", no_process)
    with pytest.raises(OSError, match="temporarily"):
        await place.run("true")
    assert open_descriptors() == before


@pytest.mark.integration
@pytest.mark.parametrize("number", [0, 1])
async def test_a_shell_that_nobody_can_wait_for_is_ended(
    place: Place, monkeypatch: pytest.MonkeyPatch, number: int
):
    before = open_descriptors()
    start = threading.Thread.start
    threads: list[threading.Thread] = []

    def sometimes(thread: threading.Thread) -> None:
        threads.append(thread)
        if len(threads) > number:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", sometimes)
    with pytest.raises(OSError, match="temporarily"):
        await place.run("sleep 60")
    assert await comes(lambda: open_descriptors() == before)


@pytest.mark.integration
async def test_a_shell_that_cannot_be_looked_at_is_waited_for(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(process, "_CAN_LOOK", False)
    assert (await place.run("echo x; exit 3")).exit_code == 3
    assert place.stdout == "x\n"
    assert (await place.run("trap '' TERM; sleep 60; sleep 60", seconds=0.1)).exit_code == -9


@pytest.mark.integration
async def test_a_look_for_strays_that_fails_does_not_hold_the_call(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    def fails(*_: object) -> None:
        raise OSError

    told = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: told.set())
    monkeypatch.setattr(orphans, "_candidates", fails)
    assert (await place.run("exit 3")).exit_code == 3
    assert await asyncio.to_thread(told.wait, 5)  # else it is told of in another test


@pytest.mark.integration
async def test_no_descriptor_is_left_behind(place: Place):
    before = open_descriptors()
    for text in ("true", "echo x", "sleep 60 &"):
        await place.run(text)
    assert open_descriptors() == before


@pytest.mark.integration
async def test_what_a_sandbox_says_is_what_starts(place: Place):
    reading_end, writing_end = os.pipe()

    class Sandboxed(Bare):
        def start(self, command: Any, folder: Path, environ: Any, access: Any) -> Launch:
            os.write(writing_end, b"through the pipe\n")
            return Launch(
                ("/bin/sh", "-c", f"echo wrapped; cat /dev/fd/{reading_end}; {command[-1]}"),
                {**environ, "IN_SANDBOX": "1"},
                (reading_end, writing_end),
                lambda: os.close(writing_end),
            )

    place.shells.starter = Sandboxed()
    await place.run("echo $IN_SANDBOX; pwd")
    assert place.stdout == f"wrapped\nthrough the pipe\n1\n{place.folder}\n"
    for descriptor in (reading_end, writing_end):
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(descriptor)


@pytest.mark.slow
async def test_a_disk_that_is_slow_loses_nothing(place: Place, monkeypatch: pytest.MonkeyPatch):
    command = place.command("seq 20000; sleep 0.1; echo last")
    add = place.output.add

    def slowly(stream: int, data: bytes) -> None:
        time.sleep(0.12)
        add(stream, data)

    monkeypatch.setattr(place.output, "add", slowly)
    assert await run_command(command, 8) == Ended(exit_code=0)
    assert place.output.stdout.size == 108_894 + 5
    assert place.stdout.endswith("last\n")


@pytest.mark.integration
async def test_what_goes_on_writing_in_the_background_does_not_hold_the_call(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(process, "_MOST_WAITS", 2)
    ended = await place.run("yes & exit 0")
    assert ended.left_running


@pytest.mark.integration
async def test_a_buried_shell_is_signalled_no_more(place: Place, monkeypatch: pytest.MonkeyPatch):
    shell = await Shell.start(place.command("true"))
    await shell.ended.wait()
    await shell.end()
    sent: list[int] = []
    monkeypatch.setattr(process, "signal_group", lambda group, number: sent.append(number))
    await shell.end()
    assert sent == []


async def test_what_was_written_before_reading_was_stopped_is_kept():
    output = CommandOutput(100, streams=1)
    pipes = process.Pump(output, None, streams=1)
    holder = os.dup(pipes.writing_ends[0])
    os.write(holder, b"late")
    pipes.stop()
    pipes.listen()
    await pipes.ended.wait()
    os.close(holder)
    assert output.stdout.text() == "late"


async def test_one_that_is_abandoned_leaves_nothing_open():
    before = open_descriptors()
    for streams in (1, 2):
        pump = Pump(CommandOutput(10), None, streams=streams)
        assert list(pump._reading_ends.values()) == list(range(streams))
        assert len(pump.writing_ends) == streams
        assert not any(os.get_blocking(each) for each in pump._reading_ends)
        pump.stop()
        pump.stop()
        pump.abandon()
        assert (pump.writing_ends, pump._reading_ends) == ([], {})
    assert open_descriptors() == before


async def test_without_a_thread_nothing_is_read(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no more threads")

    before = open_descriptors()
    monkeypatch.setattr(room.threading, "Thread", refuse)
    pump = Pump(CommandOutput(10), None, streams=1)
    with pytest.raises(OSError, match=os.strerror(EAGAIN)) as caught:
        pump.listen()
    assert caught.value.errno == EAGAIN
    pump.abandon()
    assert open_descriptors() == before


@pytest.fixture
def roots(project: Path) -> Roots:
    return Roots(this_host(), project)


class Starter(Bare):
    """Says what it was asked for."""

    def start(
        self, command: Sequence[str], folder: Path, environ: Mapping[str, str], access: Access
    ) -> Launch:
        """Return the question."""
        return Launch((*command, str(folder), str(access)), environ)


def test_one_for_another_agent_starts_alike_and_is_told_of(roots: Roots) -> None:
    shells = Shells(roots, starter=Starter(), keeps_outputs=False)
    others = [shells.apart(), shells.apart().apart()]
    for number, each in enumerate(others):
        assert (each.starter, each.outputs) == (shells.starter, shells.outputs)
        assert not each.keeps_outputs
        jobs: Any = SimpleNamespace(running=[SimpleNamespace(name=f"job-{number}")])
        each._jobs = jobs
    assert sorted(shells.running_jobs) == sorted(others[0].running_jobs) == ["job-0", "job-1"]


@pytest.mark.integration
async def test_the_input_of_a_command_is_closed_once_it_has_begun_or_cannot(
    roots: Roots, project: Path
) -> None:
    shells = Shells(roots)
    (project / "in").write_text("given\n")
    for folder, name in ((project, "in"), (project, None), (project / "gone", "in")):
        output = CommandOutput(100)
        given = None if name is None else (project / name).open("rb")
        launch, mark = shells.prepare("cat", project)
        command = ShellCommand(
            launch=launch, folder=folder, mark=mark, output=output, watch=shells.watch, given=given
        )
        if folder == project:
            assert await run_command(command, 8) == Ended(exit_code=0)
            assert output.stdout.text() == ("given\n" if given else "")
        else:
            with pytest.raises(FileNotFoundError):
                await run_command(command, 8)
        assert given is None or given.closed
    shells.close_watch()
