"""Feedback: what the events of a turn say of the decision that it was answered by."""

from typing import Any

import msgspec

from rows import every_row
from ybs.core.events import (
    EndReason,
    Event,
    FilesChanged,
    FilesRestored,
    RequestStarted,
    Rewound,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.router.feedback import Feedback, asks_again

EDIT = ToolFinished(id="e", name="edit_file", success=True, output="ok")
REFUSED = ToolFinished(id="r", name="edit_file", success=False, output="The text was not found.")
INVALID = ToolFinished(
    id="i", name="edit_file", success=False, output="The arguments of edit_file do not fit: x."
)


def ran(command: str, *, success: bool) -> list[Event]:
    """Return the events of a command."""
    given = msgspec.Raw(msgspec.json.encode({"command": command}))
    return [
        ToolStarted(id="c", name="run_shell", arguments=given),
        ToolFinished(id="c", name="run_shell", success=success, output="..."),
    ]


def turn(
    feedback: Feedback, decision: str, *events: Event, words: str = "", ends: EndReason = "done"
) -> dict[str, Any]:
    """Play a turn, and return what it says: rewards by decision and signal, and what is settled or void."""
    feedback.begin(words or decision)
    for event in (RequestStarted(model="m", decision=decision, reason="why"), *events):
        feedback.add(event)
    feedback.add(TurnFinished(reason=ends))
    feedback.end()
    return said(feedback)


def said(feedback: Feedback) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for label in feedback.take():
        if label.signal is not None:
            found[f"{label.decision} {label.signal.name}"] = (
                label.signal.reward,
                label.signal.weight,
            )
        if label.settles or label.void:
            found[label.decision] = "void" if label.void else "settled"
    return found


@every_row(
    "events, expected",
    [
        ([EDIT, *ran("pytest -q", success=True)], (1.0, 1.0)),
        ([EDIT, *ran("cd x && make check", success=False)], (0.0, 1.0)),
        ([EDIT, *ran("npm run build", success=False), *ran("npm test", success=True)], (1.0, 1.0)),
        ([EDIT, *ran("cargo test", success=True), EDIT], None),
        ([*ran("pytest", success=False)], None),
        ([EDIT, *ran("echo pytested", success=True)], None),
    ],
)
def test_the_last_test_or_build_after_the_last_edit_counts(events: list[Event], expected: Any):
    found = turn(Feedback(), "d", *events)
    assert found.get("d checked") == expected
    assert found.get("d") == ("settled" if expected else None)


def test_calls_that_could_not_be_run_and_edits_that_were_refused_count_by_their_share():
    found = turn(Feedback(), "d", INVALID, EDIT, EDIT, REFUSED)
    assert found["d invalid calls"] == (0.75, 0.4)
    assert found["d refused edits"][1] == 0.4
    assert 0.6 < found["d refused edits"][0] < 0.7


@every_row(
    "ends, expected",
    [
        ("interrupted", {"d cancelled": (0.0, 0.4)}),
        ("loop", {"d loop": (0.0, 0.4)}),
        ("limit", {"d limit": (0.0, 0.4)}),
        ("error", {"d": "void"}),
        ("done", {}),
    ],
)
def test_how_a_turn_ended_counts(ends: EndReason, expected: dict[str, Any]):
    assert turn(Feedback(), "d", ends=ends) == expected


def test_changes_that_are_kept_count_when_two_more_turns_have_passed_or_the_session_ends():
    feedback = Feedback()
    turn(feedback, "one")
    feedback.add(FilesChanged(checkpoint="c1"))
    assert turn(feedback, "two") == {}
    assert turn(feedback, "three") == {"one kept": (1.0, 0.7), "one": "settled"}
    feedback.add(FilesChanged(checkpoint="c3"))
    feedback.close()
    assert said(feedback) == {"two": "settled", "three kept": (1.0, 0.7), "three": "settled"}


def test_what_is_undone_counts_against_its_turn_unless_it_is_done_again():
    feedback = Feedback()
    turn(feedback, "one", FilesChanged(checkpoint="c1"))
    turn(feedback, "two", FilesChanged(checkpoint="c2"))
    feedback.add(FilesRestored(checkpoints=("c2", "c1")))
    assert said(feedback) == {"one kept": (0.0, 0.7), "two kept": (0.0, 0.7)}
    feedback.add(FilesRestored(checkpoints=("c1",), is_redo=True))
    assert said(feedback) == {"one kept": (1.0, 0.7)}
    feedback.close()
    assert said(feedback) == {"one kept": (1.0, 0.7), "one": "settled", "two": "settled"}


def test_a_turn_without_files_that_is_taken_back_counts_too_and_a_cleared_conversation_does_not():
    feedback = Feedback()
    turn(feedback, "one")
    feedback.add(Rewound(keeps=0))
    assert said(feedback) == {}
    feedback.add(Rewound(keeps=4))
    assert said(feedback) == {"one kept": (0.0, 0.7)}


def test_who_asks_again_was_not_answered_within_two_turns():
    feedback = Feedback()
    turn(feedback, "one", words="make the parser accept tabs")
    found = turn(feedback, "two", words="no, make the parser accept tabs too")
    assert found == {"one asked again": (0.0, 0.6)}
    turn(feedback, "three", words="now write the changelog entry")
    assert "two asked again" not in turn(feedback, "four", words="what is the weather")
    assert turn(feedback, "five", words="make the parser accept tabs").get("one") is None


def test_another_model_in_the_same_turn_answers_for_what_comes_after_it_alone():
    feedback = Feedback()
    second = RequestStarted(model="m", decision="two", reason="why")
    found = turn(feedback, "one", INVALID, second, EDIT, *ran("pytest", success=True))
    assert found == {"two checked": (1.0, 1.0), "two": "settled"}
    assert feedback.last == "two"


@every_row(
    "words, is_again",
    [
        ("No, that is not it", True),
        ("still failing", True),
        ("that's wrong", True),
        ("add a test for tabs in the lexer please", True),
        ("nothing else to do here today", False),
        ("/undo", False),
        ("", False),
    ],
)
def test_prompts_that_ask_for_the_same_are_known(words: str, is_again: bool):
    assert asks_again(words, "please add a test for tabs in the lexer") is is_again


def test_before_any_turn_there_is_nothing_to_say():
    feedback = Feedback()
    feedback.add(EDIT)
    feedback.add(FilesChanged(checkpoint="c"))
    feedback.close()
    assert (feedback.last, feedback.take()) == ("", [])


def test_a_command_of_the_persons_went_as_before_unless_they_had_to_say_more():
    feedback = Feedback()
    more = UserSaid(content="and the tests")
    assert turn(feedback, "plain", more) == {}
    feedback.expect_command()
    assert turn(feedback, "good") == {"good as before": (1.0, 0.4)}
    feedback.expect_command()
    assert turn(feedback, "bad", more)["bad as before"] == (0.0, 0.4)
    feedback.expect_command()
    own = UserSaid(content="a summary", origin="guard")
    assert turn(feedback, "own", own)["own as before"] == (1.0, 0.4)
    assert "after as before" not in turn(feedback, "after", more)
