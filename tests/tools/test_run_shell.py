"""run_shell, and the process under it."""

import asyncio
import gc
import os
import signal
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from ybs.config.schema import BuiltinTool, Config, Tools
from ybs.core.events import ToolPrinted
from ybs.core.ports import Answer, Question
from ybs.tools import process
from ybs.tools.process import Ended, Kept, environment, run_command


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.05)
    monkeypatch.setattr(process, "PIPE_SECONDS", 0.05)


async def ran(project: Path, command: str, *, seconds: float = 8, most_chars: int = 1000) -> Ended:
    return await run_command(
        command,
        folder=project,
        environ=os.environ,
        timeout_seconds=seconds,
        most_chars=most_chars,
        print_live=lambda text: None,
    )


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


async def ends(pid: int) -> bool:
    """Tell whether the process is gone, or goes within a moment: a signal needs one to arrive."""
    for _ in range(300):
        if not is_alive(pid):
            return True
        await asyncio.sleep(0.01)
    return False


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_a_command_gives_both_outputs_and_its_exit_code(bench: Any):
    answered = await bench.call("run_shell", command="echo out; echo err >&2; exit 3")
    assert answered.result.is_error
    assert answered.output.startswith("out\n[stderr]\nerr\n[exit code 3, ")
    display = answered.display
    assert 0 <= display.pop("duration") < 8
    assert display == {"exit_code": 3, "stdout": "out\n", "stderr": "err\n", "timed_out": False}
    assert answered.result.summary == "exit code 3"


async def test_a_success_is_no_error_and_stderr_alone_needs_no_heading(bench: Any):
    answered = await bench.ok("run_shell", command="echo err >&2")
    assert answered.output.startswith("err\n[exit code 0")
    assert (await bench.ok("run_shell", command="true")).output.startswith("[exit code 0")


async def test_output_is_shown_as_it_comes(bench: Any):
    answered = await bench.ok("run_shell", command="echo grün")
    assert (
        "".join(event.text for event in answered.events if isinstance(event, ToolPrinted))
        == "grün\n"
    )


async def test_commands_run_in_the_project_or_the_folder_given(bench: Any, project: Path):
    (project / "sub").mkdir()
    for name in ("working_dir", "working_directory"):
        answered = await bench.ok("run_shell", command="pwd", **{name: "sub"})
        assert answered.display["stdout"] == f"{project}/sub\n"
    assert (await bench.ok("run_shell", command="pwd")).display["stdout"] == f"{project}\n"
    assert "--add-dir" in await bench.fails("run_shell", command="pwd", working_dir="..")
    assert "is no folder" in await bench.fails("run_shell", command="pwd", working_dir="none")


@pytest.mark.parametrize(
    ("command", "words"), [("", "empty"), ("a\0b", "NUL"), ("x" * 40_000, "too long")]
)
async def test_what_is_no_command_is_an_error(bench: Any, command: str, words: str):
    assert words in await bench.fails("run_shell", command=command)


async def test_s17_there_is_no_input_and_no_terminal(bench: Any):
    answered = await bench.call("run_shell", command="cat; read x || echo end; : < /dev/tty")
    assert answered.display["stdout"] == "end\n"
    assert answered.display["exit_code"] != 0


async def test_e01_e05_secrets_and_what_runs_first_are_not_in_the_environment(
    bench: Any, monkeypatch: pytest.MonkeyPatch
):
    dropped = (
        *(
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "MY_SECRET",
            "DB_PASSWORD",
            "SSH_AUTH_SOCK",
            "AWS_CREDENTIALS",
        ),
        *("YBS_HOME", "BASH_ENV", "LD_PRELOAD", "NODE_OPTIONS", "GIT_SSH_COMMAND", "openai_key"),
    )
    for name in dropped:
        monkeypatch.setenv(name, "/nonexistent-canary")
    monkeypatch.setenv("HARMLESS", "here")
    output = (await bench.ok("run_shell", command="env")).display["stdout"]
    assert "canary" not in output
    lines = output.splitlines()
    for line in (
        "HARMLESS=here",
        "PAGER=cat",
        "GIT_PAGER=cat",
        "TERM=dumb",
        "NO_COLOR=1",
        "GIT_TERMINAL_PROMPT=0",
    ):
        assert line in lines


def test_the_environment_is_filtered_by_name():
    assert environment({"PATH": "/bin", "X_KEY": "k", "PERL5OPT": "x"}).keys() == {
        *("PATH", "PAGER", "GIT_PAGER", "TERM", "NO_COLOR", "GIT_TERMINAL_PROMPT"),
    }


async def test_s18_a_command_that_ignores_the_polite_signal_is_killed_with_its_group(project: Path):
    ended = await ran(
        project, "trap '' TERM; sh -c \"trap '' TERM; sleep 60\" & echo $! $$; wait", seconds=0.3
    )
    assert ended.timed_out
    assert ended.exit_code == -signal.SIGKILL
    for pid in ended.stdout.text().split():
        assert await ends(int(pid))


