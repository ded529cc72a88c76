"""Loop detection: repeats count only while the workspace stays as it is."""

from itertools import count

import pytest
from msgspec import Raw, json

from compacted import Shrinking
from rows import every_row
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.events import Event, TurnFinished, UserSaid
from ybs.core.messages import AssistantMessage, ToolCall, UserMessage
from ybs.core.ports import Guard, Turn
from ybs.core.remedies import Remedy
from ybs.guards.loops import PIVOT, REMINDER, Loops, repetitions
from ybs.testing import ScriptedModel, ScriptedToolbox


def call(number: int, name: str = "look", arguments: bytes = b"{}") -> ToolCall:
    return ToolCall(id=f"call_{number}", name=name, arguments=Raw(arguments))


async def run(
    model: ScriptedModel, tools: ScriptedToolbox, guard: Loops
) -> tuple[TurnFinished, list[Event]]:
    events: list[Event] = []
    agent = Agent(model, tools, events.append, Conversation("system"), [guard])
    return await agent.run(UserMessage.of("go")), events


def reminders(events: list[Event]) -> list[str]:
    return [e.content for e in events if isinstance(e, UserSaid) and e.origin == "guard"]


async def test_the_same_call_is_reminded_at_three_told_to_change_at_five_and_stopped_at_seven():
    model = ScriptedModel([call(n) for n in range(20)])
    finished, events = await run(model, ScriptedToolbox({"look": "same"}), Loops(lambda: "still"))
    assert finished.reason == "loop"
    assert "the same call came back 7 times" in finished.message
    assert Remedy("change_model") in finished.remedies
    assert finished.steps == 7
    assert reminders(events) == [REMINDER.format(count=3), PIVOT.format(count=5)]


@pytest.mark.integration
@every_row(
    ("name", "command"),
    [
        ("run_shell", "sleep 1; cat state"),
        ("run_shell", "cat state || sleep 2"),
        ("run_shell", "python3 -c 'import time; time.sleep(1)'"),
        ("run_shell", "for i in 1 2; do sleep 1; done; cat state"),
        ("run_shell", "cd x && wait $PID; tail log"),
        ("run_shell", "gh pr checks 12 --watch"),
        ("run_shell", "kubectl wait --for=condition=ready pod/x"),
        ("shell_job", ""),
    ],
)
async def test_a_call_that_waits_may_come_back_many_times_and_not_for_ever(name: str, command: str):
    arguments = json.encode({"command": command})
    model = ScriptedModel([*(call(n, name, arguments) for n in range(17)), "done"])
    finished, events = await run(model, ScriptedToolbox({name: "pending"}), Loops(lambda: "still"))
    assert finished.reason == "done"
    assert reminders(events) == []
    model = ScriptedModel([call(n, name, arguments) for n in range(60)])
    finished, events = await run(model, ScriptedToolbox({name: "pending"}), Loops(lambda: "still"))
    assert (finished.reason, finished.steps) == ("loop", 42)
    assert reminders(events) == [REMINDER.format(count=18), PIVOT.format(count=30)]


@every_row(
    "command", ["pytest -q", "grep -rn sleep src", "echo sleep 5", "timeout 5 pytest", "git watch"]
)
async def test_a_command_that_only_names_waiting_is_a_loop_as_any_other(command: str):
    arguments = json.encode({"command": command})
    model = ScriptedModel([call(n, "run_shell", arguments) for n in range(20)])
    tools = ScriptedToolbox({"run_shell": "same"})
    finished, _ = await run(model, tools, Loops(lambda: "still"))
    assert (finished.reason, finished.steps) == ("loop", 7)


async def test_a_loop_is_noticed_across_compactions():
    model = ScriptedModel([call(n) for n in range(20)])
    tools, events = ScriptedToolbox({"look": "same"}), list[Event]()
    guards = [Loops(lambda: "still"), Shrinking()]
    agent = Agent(model, tools, events.append, Conversation("system"), guards)
    finished = await agent.run(UserMessage.of("go"))
    assert (finished.reason, finished.steps) == ("loop", 7)
    assert reminders(events) == [REMINDER.format(count=3), PIVOT.format(count=5)]


async def test_results_that_differ_only_in_their_duration_are_the_same():
    numbers = count()
    tools = ScriptedToolbox({"look": lambda _call, _emit: f"1 passed in 0.{next(numbers)} s"})
    finished, _ = await run(
        ScriptedModel([call(n) for n in range(20)]), tools, Loops(lambda: "still")
    )
    assert finished.reason == "loop"


