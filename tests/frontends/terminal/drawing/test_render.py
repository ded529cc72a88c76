"""What the events of a session look like."""

from typing import Any

from msgspec.structs import replace
from paper import Page, changed, ran, started

from fake_session import USED
from rows import every_row
from ybs.core.events import (
    AssistantSaid,
    ConfirmationAnswered,
    ConfirmationAsked,
    FilesChanged,
    Noticed,
    PromptRead,
    RequestRetried,
    RequestStarted,
    SessionEnded,
    SessionStarted,
    SystemPrompted,
    TextStreamed,
    ToolFinished,
    ToolPrinted,
    TurnFinished,
    UserSaid,
)
from ybs.core.remedies import Remedy


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


def test_a_call_that_is_stopped_shows_its_time_and_stands_apart_from_the_word_of_it() -> None:
    page = Page()
    page.draw(started(command="a"))
    page.clock.now += 2
    page.draw(ToolPrinted(id="1", text="begun\n"))
    page.draw(ran(success=False, duration_seconds=0.0), TurnFinished(reason="interrupted"))
    step, *rest = page.text.split("\n")
    assert step.startswith("✗ shell     a")
    assert step.endswith(" 2.0 s")
    assert rest == ["    begun", "", "! interrupted", ""]


def test_an_edit_shows_its_diff_but_not_after_a_question_that_showed_it() -> None:
    changes = (changed("x\n", "y\n"),)
    page = Page()
    assert "    1 +y" in page.draw(
        started("edit_file", path="a"), ran("edit_file", changes=changes)
    )
    page = Page()
    page.draw(started("edit_file", path="a"))
    page.draw(ConfirmationAsked(id="1", name="edit_file", title="t", preview="+y"))
    assert "+y" not in page.draw(ran("edit_file", changes=changes))


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


def test_a_call_whose_question_was_never_answered_was_not_run() -> None:
    page = Page()
    asked = ConfirmationAsked(id="1", name="run_shell", title="", preview="")
    cancelled = replace(
        ran(success=False), output="Cancelled before it finished. Nothing is known."
    )
    page.draw(started(command="make"), asked, cancelled)
    assert page.text == "✗ shell     make   not run\n"
    page.pieces.clear()
    page.draw(started(command="make"), asked, ConfirmationAnswered(id="1", is_allowed=True))
    assert "    Cancelled before it finished." in page.draw(cancelled), "it may have run"


def test_what_is_meant_for_the_model_takes_a_line_and_the_rest_is_a_key_away() -> None:
    page = Page()
    words = "Nothing has worked three times. " * 5 + "\nLook first."
    page.draw(UserSaid(content=words, origin="guard"))
    line = "  reminded the model: Nothing has worked three times. Noth…\n"
    assert page.text == line
    assert page.renderer.unfold()
    assert page.text.endswith("Look first.\n")
    page.pieces.clear()
    failed = replace(ran("list_files", success=False), output="The arguments do not fit. " * 9)
    page.draw(started("list_files", path="a"), failed)
    assert page.text == (
        "\n✗ list      a\n    The arguments do not fit. The argum…   ctrl-o shows all\n"
    )
    assert page.renderer.unfold()
    assert page.text.count("do not fit.") == 10


def test_a_command_for_the_person_alone_ends_with_what_was_held_of_its_output() -> None:
    page = Page()
    page.draw(ToolPrinted(id="typed_1", text="".join(f"line {n}\n" for n in range(30))))
    assert "line 29" not in page.text
    page.renderer.end_typed()
    assert page.text.endswith("  line 29\n")
    assert page.renderer.unfold()
    page.pieces.clear()
    page.renderer.end_typed()
    assert page.text == ""


def test_tool_calls_can_be_hidden() -> None:
    page = Page(show_tool_calls=False)
    assert page.draw(started(command="a"), ran(changes=(changed(),))) == ""
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


def test_a_finished_command_shows_the_end_of_its_output() -> None:
    page = Page()
    display = {"stdout": "".join(f"{n}\n" for n in range(9)), "stderr": "", "exit_code": 0}
    page.draw(started(command="seq"), ran(display=display, summary="exit code 0"))
    assert page.text == (
        "• shell     seq\n    … 5 lines   ctrl-o shows all\n    5\n    6\n    7\n    8\n"
    )
    page.pieces.clear()
    page.draw(started(command="seq"), ran(display=display, summary="exit code 0"))
    assert "    … 5 lines\n" in page.text, "the key is named once"


def test_a_command_without_a_display_shows_the_end_of_what_it_printed() -> None:
    page = Page()
    page.draw(started(command="make"), ToolPrinted(id="1", text="one\ntwo\n"), ran())
    assert page.text == "• shell     make\n    one\n    two\n"


def test_what_an_attempt_printed_that_was_stopped_is_not_shown_as_of_the_next_one() -> None:
    page = Page()
    page.draw(started(command="make"), ToolPrinted(id="1", text="Read-only file system\n"))
    page.draw(ConfirmationAsked(id="1", name="run_shell", title="Run", preview="make"))
    page.draw(ConfirmationAnswered(id="1", is_allowed=True))
    page.draw(ToolPrinted(id="1", text="made\n"), ran())
    assert "made" in page.text
    assert "Read-only" not in page.text


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
    page = Page(width=90)
    page.live.begin()
    reason = "openai does not answer (connection refused)"
    message = f"{reason}.\nCheck the network."
    page.draw(RequestRetried(attempt=1, wait_seconds=0.4, message=message))
    assert page.text == f"  {reason}, trying again in 400 ms\n"
    page.draw(RequestRetried(attempt=2, wait_seconds=1.1, message=message))
    assert page.text.count("\n") == 1
    assert page.passing() == ["⠋ trying again in 1.1 s"]