async def test_a_command_out_of_time_says_so_and_keeps_its_output(make_bench: Any):
    bench = make_bench(
        config=Config(tools=Tools(builtin={"run_shell": BuiltinTool(timeout_seconds=1)}))
    )
    answered = await bench.call("run_shell", command="echo begun; sleep 60")
    assert answered.result.is_error
    assert answered.display["timed_out"]
    assert (
        answered.output
        == "begun\n[stopped after the time limit of 1 s; its output so far is above]"
    )
    assert answered.result.summary.startswith("timed out after 1 s")


@pytest.mark.parametrize(
    ("configured", "asked", "expected"),
    [
        (None, {}, 60),
        (30, {}, 30),
        (30, {"timeout": 90}, 90),
        (30, {"timeout_seconds": 90}, 90),
        (30, {"timeout": 9999}, 600),
        (9999, {}, 600),
        (30, {"timeout": 0}, 30),
        (30, {"timeout": -5}, 30),
    ],
)
async def test_the_time_is_the_configured_or_the_asked_one_within_bounds(
    make_bench: Any,
    monkeypatch: pytest.MonkeyPatch,
    configured: int | None,
    asked: dict[str, int],
    expected: int,
):
    seen: list[float] = []

    async def run(command: str, *, timeout_seconds: float, **options: Any) -> Ended:
        seen.append(timeout_seconds)
        return Ended(exit_code=0, stdout=Kept(10), stderr=Kept(10))

    monkeypatch.setattr(process, "run_command", run)
    config = Config(tools=Tools(builtin={"run_shell": BuiltinTool(timeout_seconds=configured)}))
    await make_bench(config=config).ok("run_shell", command="true", **asked)
    assert seen == [expected]


async def test_s15_what_is_left_in_the_background_ends_with_the_call(bench: Any):
    answered = await bench.ok("run_shell", command="sleep 60 & echo $!")
    assert await ends(int(answered.display["stdout"]))
    assert "left in the background were ended" in answered.output
    quiet = await bench.ok("run_shell", command="sleep 60 >/dev/null 2>&1 & echo $!")
    assert await ends(int(quiet.display["stdout"]))


async def test_a_process_that_left_the_group_does_not_hold_the_call(project: Path):
    ended = await ran(project, "setsid sleep 60 & echo $!; exit 0")
    pid = int(ended.stdout.text())
    assert ended.left_running
    if is_alive(pid):
        os.kill(pid, signal.SIGKILL)  # only a sandbox can hold it


async def test_cancelling_ends_the_command_and_passes(project: Path, bench: Any):
    started = asyncio.Event()
    pids: list[int] = []

    def live(text: str) -> None:
        pids.append(int(text))
        started.set()

    task = asyncio.create_task(
        run_command(
            "echo $$; sleep 60",
            folder=project,
            environ=os.environ,
            timeout_seconds=60,
            most_chars=1000,
            print_live=live,
        )
    )
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await ends(pids[0])