async def test_a_call_that_repeats_while_files_change_is_no_loop():
    model = ScriptedModel([*(call(n) for n in range(12)), "done"])
    marks = count()
    finished, events = await run(
        model, ScriptedToolbox({"look": "same"}), Loops(lambda: str(next(marks)))
    )
    assert finished.reason == "done"
    assert reminders(events) == []


async def test_the_same_call_with_different_results_is_no_loop():
    numbers = count()
    tools = ScriptedToolbox({"look": lambda _call, _emit: f"line {next(numbers)}"})
    model = ScriptedModel([*(call(n) for n in range(12)), "done"])

    def never() -> str:
        raise AssertionError("nothing repeats, so the files need no look")

    finished, _ = await run(model, tools, Loops(never))
    assert finished.reason == "done"


@every_row("length", [2, 3, 4, 5])
async def test_a_cycle_of_up_to_five_calls_is_a_loop(length: int):
    script = [call(n, arguments=b'{"n":%d}' % (n % length)) for n in range(8 * length)]
    finished, _ = await run(
        ScriptedModel(script), ScriptedToolbox({"look": "same"}), Loops(lambda: "still")
    )
    assert finished.reason == "loop"
    assert f"the same {length} calls" in finished.message
    assert finished.steps == 7 * length


async def test_a_cycle_of_six_is_left_alone():
    script = [*(call(n, arguments=b'{"n":%d}' % (n % 6)) for n in range(60)), "done"]
    finished, _ = await run(
        ScriptedModel(script), ScriptedToolbox({"look": "same"}), Loops(lambda: "still")
    )
    assert finished.reason == "done"


async def test_a_change_of_files_in_between_starts_the_count_again():
    marks = iter(["a", "a", "b", *["b"] * 20])
    model = ScriptedModel([call(n) for n in range(20)])
    finished, _ = await run(model, ScriptedToolbox({"look": "same"}), Loops(lambda: next(marks)))
    assert finished.reason == "loop"
    assert (
        finished.steps == 10
    )  # the change is seen before the fifth step; seven more follow from the fourth on


async def test_a_new_turn_starts_from_nothing():
    guard = Loops(lambda: "still")
    for _ in range(3):
        finished, events = await run(
            ScriptedModel([call(0), call(1), "done"]), ScriptedToolbox({"look": "same"}), guard
        )
        assert finished.reason == "done"
        assert reminders(events) == []


class Words(Guard):
    """Puts words of the person into the turn before a step."""

    def __init__(self, before: int) -> None:
        self._before = before

    async def before_step(self, turn: Turn) -> None:
        if turn.steps == self._before:
            turn.say(UserMessage.of("look again, it changed"))


async def test_words_of_the_person_in_between_start_the_count_again():
    model, tools = ScriptedModel([call(n) for n in range(20)]), ScriptedToolbox({"look": "same"})
    events: list[Event] = []
    guards = [Words(before=4), Loops(lambda: "still")]
    agent = Agent(model, tools, events.append, Conversation("system"), guards)
    finished = await agent.run(UserMessage.of("go"))
    assert (finished.reason, finished.steps) == ("loop", 4 + 7)
    assert reminders(events) == [
        REMINDER.format(count=3),
        REMINDER.format(count=3),
        PIVOT.format(count=5),
    ]


async def test_a_reminder_is_said_once_for_each_count():
    guard, events = Loops(lambda: "still"), list[Event]()
    turn = Turn(Conversation("system"), events.append)
    turn.say(UserMessage.of("go"))
    for number in range(3):
        turn.conversation.append(AssistantMessage(content=(call(number),)))
        turn.conversation.close_open_calls()
    for _ in range(3):  # nothing new was said or done between these
        await guard.before_step(turn)
    assert reminders(events) == [REMINDER.format(count=3)]


async def test_a_step_of_its_own_forgets_what_was_told_about_the_loop_before():
    script = [*(call(n) for n in range(3)), call(3, arguments=b'{"n":1}')]
    script += [call(n) for n in range(4, 8)]
    model = ScriptedModel([*script, "done"])
    finished, events = await run(model, ScriptedToolbox({"look": "same"}), Loops(lambda: "still"))
    assert finished.reason == "done"
    assert reminders(events) == [REMINDER.format(count=3)] * 2


@every_row(
    ("letters", "expected"),
    [
        ("", (1, 1)),
        ("a", (1, 1)),
        ("ab", (1, 1)),
        ("aa", (2, 1)),
        ("abab", (2, 2)),
        ("xaaa", (3, 1)),
    ],
)
def test_repetitions_counts_the_cycle_at_the_end(letters: str, expected: tuple[int, int]):
    assert repetitions([ord(letter) for letter in letters]) == expected
