"""run_shell: what the model and the person get to see of a command."""

import asyncio
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from processes import comes, ends, in_no_time, names_in, size_of
from rows import every_row
from ybs.config.schema import BuiltinToolSettings, Config, ToolsSettings
from ybs.core.events import ToolPrinted
from ybs.core.ports import Answer, Question
from ybs.security import launcher
from ybs.security.sandbox.launch import Launch, Starter
from ybs.tools.shell import process
from ybs.tools.shell.overflow import outputs_folder
from ybs.tools.shell.process import Ended


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.05)
    monkeypatch.setattr(process, "PIPE_SECONDS", 0.05)


@pytest.mark.integration
async def test_a_command_gives_both_outputs_and_its_exit_code(bench: Any):
    answered = await bench.call("run_shell", command="echo out; echo err >&2; exit 3")
    assert answered.result.is_error
    assert answered.output.startswith("out\n[stderr]\nerr\n[exit code 3, ")
    display = answered.display
    assert 0 <= display.pop("duration") < 8
    assert display == {"exit_code": 3, "stdout": "out\n", "stderr": "err\n", "timed_out": False}
    assert answered.result.summary == "exit code 3"


@pytest.mark.integration
async def test_a_success_is_no_error_and_stderr_alone_needs_no_heading(bench: Any):
    answered = await bench.ok("run_shell", command="echo err >&2")
    assert answered.output.startswith("err\n[exit code 0")
    assert (await bench.ok("run_shell", command="true")).output.startswith("[exit code 0")


#: What people and models write for bash, and what it prints there.
FOR_BASH = (
    ("(echo lost; exit 1) &> out.txt; echo $?; cat out.txt", "1\nlost\n"),
    ("set -euo pipefail; echo V=7 > v.sh; source v.sh; [[ $V == 7 ]] && echo yes", "yes\n"),
    ("set -o pipefail; false | cat; echo $?", "1\n"),
    ("echo {1..3}; names=(a b); echo ${#names[@]}", "1 2 3\n2\n"),
    ("diff <(echo a) <(echo a) && echo same", "same\n"),
    ("mkdir -p data/{raw,done}; ls data", "done\nraw\n"),
    ("IFS=$'\\t' read -r a b <<< $'htop\\tx'; echo $a", "htop\n"),
    ("read -ra words <<< 'one two'; echo ${words[1]^^}", "TWO\n"),
    ("function f { local -A m=([k]=v); echo ${m[k]}; }; f; printf '%q\n' 'a b'", "v\na\\ b\n"),
)


@pytest.mark.skipif(launcher.bash() is None, reason="there is no bash")
@pytest.mark.integration
async def test_a_command_written_for_bash_runs_in_bash(bench: Any):
    for command, printed in FOR_BASH:
        assert (await bench.ok("run_shell", command=command)).display["stdout"] == printed, command