async def test_a_second_cancel_does_not_leave_the_command_alive(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(process, "GRACE_SECONDS", 60)
    started = asyncio.Event()
    pids: list[int] = []

    def live(text: str) -> None:
        pids.append(int(text))
        started.set()

    command = run_command(
        "trap '' TERM; echo $$; while :; do sleep 0.05; done",
        folder=project,
        environ=os.environ,
        timeout_seconds=60,
        most_chars=1000,
        print_live=live,
    )
    task = asyncio.create_task(command)
    await started.wait()
    task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await ends(pids[0])


async def test_s16_endless_output_is_kept_within_bounds(project: Path):
    tracemalloc.start()
    try:
        ended = await ran(
            project, "yes 0123456789 | head -c 30000000; echo; echo last", most_chars=1000
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    text = ended.stdout.text()
    assert peak < 5_000_000
    assert text.startswith("0123456789\n0123456789")
    assert text.endswith("last\n")
    assert "[... 29,999,00" in text
    assert len(text) < 1200


async def test_a_long_output_is_cut_with_head_tail_and_true_numbers(make_bench: Any):
    answered = await make_bench(max_output_chars=2000).ok(
        "run_shell", command="seq 10000; seq 5 >&2"
    )
    lines = answered.output.splitlines()
    assert len(answered.output) <= 2000
    assert (lines[0], lines[-2]) == ("1", "5")
    assert "[stderr]" in lines
    note = next(line for line in lines if line.startswith("[..."))
    kept = sum(len(line) + 1 for line in lines[: lines.index("[stderr]")] if line != note)
    missing = int(note.split()[1].replace(",", ""))
    assert abs(48_894 - kept - missing) <= 2


async def test_two_long_outputs_share_the_room(make_bench: Any):
    bench = make_bench(max_output_chars=2000)
    output = (await bench.ok("run_shell", command="seq 10000; seq 10000 >&2")).output
    out, err = output.split("[stderr]")
    assert len(output) <= 2000
    assert min(len(out), len(err)) > 600


async def test_what_a_terminal_would_have_overwritten_is_left_out(bench: Any):
    command = r"printf '10%%\r50%%\r100%%\n\033[31mred\033[0m\r\nlast\r'"
    assert (await bench.ok("run_shell", command=command)).output.startswith(
        "100%\nred\nlast\n[exit"
    )


async def test_line_ends_with_more_than_one_return_lose_nothing(bench: Any):
    command = r"printf 'hello\r\r\nworld\r\r\n'"
    assert (await bench.ok("run_shell", command=command)).output.startswith("hello\nworld\n[exit")


async def test_the_screen_gets_no_more_than_its_share(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(process, "LIVE_CHARS", 100)
    shown: list[str] = []
    await run_command(
        "yes | head -c 100000",
        folder=project,
        environ=os.environ,
        timeout_seconds=8,
        most_chars=100,
        print_live=shown.append,
    )
    text = "".join(shown)
    assert text == "y\n" * 50 + "\n[no more of this output is shown here]\n"


async def test_bytes_that_are_no_text_and_characters_cut_in_two_are_survived(project: Path):
    ended = await ran(project, r"printf '\303'; sleep 0.02; printf '\274\377'")
    assert ended.stdout.text() == "ü\ufffd"


async def test_a_reader_woken_for_nothing_goes_on(project: Path, monkeypatch: pytest.MonkeyPatch):
    read = os.read
    calls: list[int] = []

    def sometimes(descriptor: int, size: int) -> bytes:
        calls.append(descriptor)
        if len(calls) == 1:
            raise BlockingIOError
        return read(descriptor, size)

    monkeypatch.setattr(process, "_read_some", sometimes)
    assert (await ran(project, "echo x")).stdout.text() == "x\n"
    assert len(calls) > 1


async def test_a_shell_that_cannot_start_is_an_error(bench: Any, monkeypatch: pytest.MonkeyPatch):
    def broken(*args: Any, **options: Any) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    before = open_descriptors()
    monkeypatch.setattr(process, "Popen", broken)
    assert "Resource temporarily unavailable" in await bench.fails("run_shell", command="true")
    assert open_descriptors() == before


async def test_a_shell_that_nobody_can_wait_for_is_ended(
    bench: Any, monkeypatch: pytest.MonkeyPatch
):
    def broken(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    before = open_descriptors()
    monkeypatch.setattr(threading.Thread, "start", broken)
    assert "could not be started" in await bench.fails("run_shell", command="sleep 60")
    assert open_descriptors() == before


@pytest.mark.parametrize("number", range(20))
def test_cancelled_twice_in_a_row_nothing_is_left_when_the_loop_ends(
    project: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    monkeypatch.setattr(process, "GRACE_SECONDS", 60)
    pids: list[int] = []

    async def main() -> None:
        started = asyncio.Event()

        def live(text: str) -> None:
            pids.extend(map(int, text.split()))
            started.set()

        command = run_command(
            "trap '' TERM; sh -c \"trap '' TERM; sleep 60\" & echo $! $$; wait; wait",
            folder=project,
            environ=os.environ,
            timeout_seconds=60,
            most_chars=1000,
            print_live=live,
        )
        task = asyncio.create_task(command)
        await started.wait()
        for _ in range(number % 4 + 1):  # at different steps of the end
            task.cancel()
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    gc.collect()  # what was not waited for would warn now, which is an error here
    assert len(pids) == 2
    assert asyncio.run(ends(pids[0]))
    assert asyncio.run(ends(pids[1]))


async def test_a_shell_that_cannot_be_looked_at_is_waited_for(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(process, "_CAN_LOOK", False)
    ended = await ran(project, "echo x; exit 3")
    assert (ended.stdout.text(), ended.exit_code) == ("x\n", 3)
    assert (await ran(project, "trap '' TERM; sleep 60; sleep 60", seconds=0.1)).exit_code == -9


async def test_no_descriptor_is_left_behind(bench: Any):
    await bench.ok("run_shell", command="true")
    before = open_descriptors()
    for command in ("true", "echo x", "sleep 60 &"):
        await bench.ok("run_shell", command=command)
    assert open_descriptors() == before


async def test_the_question_shows_the_whole_command_and_where(make_bench: Any, project: Path):
    questions: list[Question] = []

    async def yes(question: Question) -> Answer:
        questions.append(question)
        return Answer(is_allowed=True)

    (project / "sub").mkdir()
    command = "echo " + " " * 200 + "\necho payload"
    bench = make_bench(mode="ask", confirm=yes)
    await bench.ok("run_shell", command=command, working_dir="sub")
    assert questions[0].preview.title == "Run a shell command in sub"
    assert questions[0].preview.body == command
    assert questions[0].grant.endswith("in sub")


async def test_a_blocked_command_is_refused_even_when_everything_passes(bench: Any):
    answered = await bench.call("run_shell", command="cd / && sudo ls")
    assert answered.result.is_refused
    assert "blocked" in answered.output


def test_an_output_that_fits_is_whole():
    kept = Kept(10)
    for piece in ("abc", "", "defg"):
        kept.add(piece)
    assert kept.text() == "abcdefg"
    assert kept.text(4) == "ab\n[... 3 characters left out ...]\nfg"
