"""One line per tool call, failures and diffs."""

from typing import Any

import msgspec
from msgspec import Raw

from rows import every_row
from ybs.core.events import ToolFinished
from ybs.frontends.terminal.drawing.steps import (
    call_text,
    detail_margin,
    detail_of,
    diff_of,
    draw_detail,
    running_line,
    step_line,
)
from ybs.frontends.terminal.signs import ASCII, UNICODE, Paint
from ybs.frontends.terminal.words import cells

PLAIN, COLOURED = Paint(has_colour=False), Paint(has_colour=True)


def finished(
    name: str = "run_shell",
    *,
    success: bool = True,
    output: str = "",
    display: Any = None,
    **rest: Any,
) -> ToolFinished:
    shown = Raw(msgspec.json.encode(display))
    return ToolFinished(id="1", name=name, success=success, output=output, display=shown, **rest)


def told(done: ToolFinished, width: int = 60) -> str:
    room = width - len(detail_margin(width))
    return bare(draw_detail(detail_of(done, room, UNICODE).lines, width, PLAIN))


def bare(text: str) -> str:
    return text.replace("\x1b[2m", "").replace("\x1b[22m", "")


def test_a_step_says_verb_subject_result_and_time() -> None:
    done = finished(summary="15 passed", duration_seconds=1.94)
    line = bare(step_line(done, "pytest -q", 60, PLAIN, UNICODE))
    assert line == "• shell     pytest -q   15 passed" + " " * 22 + "1.9 s"
    assert cells(line) == 60


def test_a_summary_that_repeats_the_subject_is_not_said_twice() -> None:
    done = finished("read_file", summary="src/a.py (1-84 of 212)")
    assert (
        bare(step_line(done, "src/a.py", 60, PLAIN, UNICODE))
        == "• read      src/a.py (1-84 of 212)"
    )


def test_a_failure_has_its_own_sign_and_says_why() -> None:
    failed = finished("read_file", success=False, output="No file a.py here.\nNearest: b.py")
    assert bare(step_line(failed, "a.py", 60, PLAIN, ASCII)) == "x read      a.py"
    assert told(failed) == "    No file a.py here. Nearest: b.py"


@every_row(("width", "most"), [(80, 1), (40, 3), (20, 3)])
def test_what_a_failed_call_tells_the_model_is_one_line_to_the_person_and_kept_whole(width, most):
    output = "The arguments do not fit. " + "word " * 200 + '{"path": "src"}\n\nTry read_file.'
    failed = finished("read_file", success=False, output=output)
    lines = told(failed, width).split("\n")
    assert len(lines) == most
    assert lines[0].strip().startswith("The arguments")
    assert lines[-1].endswith("…")
    assert all(cells(line) <= width for line in lines)
    assert len(lines[-1]) > width - 8, "it is filled"
    assert detail_of(failed, width, UNICODE).whole == output
    assert len(detail_of(failed, width, UNICODE, is_whole=True).lines) > 10


def test_a_summary_that_names_the_subject_in_its_middle_is_cut_before_it() -> None:
    done = finished("edit_file", summary="Edited a.py (+1 -1)")
    assert bare(step_line(done, "a.py", 60, PLAIN, UNICODE)) == "• edit      a.py (+1 -1)"


def test_a_refused_call_says_so() -> None:
    refused = finished(success=False, is_refused=True, output="sudo is blocked")
    assert bare(step_line(refused, "rm x", 60, PLAIN, UNICODE)) == "✗ shell     rm x   refused"
    assert told(refused) == "    sudo is blocked"


def streams(lines: int, code: int) -> dict[str, Any]:
    text = "\n".join(f"line {number}" for number in range(lines))
    return {"exit_code": code, "stdout": text, "stderr": "\x1b[33mboom\x1b[0m\x1b[2J"}


def test_the_end_of_a_commands_output_is_shown() -> None:
    done = finished(summary="exit code 0", display=streams(9, 0))
    assert told(done).split("\n") == [
        "    … 6 lines",
        "    line 6",
        "    line 7",
        "    line 8",
        "    boom␛[2J",
    ]


def test_the_lines_left_out_are_those_that_were_written_not_those_handed_over() -> None:
    done = finished(summary="exit code 0", display={**streams(9, 0), "lines": 20_001})
    assert told(done).split("\n")[0] == "    … 19997 lines"
    short = finished(summary="exit code 0", display={**streams(3, 0), "lines": 4})
    assert "…" not in told(short)


def test_more_is_shown_of_a_command_that_failed() -> None:
    failed = finished(success=False, summary="exit code 1", display=streams(30, 1))
    lines = told(failed).split("\n")
    assert lines[0] == "    … 19 lines"
    assert len(lines) == 13
    assert lines[-2:] == ["    line 29", "    boom␛[2J"]


def test_output_that_is_one_line_too_long_is_shown_whole() -> None:
    assert "…" not in told(finished(display=streams(4, 0)))


def test_a_long_line_is_cut_after_success_and_folded_after_a_failure() -> None:
    display = {"exit_code": 1, "stdout": "", "stderr": "x" * 30 + " the last words"}
    assert told(finished(display=display), 20) == "  " + "x" * 17 + "…"
    drawn = told(finished(success=False, display=display), 20)
    assert "".join(drawn.split()) == "x" * 30 + "thelastwords"
    assert all(cells(line) <= 20 for line in drawn.split("\n"))


def test_a_command_that_succeeded_does_not_say_exit_code_zero() -> None:
    done = finished(summary="exit code 0", display=streams(1, 0))
    assert bare(step_line(done, "ls", 60, PLAIN, UNICODE)) == "• shell     ls"


def test_a_command_that_ran_outside_the_sandbox_says_so() -> None:
    done = finished(summary="exit code 0", display={**streams(1, 0), "outside": True})
    assert "outside the sandbox" in bare(step_line(done, "git push", 60, PLAIN, UNICODE))


def test_a_success_without_output_has_no_detail() -> None:
    assert told(finished("read_file", output="much")) == ""


@every_row("width", [8, 20, 40, 49, 50, 80])
def test_a_step_stays_on_its_line(width: int) -> None:
    done = finished(summary="a long summary of what happened here" * 3, duration_seconds=0.004)
    line = step_line(done, "python -m some.module --with options" * 3, width, COLOURED, UNICODE)
    assert "\n" not in line
    assert cells(line) <= width
    running = running_line(call_text("run_shell", "x" * 99, width), 12, width, COLOURED, "⠋")
    assert cells(running) <= width


def test_a_running_call_shows_its_seconds() -> None:
    assert (
        bare(running_line(call_text("run_shell", "pytest", 60), 12.4, 60, PLAIN, "|"))
        == "| shell     pytest  12 s"
    )
    assert (
        bare(running_line(call_text("run_shell", "pytest", 60), 0.4, 60, PLAIN, "|"))
        == "| shell     pytest"
    )


def test_a_call_without_changes_has_no_diff() -> None:
    assert diff_of(finished(display=[1])) == ""
