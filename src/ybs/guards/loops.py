"""Loop detection: the same calls with the same results count only while the workspace stays as it is.

A cycle of up to five calls that repeats is answered step by step: a reminder, then the demand to change the
approach, then the end of the turn with reason `loop`. One that waits, such as `sleep 5; cat state`, may repeat more
often: time passes, and what it waits for may not be in the project.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, json

from ybs.core.errors import StopTurn
from ybs.core.lazy import lazy
from ybs.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Guard, Turn
from ybs.core.remedies import Remedy

LONGEST_CYCLE = 5
REMIND_AT, PIVOT_AT, STOP_AT = 3, 5, 7
#: As many times as often where a call waits.
PATIENCE = 6

REMINDER = (
    "You have made the same call {count} times and got the same result each time; nothing in the project "
    "changed in between. Use that result: do the next thing, or say what is in the way."
)
PIVOT = (
    "The same calls came back {count} times with the same results. This way does not work. Take a different "
    "approach: another tool, another file, another idea. If you have none, stop and ask the person."
)
STOPPED = "Stopped: the same {what} came back {count} times with no change in the project."
DIFFERENTLY = (Remedy("change_model"), Remedy("do", "say what to do differently"))
#: Times differ from run to run and make no difference.
_WAITS = lazy(
    r"(?:^|[;&|(\n]|\b(?:do|then|else)\s)\s*(?:sleep|wait|inotifywait|read\s+-t)\b|\btime\.sleep\("
    r"|\b(?:kubectl|oc|docker|podman|gh)\s[^;&|\n]*\b(?:wait|watch)\b"
)
_WAIT_WORDS = ("sleep", "wait", "read", "watch")
_WAITING_TOOL = "shell_job"
DURATION = lazy(r"\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds)\b")


class Loops(Guard):
    """Counts repetitions. `fingerprint` returns a value that changes when a file of the project does.

    It may be slow (it looks at every file), so it is asked only once something repeats, in a thread.
    """

    def __init__(self, fingerprint: Callable[[], str]) -> None:
        self._fingerprint = fingerprint
        self._begin(None)

    def _begin(self, turn: Turn | None) -> None:
        self._turn = turn
        self._steps: list[_Step] = []
        self._read: Message | None = None
        self._mark: str | None = None
        self._since = 0
        self._told = 0

    async def before_step(self, turn: Turn) -> None:
        """Remind at 3 repetitions, demand a change at 5, stop at 7."""
        messages = turn.messages
        new = None if turn is not self._turn else said_since(self._read, messages)
        if new is None:
            self._begin(turn)
            new = messages
        said = [
            at for at, m in enumerate(new) if isinstance(m, UserMessage) and m.origin == "person"
        ]
        if said:  # whoever was told something new is not going round in circles yet
            self._since = len(self._steps) + len(steps_of(new[: said[-1]]))
        self._steps += steps_of(new)
        self._read = messages[-1]
        count, length = repetitions(self._steps[self._since :])
        if count < 2:
            self._mark, self._told = None, 0
            return
        mark = await asyncio.to_thread(self._fingerprint)
        if self._mark is not None and mark != self._mark:
            self._since, count = len(self._steps) - 1, 1
        self._mark = mark
        self._act(turn, count, length)

    def _act(self, turn: Turn, count: int, length: int) -> None:
        waits = any(step.waits for step in self._steps[-length:])
        times = PATIENCE if waits else 1
        if count >= STOP_AT * times:
            what = "call" if length == 1 else f"{length} calls"
            text = STOPPED.format(what=what, count=count)
            raise StopTurn("loop", text, remedies=DIFFERENTLY)
        if count == self._told:
            return
        self._told = count
        if count == REMIND_AT * times:
            turn.say(UserMessage.of(REMINDER.format(count=count), origin="guard"))
        elif count == PIVOT_AT * times:
            turn.say(UserMessage.of(PIVOT.format(count=count), origin="guard"))


def said_since(read: Message | None, messages: Sequence[Message]) -> Sequence[Message] | None:
    """Return what stands behind a message, also where a compaction has cut its output; None where it is gone."""
    answered = read.call_id if isinstance(read, ToolResult) else None
    for at in range(len(messages), 0, -1):
        message = messages[at - 1]
        if message is read or (isinstance(message, ToolResult) and message.call_id == answered):
            return messages[at:]
    return None


class _Step(Struct, frozen=True):
    """The calls of a step with their results, as a number: equal ones have equal numbers. `waits`: one of them does."""

    number: int
    waits: bool


def steps_of(messages: Sequence[Message]) -> list[_Step]:
    """Describe each step."""
    results = {m.call_id: m.output for m in messages if isinstance(m, ToolResult)}

    def described(call: ToolCall) -> tuple[str, str | bytes, str]:
        output = DURATION().sub("", results.get(call.id, ""))
        return call.name, call.invalid or bytes(call.arguments), output

    return [
        _Step(hash(tuple(map(described, message.calls))), any(map(_waits, message.calls)))
        for message in messages
        if isinstance(message, AssistantMessage) and message.calls
    ]


def _waits(call: ToolCall) -> bool:
    """Return whether a call lets time pass, by what it runs."""
    if call.name == _WAITING_TOOL:
        return True
    command = json.decode(call.arguments, type=dict[str, Any]).get("command")
    if not isinstance(command, str) or not any(word in command for word in _WAIT_WORDS):
        return False  # most: the expression need not be made for them
    return bool(_WAITS().search(command))


def repetitions(steps: Sequence[object]) -> tuple[int, int]:
    """Return how often the cycle at the end repeats, and its length; the highest count wins."""
    best = (1, 1)
    for length in range(1, LONGEST_CYCLE + 1):
        cycle = steps[len(steps) - length :]
        count, end = 1, len(steps) - length
        while end >= length and steps[end - length : end] == cycle:
            count, end = count + 1, end - length
        if count > best[0]:
            best = (count, length)
    return best
