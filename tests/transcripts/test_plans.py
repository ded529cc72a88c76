"""Plans in answers: those under a heading, those of small models, and what is none."""

from rows import every_row
from ybs.core.events import AssistantSaid, UserSaid
from ybs.core.messages import AssistantMessage, Text, UserMessage
from ybs.transcripts.facts import GO_AHEAD, plan_in, proposed_plan
from ybs.transcripts.replay import Replay

STEPS = "1. edit a.py\n2. run the tests"


@every_row(
    ("text", "plan"),
    [
        (f"I looked.\n\nPlan:\n{STEPS}", f"Plan:\n{STEPS}"),
        (f"## Plan\n\n{STEPS}\n", f"## Plan\n\n{STEPS}"),
        (f"**Plan**\n{STEPS}", f"**Plan**\n{STEPS}"),
        (f"The plan:\n{STEPS}", f"The plan:\n{STEPS}"),
        (
            f"### Implementation Plan for the cart\n{STEPS}",
            f"### Implementation Plan for the cart\n{STEPS}",
        ),
        (f"Plan:\nold\n\nRevised plan:\n{STEPS}", f"Revised plan:\n{STEPS}"),
        ("Plan:", ""),
        ("I plan to look first.\nThen more.", ""),
        ("Planning is hard\nand slow", ""),
        ("The plan is bad. It fails.\nSorry.", ""),
        (STEPS, ""),
    ],
)
def test_a_plan_stands_under_its_heading(text: str, plan: str):
    assert plan_in(text) == plan


@every_row(
    ("text", "is_plan"),
    [
        (STEPS, True),
        ("Step 1: edit a.py\nStep 2: test", True),
        ("**1.** edit\n**2.** test", True),
        (f"{STEPS}\n\nWhich database do you want?", False),
        (f"Plan:\n{STEPS}\n\nIs that fine?", True),
        ("1. only one", False),
        ("It prints the total of the cart.", False),
        ("", False),
    ],
)
def test_in_the_mode_plan_numbered_steps_are_a_plan_unless_a_question_ends_them(
    text: str, is_plan: bool
):
    assert bool(proposed_plan(text)) == is_plan


def said(text: str) -> AssistantSaid:
    return AssistantSaid.of(AssistantMessage(content=(Text(text=text),)))


def test_a_transcript_gives_the_plan_that_was_proposed_or_agreed_to_last():
    replay = Replay()
    assert replay.plan == ""
    replay.add(said(f"Plan:\n{STEPS}"))
    replay.add(said("Done."))
    assert replay.plan == f"Plan:\n{STEPS}"
    replay.add(UserSaid.of(UserMessage.of(f"{GO_AHEAD}1. another")))
    assert replay.plan == "1. another"
