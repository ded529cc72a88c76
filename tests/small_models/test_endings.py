"""How turns of small models end: what such models were seen to do, played by a script."""

from collections.abc import Sequence
from typing import Any

from rows import every_row
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.errors import Refused, ToolError
from ybs.core.events import Event, TurnFinished, UserSaid
from ybs.core.messages import AssistantMessage, ToolCall, UserMessage
from ybs.small_models.endings import (
    AGAIN,
    ANNOUNCED,
    CLAIMED,
    KNOWN,
    LAST,
    STOPPED,
    UNDONE,
    UNPROVEN,
    Endings,
)
from ybs.small_models.intents import wants_action
from ybs.testing import ScriptedModel, ScriptedToolbox, answer, call

READ = "read_file"


async def run(
    script: Sequence[Any], words: str = "Add a line to notes.txt.", **tools: Any
) -> tuple[TurnFinished, list[str], str]:
    """Return how the turn ended, what the guard said, and the answer."""
    events: list[Event] = []
    endings = Endings(lambda call: call.name == READ, wants_action)
    toolbox = ScriptedToolbox(
        {READ: "1\tmilk", "edit_file": "Edited notes.txt: 1 replacement.", **tools}
    )
    conversation = Conversation("system")
    model = endings.bounding(ScriptedModel(script))
    finished = await Agent(model, toolbox, events.append, conversation, [endings]).run(
        UserMessage.of(words)
    )
    said = [e.content for e in events if isinstance(e, UserSaid) and e.origin == "guard"]
    last = [m for m in conversation.messages if isinstance(m, AssistantMessage)][-1]
    return finished, said, last.text


def edit(old: str = "a", new: str = "b") -> ToolCall:
    return call("edit_file", path="notes.txt", old_text=old, new_text=new)


@every_row(
    "announcement",
    [
        "I need to look at the project structure.",
        "I add a line with the word milk.",
        "I will now open the file.",
        "Let me check the tests first.",
        "The file has three lines. Next, I'll add the new one.",
        "Sure! First, let's look at notes.txt.",
    ],
)
async def test_an_announcement_without_a_call_is_answered_with_a_reminder_once(announcement: str):
    finished, said, text = await run([announcement, announcement])
    assert (finished.reason, said, text) == ("done", [ANNOUNCED], announcement)


async def test_after_the_reminder_the_work_is_done():
    finished, said, text = await run(["I will add a line.", edit(), "The line is there."])
    assert (finished.reason, said, text) == ("done", [ANNOUNCED], "The line is there.")


@every_row(
    "claim",
    [
        "I have added the line.",
        "The line has been added to notes.txt.",
        "Fixed: the tests now pass.",
        "notes.txt was updated.",
    ],
)
async def test_a_claim_of_a_change_is_noticed_where_nothing_was_changed(claim: str):
    finished, said, _ = await run(
        [call(READ, path="notes.txt"), claim, "Sorry, it cannot be done."]
    )
    assert (finished.reason, said) == ("done", [CLAIMED])


@every_row(
    "words, text",
    [
        ("Who wrote it?", "It was written by Ada; the file was changed in May."),
        ("Add a line to a.txt.", "There is no file a.txt, so nothing was changed."),
        ("Add a line.", "To which file? I will add it there."),
        (
            "What is it for?",
            "It adds numbers, and I will say it in short: a calculator for the office.",
        ),
        ("Hello", "Good morning."),
        ("What does it do?", "Let users add an order."),
    ],
)
async def test_answers_are_left_alone(words: str, text: str):
    assert (await run([text], words))[1:] == ([], text)


async def test_who_has_changed_something_may_say_so():
    finished, said, _ = await run([edit(), "I have added the line. I will be glad to help again."])
    assert (finished.reason, said) == ("done", [])


async def test_a_change_that_failed_is_none():
    tools = {"edit_file": ToolError("old_text does not occur")}
    _, said, _ = await run([edit(), "I have added the line.", "It is not possible."], **tools)
    assert said == [CLAIMED]


async def test_who_was_refused_is_not_told_to_try_again():
    no = Refused("Refused: the person does not want it.")
    finished, said, _ = await run([edit(), "As you like: the file stays."], edit_file=no)
    assert (finished.reason, said) == ("done", [])


@every_row(
    "claim", ["The tests pass now.", "Fixed it. All tests passed.", "The build succeeds again."]
)
async def test_what_no_command_has_shown_is_not_said_to_pass(claim: str):
    script = [edit(), claim, call("run_shell", command="make all"), claim]
    finished, said, text = await run(script, run_shell="ok")
    assert (finished.reason, said, text) == ("done", [UNPROVEN], claim)