@pytest.mark.skipif(launcher.bash() is None, reason="there is no bash")
@pytest.mark.integration
async def test_bash_reads_no_startup_file_and_no_function_of_the_environment(
    bench: Any, project: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in (".bashrc", ".bash_profile", "rc"):
        (project / name).write_text("echo startup file\n")
    for name, value in (
        ("HOME", str(project)),
        ("BASH_ENV", str(project / "rc")),
        ("ENV", str(project / "rc")),
        ("SSH_CLIENT", "127.0.0.1 1 22"),
        ("BASH_FUNC_ls%%", "() { echo function; }"),
        ("SHELLOPTS", "xtrace"),
    ):
        monkeypatch.setitem(os.environ, name, value)
    monkeypatch.setattr(bench.workspace.roots, "host", this_host(), raising=False)
    answered = await bench.ok("run_shell", command="ls v; echo done 2>/dev/null; true")
    assert answered.display["stdout"] == "done\n"


@pytest.mark.integration
async def test_where_there_is_no_bash_sh_runs_and_the_model_is_told(
    bench: Any, monkeypatch: pytest.MonkeyPatch
):
    tool = next(each for each in bench.tools if each.name == "run_shell")
    assert "POSIX sh" not in tool.description
    monkeypatch.setattr(launcher, "BASH", ("/nonexistent/bash",))
    assert "POSIX sh, not bash" in tool.description
    assert "POSIX sh, not bash" in tool.short_description
    assert (await bench.ok("run_shell", command="echo $0")).display["stdout"] == "/bin/sh\n"


@pytest.mark.integration
async def test_output_is_shown_as_it_comes(bench: Any):
    answered = await bench.ok("run_shell", command="echo grün")
    assert (
        "".join(event.text for event in answered.events if isinstance(event, ToolPrinted))
        == "grün\n"
    )


@pytest.mark.integration
async def test_commands_run_in_the_project_or_the_folder_given(bench: Any, project: Path):
    (project / "sub").mkdir()
    for name in ("working_dir", "working_directory"):
        answered = await bench.ok("run_shell", command="pwd", **{name: "sub"})
        assert answered.display["stdout"] == f"{project}/sub\n"
    assert (await bench.ok("run_shell", command="pwd")).display["stdout"] == f"{project}\n"
    assert "outside the folders that ybs may work in" in await bench.fails(
        "run_shell", command="pwd", working_dir=".."
    )
    assert "is not a folder" in await bench.fails("run_shell", command="pwd", working_dir="none")


@every_row(("command", "words"), [("", "empty"), ("a\0b", "NUL"), ("x" * 40_000, "too long")])
async def test_what_is_no_command_is_an_error(bench: Any, command: str, words: str):
    assert words in await bench.fails("run_shell", command=command)


@pytest.mark.integration
async def test_s17_there_is_no_input_and_no_terminal(bench: Any):
    answered = await bench.call("run_shell", command="cat; read x || echo end; : < /dev/tty")
    assert answered.display["stdout"] == "end\n"
    assert answered.display["exit_code"] != 0


@pytest.mark.integration
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
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("ODD_ONE", "/nonexistent-canary")
    output = (await bench.ok("run_shell", command="env")).display["stdout"]
    assert "canary" not in output
    lines = output.splitlines()
    for line in (
        "LANG=C.UTF-8",
        "PAGER=cat",
        "GIT_PAGER=cat",
        "TERM=dumb",
        "NO_COLOR=1",
        "GIT_TERMINAL_PROMPT=0",
    ):
        assert line in lines


@pytest.mark.slow
async def test_a_command_out_of_time_says_so_and_keeps_its_output(
    make_bench: Any, monkeypatch: pytest.MonkeyPatch
):
    run_command = process.run_command

    async def sooner(command: process.ShellCommand, seconds: float) -> Ended:
        return await run_command(command, seconds / 5)

    monkeypatch.setattr(process, "run_command", sooner)
    bench = make_bench(
        config=Config(
            tools=ToolsSettings(builtin={"run_shell": BuiltinToolSettings(timeout_seconds=1)})
        )
    )
    answered = await bench.call("run_shell", command="echo begun; sleep 60")
    assert answered.result.is_error
    assert answered.display["timed_out"]
    assert (
        answered.output
        == "begun\n[stopped after the time limit of 1 s; its output so far is above]"
    )
    assert answered.result.summary.startswith("timed out after 1 s")
    silent = await bench.call("run_shell", command="sleep 60")
    assert silent.output == "[stopped after the time limit of 1 s; it wrote nothing]"


@pytest.mark.integration
async def test_a_command_ended_by_a_signal_says_which(bench: Any):
    answered = await bench.call("run_shell", command="kill -SEGV $$")
    assert answered.output.startswith("[signal SIGSEGV (exit code -11), ")
    assert answered.display["exit_code"] == -11


@pytest.mark.integration
async def test_output_that_is_no_text_is_not_shown(bench: Any):
    command = r"i=0; while [ $i -lt 50 ]; do printf '\000\377\200\301'; i=$((i+1)); done"
    answered = await bench.ok("run_shell", command=command)
    assert answered.output.startswith("[200 bytes that are not text]\n[exit")


@pytest.mark.integration
@every_row(
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

    async def run(_command: process.ShellCommand, seconds: float) -> Ended:
        seen.append(seconds)
        return Ended(exit_code=0)

    monkeypatch.setattr(process, "run_command", run)
    config = Config(
        tools=ToolsSettings(builtin={"run_shell": BuiltinToolSettings(timeout_seconds=configured)})
    )
    await make_bench(config=config).ok("run_shell", command="true", **asked)
    assert seen == [expected]


@pytest.mark.integration
async def test_s15_what_is_left_in_the_background_ends_with_the_call(bench: Any):
    answered = await bench.ok("run_shell", command="sleep 60 & echo $!")
    assert await ends(int(answered.display["stdout"]))
    assert "left in the background were ended" in answered.output
    quiet = await bench.ok("run_shell", command="sleep 60 >/dev/null 2>&1 & echo $!")
    assert await ends(int(quiet.display["stdout"]))
    assert "in the background" in quiet.output  # whether the sandbox ends it, or ybs


@pytest.mark.integration
async def test_a_command_that_leaves_something_behind_in_a_sandbox_is_told(bench: Any):
    for command, is_told in {
        "(sleep 9 &); echo a": True,
        "nohup sleep 9 > log 2>&1 & disown": True,
        "sleep 0.01 & wait": False,
        "echo 'a & b' \"c & d\" e\\&f >&2 && ls &>/dev/null || true": False,
    }.items():
        answered = await bench.ok("run_shell", command=command)
        assert ("in the background" in answered.output) == is_told, command


@pytest.mark.integration
async def test_a_long_output_is_cut_and_whole_in_a_file_that_tools_can_read(make_bench: Any):
    bench = make_bench(max_output_chars=2000)
    answered = await bench.ok("run_shell", command="seq 10000; seq 5 >&2")
    lines = answered.output.splitlines()
    assert len(answered.output) <= 2000
    assert lines[0] == "1"
    assert "[stderr]" in lines
    assert any(line.startswith("[... 4") and "left out" in line for line in lines)
    assert answered.display["lines"] == 10_005
    file = answered.display["output_file"]
    assert f"[whole output, 48,904 bytes, 10,005 lines: {file} - " in lines[-2]
    read = await bench.ok("read_file", path=file, offset=5000, limit=1)
    assert read.output.startswith("5000\t5000")
    found = await bench.ok("search_files", pattern="^77.7$", path=file, context_lines=0)
    assert found.display["total_matches"] == 10
    assert "blocked" in (await bench.call("write_file", path=file, content="x")).output


@pytest.mark.integration
async def test_an_output_that_only_colours_made_long_is_whole_and_needs_no_file(make_bench: Any):
    command = r"for n in $(seq 300); do printf '\033[31m%s\033[0m\r' $n; done"
    answered = await make_bench(max_output_chars=2000).ok("run_shell", command=command)
    assert answered.output.startswith("300\n[exit")
    assert not list(outputs_folder(this_host()).glob("*/*"))
    assert "output_file" not in answered.display


@pytest.mark.integration
async def test_nothing_is_written_where_outputs_are_not_kept(make_bench: Any, home: Path):
    bench = make_bench(max_output_chars=2000)
    bench.workspace.shells.keeps_outputs = False
    output = (await bench.ok("run_shell", command="seq 10000")).output
    assert "left out" in output
    assert "[the whole output was not kept: an incognito session saves nothing]" in output
    assert names_in(home) == []


@pytest.mark.integration
async def test_s16_endless_output_is_kept_within_bounds(make_bench: Any):
    bench = make_bench(max_output_chars=1000)
    tracemalloc.start()
    try:
        answered = await bench.ok(
            "run_shell", command="yes 0123456789 | head -c 30000000; echo; echo last"
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
    assert answered.output.startswith("0123456789\n0123456789")
    assert "\nlast\n[whole output, 30,000,006 bytes" in answered.output
    assert size_of(answered.display["output_file"]) == 30_000_006


@pytest.mark.integration
async def test_two_long_outputs_share_the_room(make_bench: Any):
    bench = make_bench(max_output_chars=2000)
    output = (await bench.ok("run_shell", command="seq 10000; seq 10000 >&2")).output
    out, err = output.split("[stderr]")
    assert len(output) <= 2000
    assert min(len(out), len(err)) > 600


@pytest.mark.integration
async def test_what_a_terminal_would_have_overwritten_is_left_out(bench: Any):
    command = r"printf '10%%\r50%%\r100%%\n\033[31mred\033[0m\r\nlast\r'"
    assert (await bench.ok("run_shell", command=command)).output.startswith(
        "100%\nred\nlast\n[exit"
    )


@pytest.mark.integration
async def test_line_ends_with_more_than_one_return_lose_nothing(bench: Any):
    command = r"printf 'hello\r\r\nworld\r\r\n'"
    assert (await bench.ok("run_shell", command=command)).output.startswith("hello\nworld\n[exit")


@pytest.mark.integration
async def test_a_shell_that_cannot_start_is_an_error(bench: Any, monkeypatch: pytest.MonkeyPatch):
    def broken(*args: Any, **options: Any) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("subprocess.Popen", broken)
    for background in (False, True):
        said = await bench.fails("run_shell", command="true", background=background)
        assert said == "The command could not be started: Resource temporarily unavailable"


@pytest.mark.integration
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


@pytest.mark.integration
async def test_a_sandbox_wraps_commands_in_front_and_in_the_background(bench: Any):
    class Sandboxed(Starter):
        def start(self, command: Any, folder: Path, environ: Any, access: Any) -> Launch:
            *shell, text = command
            return super().start((*shell, f"echo sandboxed; {text}"), folder, environ, access)

    bench.workspace.shells.starter = Sandboxed()
    for background in (False, True):
        answered = await bench.ok("run_shell", command="echo run", background=background)
        assert answered.output.startswith("sandboxed\nrun\n[")


@pytest.mark.integration
async def test_a_background_command_that_ends_at_once_says_so(bench: Any):
    answered = await bench.call("run_shell", command="echo x; exit 3", background=True)
    assert answered.result.is_error
    assert in_no_time(answered.output) == "x\n[job-1 ended with exit code 3 after 0:00]"
    assert bench.workspace.shells.jobs.all == ()


@pytest.mark.integration
async def test_a_background_command_gives_its_name_and_first_output(
    bench: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ybs.tools.builtin.run_shell.FIRST_SECONDS", 0.1)
    command = "echo begun; while ! [ -e go ]; do sleep 0.01; done; echo late"
    answered = await bench.ok("run_shell", command=command, background=True)
    assert in_no_time(answered.output) == "begun\n[job-1 running for 0:00]"
    (bench.workspace.roots.folder / "go").touch()
    (job,) = bench.workspace.shells.jobs.all
    assert await comes(lambda: job.ended is not None)
    assert job.output.stdout.text() == "late\n"
    # What comes after the call belongs to no call on the screen.
    assert [e.text for e in answered.events if isinstance(e, ToolPrinted)] == ["begun\n"]


@pytest.mark.integration
async def test_a_background_command_that_nobody_heard_of_ends_when_the_call_is_cancelled(
    bench: Any,
):
    call = asyncio.create_task(
        bench.call("run_shell", command="echo $$ > pid; sleep 60", background=True)
    )
    file = bench.workspace.roots.folder / "pid"
    assert await comes(lambda: file.exists() and bool(file.read_text()))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await ends(int(file.read_text()))


async def test_the_question_says_that_it_runs_in_the_background(make_bench: Any):
    questions: list[Question] = []

    async def no(question: Question) -> Answer:
        questions.append(question)
        return Answer(is_allowed=False)

    await make_bench(mode="ask", confirm=no).call("run_shell", command="x", background=True)
    assert questions[0].preview.title == "Run a shell command in the background"


def test_small_models_hear_nothing_of_the_background(make_bench: Any):
    def names(*, is_short: bool) -> dict[str, str]:
        specs = make_bench(is_short=is_short).toolbox.specs()
        return {spec.name: bytes(spec.parameters).decode() for spec in specs}

    long, short = names(is_short=False), names(is_short=True)
    assert "background" in long["run_shell"]
    assert "shell_job" in long
    assert "background" not in short["run_shell"]
    assert "shell_job" not in short


def test_without_run_shell_there_is_no_shell_job(make_bench: Any):
    config = Config(tools=ToolsSettings(builtin={"run_shell": BuiltinToolSettings(enabled=False)}))
    names = [spec.name for spec in make_bench(config=config).toolbox.specs()]
    assert not {"run_shell", "shell_job"} & set(names)
