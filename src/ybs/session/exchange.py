"""The last exchange of a session that goes on: what was said and done last, so that a frontend can draw it again."""

from collections.abc import Iterator, Sequence
from typing import Final

from ybs.core.events import (
    AssistantSaid,
    Event,
    Noticed,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from ybs.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from ybs.session.injection import command_of

#: So many steps are drawn again, those before the answer.
MOST_STEPS: Final = 6
#: Lines of the person's words that are drawn again.
MOST_LINES: Final = 8


def last_exchange(messages: Sequence[Message], place: int = -1) -> tuple[Event, ...]:
    """Return what was said and done since the last turn began: at `place`, or later as far as can be told."""
    begin = max(_last_beginning(messages), place if place < len(messages) else -1)
    if begin < 0:
        return ()
    last = messages[begin:]
    results = {each.call_id: each for each in last if isinstance(each, ToolResult)}
    return tuple(_events(last, results, max(0, len(results) - MOST_STEPS)))


def _last_beginning(messages: Sequence[Message]) -> int:
    """Return where the person last spoke after an answer that asked for nothing more; -1 for nowhere."""
    begin, is_open = -1, False
    for place, message in enumerate(messages):
        match message:
            case UserMessage(origin="person" | "shell") if not is_open:
                begin, is_open = place, True
            case AssistantMessage():
                is_open = bool(message.calls)
            case _:
                pass
    return begin


def _events(
    messages: Sequence[Message], results: dict[str, ToolResult], hidden: int
) -> Iterator[Event]:
    """Tell all but the first `hidden` steps; what was said between those is left out too."""
    steps = 0
    for message in messages:
        match message:
            case UserMessage(origin="person" | "shell"):
                yield UserSaid(content=_shortened(message), origin=message.origin)
            case AssistantMessage():
                calls = list(enumerate(message.calls, steps + 1))
                steps += len(calls)
                if steps > hidden or not calls:
                    yield AssistantSaid.of(message)
                for number, call in calls:
                    yield from _step(call, results.get(call.id), number - hidden)
                if message.stop_reason == "cut_off":
                    yield Noticed(level="info", text="it was stopped here")
            case _:
                pass


def _step(call: ToolCall, result: ToolResult | None, number: int) -> Iterator[Event]:
    """Tell a step; those before the first that is told have numbers below 1."""
    if number == 0:
        yield Noticed(level="info", text="earlier steps are left out")
    elif number > 0 and result is None:
        yield Noticed(level="warning", text=f"the session ended while {call.name} ran")
    elif number > 0 and result is not None:
        yield ToolStarted(id=call.id, name=call.name, arguments=call.arguments)
        yield ToolFinished.of(result)


def _shortened(message: UserMessage) -> str:
    """Return the person's words without what was attached; of a command, the command."""
    if message.origin == "shell":
        return f"!{command_of(message.words)}"
    lines = message.words.strip("\n").split("\n")
    return "\n".join([*lines[:MOST_LINES], *["…"] * (len(lines) > MOST_LINES)])
