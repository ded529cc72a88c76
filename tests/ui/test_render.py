"""What the events of a session look like."""

import re
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace
from stage import FakeClock

from fake_session import USED
from ybs.config.schema import Ui
from ybs.core.events import (
    AssistantSaid,
    ConfirmationAnswered,
    ConfirmationAsked,
    Event,
    Noticed,
    RequestRetried,
    RequestStarted,
    SessionEnded,
    SessionStarted,
    SystemPrompted,
    TextStreamed,
    ThinkingStreamed,
    ToolCallStreamed,
    ToolFinished,
    ToolPrinted,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.ui.live import Live
from ybs.ui.render import Canvas, Renderer
from ybs.ui.signs import UNICODE, Paint


class Page:
    """A renderer whose lines are collected."""

    def __init__(self, *, width: int = 60, **settings: bool) -> None:
        self.pieces: list[str] = []
        self.clock = FakeClock()
        paint = Paint(has_colour=False)
        self.live = Live(paint, UNICODE, self.clock)
        canvas = Canvas(self.pieces.append, lambda: width, paint, UNICODE)
        self.renderer = Renderer(canvas, self.live, Ui(**settings), retries=3)

    def draw(self, *events: Event) -> str:
        for event in events:
            self.renderer(event)
        return self.text

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;]*m", "", "".join(self.pieces))

    def passing(self, width: int = 60) -> list[str]:
        lines = (re.sub(r"\x1b\[[0-9;]*m", "", line) for line in self.live.lines(width, 20))
        return [re.sub(f"^[{UNICODE.spinner}]", "⠋", line) for line in lines]


def ran(
    name: str = "run_shell", *, display: Any = None, success: bool = True, **rest: Any
) -> ToolFinished:
    shown = Raw(msgspec.json.encode(display))
    return ToolFinished(id="1", name=name, success=success, output="out", display=shown, **rest)


def started(name: str = "run_shell", **arguments: str) -> ToolStarted:
    return ToolStarted(id="1", name=name, arguments=Raw(msgspec.json.encode(arguments)))


def test_each_block_is_drawn_once_when_it_is_complete() -> None:
    page = Page()
    page.draw(TextStreamed(text="one **b"))
    assert page.text == ""
    assert page.live.open_block == "one **b"
    page.draw(TextStreamed(text="old**\n\ntw"))
    assert page.text == "  one bold\n"
    page.draw(TextStreamed(text="o"), AssistantSaid(content="one **bold**\n\ntwo"))
    assert page.text == "  one bold\n\n  two\n"
    assert page.live.open_block == ""


def test_an_answer_that_was_not_streamed_is_drawn_whole() -> None:
    assert Page().draw(AssistantSaid(content="at once")) == "  at once\n"


def test_without_streaming_the_answer_comes_at_its_end() -> None:
    page = Page(stream_responses=False)
    page.draw(TextStreamed(text="one\n\ntw"))
    assert page.text == ""
    assert page.live.open_block == ""
    assert page.draw(AssistantSaid(content="one\n\ntwo")) == "  one\n\n  two\n"


@pytest.mark.parametrize(
    ("reason", "said"), [("length", "llm.max_tokens"), ("refusal", "declined")]
)
def test_an_answer_that_ended_early_says_so(reason: Any, said: str) -> None:
    assert said in Page().draw(AssistantSaid(content="x", stop_reason=reason))


def test_a_blank_line_stands_between_words_and_steps_but_not_between_steps() -> None:
    page = Page()
    page.draw(
        started(command="a"), ran(), started(command="b"), ran(), AssistantSaid(content="text")
    )
    assert page.text == "• shell     a\n• shell     b\n\n  text\n"


def test_a_step_line_counts_without_the_time_of_the_question() -> None:
    page = Page()
    page.draw(started(command="a"))
    page.draw(ConfirmationAsked(id="1", name="run_shell", title="t", preview="a"))
    page.clock.now += 20
    page.draw(ConfirmationAnswered(id="1", is_allowed=True))
    page.clock.now += 2
    assert page.passing() == ["⠋ shell     a  2 s"]
    assert page.draw(ran(duration_seconds=22.5)).rstrip().endswith(" 2.5 s")


