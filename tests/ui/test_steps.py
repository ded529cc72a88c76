"""One line per tool call, failures and diffs."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from ybs.core.events import ToolFinished
from ybs.ui.signs import ASCII, UNICODE, Paint
from ybs.ui.steps import call_text, detail, diff, diff_of, running_line, step_line
from ybs.ui.words import cells

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
    assert bare(detail(failed, 60, PLAIN)) == "    No file a.py here. Nearest: b.py"


def test_a_long_message_is_cut_after_a_few_lines() -> None:
    failed = finished("read_file", success=False, output="word " * 200)
    lines = bare(detail(failed, 40, PLAIN)).split("\n")
    assert len(lines) == 4
    assert lines[-1] == "    ..."


def test_a_summary_that_names_the_subject_in_its_middle_is_cut_before_it() -> None:
    done = finished("edit_file", summary="Edited a.py (+1 -1)")
    assert bare(step_line(done, "a.py", 60, PLAIN, UNICODE)) == "• edit      a.py (+1 -1)"


def test_a_refused_call_says_so() -> None:
    refused = finished(success=False, is_refused=True, output="sudo is blocked")
    assert bare(step_line(refused, "rm x", 60, PLAIN, UNICODE)) == "✗ shell     rm x   refused"
    assert bare(detail(refused, 60, PLAIN)) == "    sudo is blocked"


def test_the_end_of_a_failed_commands_output_is_shown() -> None:
    streams = {
        "exit_code": 1,
        "stdout": "\n".join(f"line {n}" for n in range(9)),
        "stderr": "boom\x1b[2J",
    }
    failed = finished(success=False, summary="exit code 1", display=streams)
    assert bare(detail(failed, 60, PLAIN)).split("\n") == [
        "    line 6",
        "    line 7",
        "    line 8",
        "    boom␛[2J",
    ]


def test_a_success_has_no_detail() -> None:
    assert detail(finished(display={"stdout": "much"}), 60, PLAIN) == ""


@pytest.mark.parametrize("width", [8, 20, 40, 49, 50, 80])
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


def test_a_diff_is_whole_coloured_and_without_its_names() -> None:
    text = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\x07\n same\n"
    lines = diff(text, 60, COLOURED).split("\n")
    assert lines == [
        "\x1b[2m    @@ -1 +1 @@\x1b[22m",
        "\x1b[31m    -old\x1b[39m",
        "\x1b[32m    +new␇\x1b[39m",
        "     same",
    ]


def test_a_removed_line_that_looks_like_a_name_is_kept() -> None:
    assert "--- note" in diff("@@ -1 +0 @@\n--- note\n", 60, PLAIN)


def test_a_long_line_of_a_diff_is_folded_and_not_cut() -> None:
    drawn = diff("+" + "x" * 90, 40, PLAIN)
    assert drawn.replace("\n", "").replace(" ", "") == "+" + "x" * 90


def test_the_diff_is_found_in_what_the_tool_hands_over() -> None:
    assert diff_of(finished(display={"diff": "+a"})) == "+a"
    assert diff_of(finished(display={"diff": 3})) == ""
    assert diff_of(finished(display=[1])) == ""