async def test_a_command_that_fails_after_the_change_shows_nothing_either():
    script = [edit(), call("run_shell", command="make all"), "The tests pass.", "They fail."]
    _, said, text = await run(script, run_shell=ToolError("[exit code 1]"))
    assert (said, text) == ([UNPROVEN], "They fail.")


@every_row(
    "script",
    [
        [call("run_shell", command="make all"), "The tests pass."],
        [edit(), call("run_shell", command="make all"), "The tests pass."],
        [edit(), "I do not know whether the tests pass."],
        [edit(), "It says now that you pass the test. Is that right?"],
        [edit(), "The line is there."],
    ],
)
async def test_what_is_known_or_not_said_needs_no_command(script: list[Any]):
    assert (await run(script, run_shell="ok"))[1] == []


async def test_who_may_not_run_anything_is_not_told_to():
    refused = Refused("Refused: the person does not want it.")
    script = [call("run_shell", command="make all"), edit(), "The tests pass."]
    assert (await run(script, run_shell=refused))[1] == []


NOT_FOUND = ToolError(
    "sh: 1: tally.sh: not found\n[exit code 127, 0.1 s]\n[tally.sh is a file here: run it as `sh tally.sh`.]"
)


def tally(call: ToolCall, _emit: Any) -> str | ToolError:
    return "4" if b"sh tally.sh" in bytes(call.arguments) else NOT_FOUND


@every_row(
    "words",
    ["Run tally.sh.", "What does `tally.sh 1` print?", "Write what tally.sh says to notes.txt."],
)
async def test_a_command_that_can_be_run_in_another_way_is_no_end(words: str):
    first, second = call("run_shell", command="tally.sh"), call("run_shell", command="sh tally.sh")
    script = [first, "There is no tally.sh.", second, "It says 4."]
    finished, said, text = await run(script, words, run_shell=tally)
    assert (finished.reason, said, text) == ("done", [AGAIN], "It says 4.")


@every_row(
    "words, script",
    [
        ("Run tally.sh.", ["Is it tally.sh?"]),
        ("What is tally.sh for?", ["It counts."]),
        ("Run tally.sh.", ["It is not there.", "It is not there."]),
    ],
)
async def test_a_command_that_was_not_found_ends_the_turn_where_it_has_to(words, script):
    finished, said, text = await run(
        [call("run_shell", command="tally.sh"), *script], words, run_shell=tally
    )
    assert (finished.reason, said, text) == ("done", [AGAIN] * (len(script) - 1), script[-1])


async def test_a_call_with_a_known_result_brings_a_reminder_then_the_last_word():
    look = call(READ, path="notes.txt")
    finished, said, text = await run([look, look, look, answer("It says milk.", edit())])
    assert (finished.reason, said, text) == ("done", [KNOWN, LAST], "It says milk.")


async def test_work_that_is_done_ends_a_turn_that_only_calls():
    """The calls of the last word are not made; what the tool said of the change is the answer."""
    script = [
        edit(),
        call(READ, path="x"),
        call(READ, path="x"),
        call(READ, path="x"),
        edit("c", "d"),
    ]
    finished, said, text = await run(script)
    assert (finished.reason, said) == ("done", [KNOWN, LAST])
    assert text == "Edited notes.txt: 1 replacement."


async def test_a_turn_that_only_repeats_and_says_nothing_is_stopped():
    finished, said, _ = await run([call(READ, path="x")] * 4)
    assert (finished.reason, finished.message) == ("loop", STOPPED)
    assert said == [KNOWN, LAST]


async def test_a_look_after_a_change_is_no_repetition():
    look = call(READ, path="notes.txt")
    _, said, _ = await run([look, edit(), look, "Now it says b."])
    assert said == []


async def test_an_edit_back_and_forth_is_noticed_and_ends():
    script = [edit(), edit("b", "a"), edit(), answer("The line is there.", edit("b", "a"))]
    finished, said, text = await run(script)
    assert (finished.reason, said, text) == ("done", [UNDONE, LAST], "The line is there.")


async def test_the_next_turn_begins_afresh():
    endings = Endings(lambda _call: True, wants_action)
    conversation, look = Conversation("system"), call(READ, path="x")
    for script in ([look, look, "Milk."], [look, look, "Milk."]):
        toolbox = ScriptedToolbox({READ: "milk"})
        model = endings.bounding(ScriptedModel(script))
        agent = Agent(model, toolbox, lambda _event: None, conversation, [endings])
        assert (await agent.run(UserMessage.of("What is in it?"))).reason == "done"
    assert [m.words for m in conversation.messages if isinstance(m, UserMessage)].count(KNOWN) == 2