def test_an_edit_shows_its_diff_but_not_after_a_question_that_showed_it() -> None:
    display = {"diff": "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y"}
    page = Page()
    assert "    +y" in page.draw(started("edit_file", path="a"), ran("edit_file", display=display))
    page = Page()
    page.draw(started("edit_file", path="a"))
    page.draw(ConfirmationAsked(id="1", name="edit_file", title="t", preview="+y"))
    assert "+y" not in page.draw(ran("edit_file", display=display))


def test_a_call_that_the_person_refused_needs_no_reason_and_one_refused_by_a_rule_does() -> None:
    refused = ran(success=False, is_refused=True)
    assert (
        Page().draw(started(command="sudo x"), refused) == "✗ shell     sudo x   refused\n    out\n"
    )
    page = Page()
    page.draw(
        started(command="x"), ConfirmationAsked(id="1", name="run_shell", title="", preview="")
    )
    assert page.draw(refused) == "✗ shell     x   refused\n"


def test_tool_calls_can_be_hidden() -> None:
    page = Page(show_tool_calls=False)
    assert page.draw(started(command="a"), ran(display={"diff": "+a"})) == ""
    assert page.live.calls == {}


def test_a_running_call_shows_the_end_of_its_output() -> None:
    page = Page()
    page.draw(started(command="make"))
    for number in range(5):
        page.draw(ToolPrinted(id="1", text=f"line {number}\x1b[2J\n"))
    assert page.passing() == [
        "⠋ shell     make",
        "    line 2␛[2J",
        "    line 3␛[2J",
        "    line 4␛[2J",
    ]


def shell_said(ending: str = "Exit code: 0") -> UserSaid:
    return UserSaid(
        content=f"[Shell command output]\nCommand: x\n{ending}\n\nOutput:\n", origin="shell"
    )


def test_the_output_of_a_typed_command_is_shown() -> None:
    page = Page()
    page.draw(
        ToolPrinted(id="typed_1", text="one\ntw"), ToolPrinted(id="typed_1", text="o\x1b[2J\nthr")
    )
    assert page.text == "  one\n  two␛[2J\n"
    page.draw(shell_said())
    assert page.text == "  one\n  two␛[2J\n  thr\n  exit code 0 · 1 ms\n"


def test_long_output_of_a_typed_command_keeps_its_beginning_and_its_end() -> None:
    page = Page()
    page.live.begin()
    page.clock.now += 0.02
    text = "".join(f"{number}\n" for number in range(1, 501))
    page.draw(ToolPrinted(id="typed_1", text=text))
    assert page.text.endswith("  8\n")
    assert page.passing()[1:] == ["    498", "    499", "    500"]
    page.draw(shell_said("Exit code: 1"))
    lines = page.text.split("\n")
    assert lines[8:10] == ["  … 484 lines …", "  493"]
    assert lines[-3:] == ["  500", "✗ exit code 1 · 20 ms", ""]


def test_output_of_a_typed_command_that_just_fits_is_not_cut() -> None:
    page = Page()
    page.draw(ToolPrinted(id="typed_1", text="x\n" * 17), shell_said())
    assert page.text.count("  x\n") == 17


def test_a_typed_command_is_shown_without_colours_and_without_what_was_overwritten() -> None:
    page = Page()
    page.draw(ToolPrinted(id="typed_1", text="\x1b[31mred\x1b[0m\n10 %\r90 %\r\n"))
    assert page.text == "  red\n  90 %\n"


def test_a_typed_command_that_is_stopped_shows_what_it_had_printed() -> None:
    page = Page()
    page.draw(ToolPrinted(id="typed_1", text="x\n" * 9 + "half"))
    page.draw(TurnFinished(reason="interrupted"))
    assert page.text == "  x\n" * 9 + "  half\n! stopped by you\n"
    assert page.passing() == []


def test_a_typed_command_that_took_too_long_says_so() -> None:
    page = Page()
    page.draw(shell_said("Stopped: it took longer than its time limit."))
    assert page.text == "✗ stopped: it took longer than its time limit · 1 ms\n"


def test_a_finished_command_shows_the_end_of_its_output() -> None:
    page = Page()
    display = {"stdout": "".join(f"{n}\n" for n in range(9)), "stderr": "", "exit_code": 0}
    page.draw(started(command="seq"), ran(display=display, summary="exit code 0"))
    assert page.text == "• shell     seq\n    … 5 lines\n    5\n    6\n    7\n    8\n"