def test_the_rows_of_an_answer_are_folded_under_their_last_column() -> None:
    page = Page(width=52)
    page.renderer.say("  /help    show all of the commands that there are here\n\nplain")
    assert page.text == (
        "  /help    show all of the commands that there are\n           here\n\nplain\n"
    )


def test_waiting_says_for_what_and_how_long() -> None:
    page = Page()
    page.live.begin()
    page.draw(RequestStarted(model="qwen3:14b", step=1))
    assert page.passing() == ["⠋ waiting for qwen3:14b"]
    page.clock.now += 12
    assert page.passing() == ["⠋ waiting for qwen3:14b  12 s   esc to stop"]


def test_waiting_says_how_much_of_the_prompt_a_slow_server_has_read() -> None:
    page = Page()
    page.live.begin()
    page.draw(RequestStarted(model="starter", step=1), PromptRead(read=512, total=2300))
    assert page.passing() == ["⠋ reads the prompt: 512 of 2,300 tokens"]
    page.draw(TextStreamed(text="Hello"))
    assert page.passing()[-1].startswith("⠋ answering")
    assert "reads" not in page.text


def test_the_first_turn_that_changed_files_says_how_to_see_and_undo_it() -> None:
    page = Page()
    done = TurnFinished(reason="done", duration_seconds=1)
    page.draw(done, FilesChanged(checkpoint="1"))
    assert page.text == ""
    page.draw(done, FilesChanged(checkpoint="2", paths=("a.py", "b.py")))
    page.draw(done, FilesChanged(checkpoint="3", paths=("a.py",)))
    assert page.text == "  2 files changed: /diff shows it, /undo takes it back\n"


def test_retries_notices_and_reminders_are_lines_of_their_own() -> None:
    page = Page()
    page.draw(RequestRetried(attempt=2, wait_seconds=4, message="busy"))
    page.draw(Noticed(level="info", text="compacted"), Noticed(level="warning", text="careful"))
    page.draw(
        Noticed(level="error", text="bad\x07"), UserSaid(content="run the tests", origin="guard")
    )
    assert page.text.split("\n") == [
        "  busy, trying again in 4.0 s",
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


@every_row(
    ("reason", "message", "line"),
    [
        ("interrupted", "", "! interrupted"),
        ("error", "nobody answers", "✗ nobody answers"),
        ("limit", "200 steps", "! 200 steps"),
        ("loop", "", "! loop"),
        ("dry_run", "nothing was run", "! nothing was run"),
    ],
)
def test_a_turn_that_did_not_end_well_says_why(reason: Any, message: str, line: str) -> None:
    assert Page().draw(TurnFinished(reason=reason, message=message)) == line + "\n"


def test_a_long_error_is_cut_where_it_is_drawn_and_shown_whole_on_demand() -> None:
    page, said = Page(width=80), "the server says much " * 60
    remedies = (Remedy("change_provider"),)
    page.draw(TurnFinished(reason="error", message=f"Refused: {said}", remedies=remedies))
    rows = page.text.rstrip("\n").split("\n")
    assert rows[0].startswith("✗ Refused: the server says")
    assert "… (ctrl-o shows all)" in " ".join(" ".join(rows).split())
    assert rows[-1] == "  Choose another provider: /provider"
    assert len(rows) == 5
    page.pieces.clear()
    assert page.renderer.unfold()
    assert " ".join(page.text.split()).count(said.strip()) == 1


def test_a_retry_does_not_draw_all_that_a_server_said() -> None:
    page = Page(width=80)
    page.draw(RequestRetried(attempt=1, wait_seconds=1, message="busy " * 300))
    assert len(page.text.split("\n")) < 6


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


def test_many_calls_at_once_are_counted_and_the_first_says_how_to_stop() -> None:
    page = Page()
    page.live.begin()
    for number in range(9):
        page.draw(replace(started(command=f"job {number}"), id=str(number)))
    page.clock.now += 130
    lines = page.passing()
    assert lines[:2] == ["⠋ shell     job 0  2m 10s   esc to stop", "⠋ shell     job 1  2m 10s"]
    assert lines[6:] == ["  … 3 more"]
    assert "esc" not in "".join(page.passing(40))


def noted(*steps: str) -> ToolFinished:
    return ran("todo", summary="noted", display={"success": True, "steps": "\n".join(steps)})


def test_the_list_of_steps_stands_once_in_the_live_area_and_is_drawn_when_the_turn_ends() -> None:
    page = Page()
    page.live.begin()
    for steps in (
        ("[>] **read** `a.py`", "[ ] test"),
        ("[x] **read** `a.py`", "[>] test", "[ ] write"),
    ):
        page.draw(started("todo", steps="\n".join(steps)), noted(*steps))
        shown = [line for line in page.passing() if "read" in line]
        assert shown == [f"  {'›' if steps[0][1] == '>' else '☑'} read a.py"]
    assert page.text == ""
    page.draw(TurnFinished(reason="done"))
    assert page.text == "  ☑ read a.py\n  › test\n  ☐ write\n"
    assert page.passing() == []


def test_a_long_list_of_steps_shows_those_around_the_one_at_work() -> None:
    page = Page()
    page.live.begin()
    page.draw(started("todo"), noted(*["[x] done"] * 20, "[>] now", *["[ ] later"] * 9))
    lines = page.passing()
    assert "  › now" in lines
    assert lines[-1] == "  … 21 lines"