def test_a_command_without_a_display_shows_the_end_of_what_it_printed() -> None:
    page = Page()
    page.draw(started(command="make"), ToolPrinted(id="1", text="one\ntwo\n"), ran())
    assert page.text == "• shell     make\n    one\n    two\n"


def test_text_that_streams_looks_like_text_that_is_finished() -> None:
    page = Page(width=40)
    page.live.begin()
    text = "Some words that go on **boldly** over a line and `more` of it."
    page.draw(TextStreamed(text=text))
    streamed = [line.rstrip() for line in page.passing(39)[:-2]]
    page.draw(AssistantSaid(content=text))
    assert page.text.rstrip("\n").split("\n") == streamed


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("goes on **bo", "goes on bo"),
        ("goes on **bold*", "goes on bold"),
        ("goes on **", "goes on"),
        ("calls `main", "calls main"),
        ("a title\n-", "a title"),
        ("2 ** 3", "2 ** 3"),
        ("```py\nx = '**a", "  x = '**a"),
    ],
)
def test_marks_that_are_still_open_are_not_shown_while_text_streams(text: str, seen: str) -> None:
    page = Page()
    page.draw(TextStreamed(text=text))
    assert page.passing()[0].rstrip() == "  " + seen


def test_streaming_text_is_not_drawn_anew_at_every_frame() -> None:
    page = Page()
    page.draw(TextStreamed(text="one"))
    assert page.passing()[0] == "  one"
    page.draw(TextStreamed(text=" two"))
    assert page.passing()[0] == "  one"
    page.clock.now += 0.1
    assert page.passing()[0] == "  one two"


def test_a_long_open_block_takes_half_of_the_room() -> None:
    page = Page()
    page.draw(TextStreamed(text="```\n" + "\n".join(f"line {number}" for number in range(400))))
    lines = page.passing()
    assert lines[-2:] == ["    line 399", ""]
    assert len(lines) == 11


def test_the_time_of_a_turn_does_not_count_the_time_of_its_questions() -> None:
    page = Page()
    page.live.begin()
    asked = ConfirmationAsked(id="1", name="run_shell", title="t", preview="a")
    page.draw(asked, replace(asked, id="2"))
    page.clock.now += 20
    page.draw(ConfirmationAnswered(id="1", is_allowed=True))
    page.clock.now += 10
    page.draw(ConfirmationAnswered(id="2", is_allowed=True))
    page.clock.now += 2
    page.draw(RequestStarted(model="m", step=2))
    assert page.passing() == ["⠋ waiting for m  2 s   esc to stop"]
    page.draw(TurnFinished(reason="done", usage=USED, duration_seconds=32.5))
    assert page.text.endswith(" · 2.5 s\n")


def test_a_question_that_was_never_answered_does_not_count_either() -> None:
    page = Page()
    page.live.begin()
    page.draw(ConfirmationAsked(id="1", name="run_shell", title="t", preview="a"))
    page.clock.now += 20
    page.draw(TurnFinished(reason="interrupted", usage=USED, duration_seconds=21.0))
    assert page.text.endswith(" · 1.0 s\n")


def test_a_retry_is_one_line_and_the_same_reason_is_said_once() -> None:
    page = Page()
    page.live.begin()
    message = "openai at 127.0.0.1:1 does not answer (connection refused).\nCheck the network."
    page.draw(RequestRetried(attempt=1, wait_seconds=0.4, message=message))
    assert page.text == "  retrying in 400 ms (1 of 3): connection refused\n"
    page.draw(RequestRetried(attempt=2, wait_seconds=1.1, message=message))
    assert page.text.count("\n") == 1
    assert page.passing() == ["⠋ retrying in 1.1 s (2 of 3): connection refused"]


def test_a_typed_command_that_failed_says_why() -> None:
    content = "[Shell command failed]\nCommand: sudo x\nError: it is blocked"
    assert Page().draw(UserSaid(content=content, origin="shell")) == "✗ it is blocked\n"


def test_the_rows_of_an_answer_are_folded_under_their_last_column() -> None:
    page = Page(width=52)
    page.renderer.say("  /help    show all of the commands that there are here\n\nplain")
    assert page.text == (
        "  /help    show all of the commands that there are\n           here\n\nplain\n"
    )


def test_thinking_passes_by_and_leaves_one_short_line() -> None:
    page = Page()
    page.draw(ThinkingStreamed(text="First I look at the cart. " * 8))
    page.live.begin()
    page.draw(ThinkingStreamed(text="Then I think."))
    page.clock.now += 2
    assert page.passing()[1].endswith("Then I think.")
    page.draw(AssistantSaid(content="done"))
    first, blank, said, _ = page.text.split("\n")
    assert first.startswith("  thought for 2.0 s: First I look at the cart.")
    assert first.endswith("…")
    assert len(first) <= 60
    assert (blank, said) == ("", "  done")


def test_waiting_says_for_what_and_how_long() -> None:
    page = Page()
    page.live.begin()
    page.draw(RequestStarted(model="qwen3:14b", step=1))
    assert page.passing() == ["⠋ waiting for qwen3:14b"]
    page.clock.now += 12
    assert page.passing() == ["⠋ waiting for qwen3:14b  12 s   esc to stop"]


def test_a_call_being_written_shows_its_growth() -> None:
    page = Page()
    page.live.begin()
    page.draw(ToolCallStreamed(id="1", name="write_file", text="x" * 1500))
    assert page.passing() == ["⠋ writing a call of write  1.5k characters"]


def test_retries_notices_and_reminders_are_lines_of_their_own() -> None:
    page = Page()
    page.draw(RequestRetried(attempt=2, wait_seconds=4, message="busy"))
    page.draw(Noticed(level="info", text="compacted"), Noticed(level="warning", text="careful"))
    page.draw(
        Noticed(level="error", text="bad\x07"), UserSaid(content="run the tests", origin="guard")
    )
    assert page.text.split("\n") == [
        "  retrying in 4.0 s (2 of 3): busy",
        "  compacted",
        "! careful",
        "✗ bad␇",
        "  reminded the model: run the tests",
        "",
    ]


def test_the_persons_own_words_are_not_drawn_twice() -> None:
    page = Page()
    page.draw(UserSaid(content="hello"), UserSaid(content="!ls", origin="shell"))
    page.draw(SessionStarted(session="s", folder="/", config={}), SystemPrompted(content="be good"))
    assert page.draw(SessionEnded(reason="user_exit", message_count=1)) == ""


def test_the_end_of_a_turn_shows_what_it_used() -> None:
    page = Page()
    assert (
        page.draw(TurnFinished(reason="done", usage=USED, duration_seconds=3.2))
        == "  1.2k in · 34 out · 3.2 s\n"
    )
    assert Page(show_token_usage=False).draw(TurnFinished(reason="done", usage=USED)) == ""
    assert Page().draw(TurnFinished(reason="done")) == ""


@pytest.mark.parametrize(
    ("reason", "message", "line"),
    [
        ("interrupted", "", "! stopped by you"),
        ("error", "nobody answers", "✗ nobody answers"),
        ("limit", "200 steps", "! 200 steps"),
        ("loop", "", "! loop"),
        ("dry_run", "nothing was run", "! nothing was run"),
    ],
)
def test_a_turn_that_did_not_end_well_says_why(reason: Any, message: str, line: str) -> None:
    assert Page().draw(TurnFinished(reason=reason, message=message)) == line + "\n"


def test_a_turn_that_ends_leaves_nothing_passing() -> None:
    page = Page()
    page.live.begin()
    page.draw(started(command="x"), TextStreamed(text="half"), TurnFinished(reason="interrupted"))
    assert page.passing() == []
    assert "  half\n" in page.text


def test_a_prompt_of_several_lines_is_echoed_below_its_sign() -> None:
    page = Page()
    page.renderer.echo("one\ntwo\x1b[2J")
    assert page.text == "› one\n  two␛[2J\n"


def test_a_long_notice_is_folded_under_its_first_word() -> None:
    page = Page(width=20)
    page.draw(Noticed(level="warning", text="one two three four five"))
    assert page.text == "! one two three\n  four five\n"


def test_many_passing_lines_are_cut_at_the_top() -> None:
    page = Page()
    page.live.begin()
    page.draw(TextStreamed(text="\n".join(f"- line {number}" for number in range(40))))
    lines = page.passing()
    assert lines[-3:-1] == ["  - line 39", ""]
    assert len(lines) == 12
    assert page.live.lines(60, 0) == []
