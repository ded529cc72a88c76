"""The last exchange of a resumed session, so that a frontend can draw it again."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from ybs.core.envelope import Envelope
from ybs.core.events import (
    AssistantSaid,
    ConfirmationAnswered,
    ConfirmationAsked,
    Event,
    Noticed,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import AssistantMessage, Message, ToolCall, ToolResult, Usage, UserMessage
from ybs.session.injection import command_of

#: So many steps are drawn again, those before the answer.
MOST_STEPS: Final = 6
#: Lines of the person's words that are drawn again.
MOST_LINES: Final = 8
#: Of the exchanges before the last one so many are drawn again, and of their answers so many lines of so many characters.
MOST_EARLIER: Final = 4
MOST_ANSWER_LINES: Final = 6
_LONGEST_ANSWER: Final = 600

#: How the turn ended that began at a place of the conversation; None where that is not known.
Ends: TypeAlias = Mapping[int, TurnFinished | None]
#: What stands beside the conversation: events by the id of the call of the main agent that ended next.
Beside: TypeAlias = Mapping[str, Sequence[Event | Envelope]]
#: Of a sub-agent's turn these are enough to draw it again.
_TOLD = (UserSaid, AssistantSaid, Noticed, ToolStarted, ToolFinished, TurnFinished)


def told_beside(earlier: Iterable[Envelope]) -> Beside:
    """Return what sub-agents told, and the questions that nobody answered. Behind the last call of all the id is empty."""
    beside: dict[str, list[Event | Envelope]] = {}
    waiting: list[Event | Envelope] = []
    asked: dict[str, ConfirmationAsked] = {}
    for envelope in earlier:
        match envelope.event:
            case event if not envelope.is_main:
                waiting += [envelope] * isinstance(event, _TOLD)
            case ConfirmationAsked() as event:
                asked[event.id] = event
            case ConfirmationAnswered(id=call_id):
                asked.pop(call_id, None)
            case ToolFinished(id=call_id):
                unanswered = [asked.pop(call_id)] if call_id in asked else []
                beside[call_id] = [*unanswered, *waiting]
                waiting = []
            case TurnFinished():
                beside[""], waiting = waiting, []
            case _:
                pass
    return beside


def last_exchange(
    messages: Sequence[Message], ends: Ends | None = None, beside: Beside | None = None
) -> tuple[Event | Envelope, ...]:
    """Return what was said and done since the last turn began, and why it ended where it was not done."""
    ends = ends or {}
    place = max((each for each in ends if each < len(messages)), default=-1)
    begin = max(_last_beginning(messages), place)
    if begin < 0:
        return ()
    last = messages[begin:]
    results = {each.call_id: each for each in last if isinstance(each, ToolResult)}
    steps = _events(last, results, max(0, len(results) - MOST_STEPS), beside or {})
    return (*steps, *_ending(begin, ends, last))


def earlier_exchanges(messages: Sequence[Message], ends: Ends | None = None) -> tuple[Event, ...]:
    """Return the exchanges before the last one: what the person said and the answer, the oldest of them as a number.

    `ends` has where turns began: one that failed or was stopped has no answer to tell it from the next.
    """
    ends = ends or {}
    turns = (place for place in ends if 0 <= place < len(messages))
    begins = sorted({*_beginnings(messages), *turns})
    shown = begins[:-1][-MOST_EARLIER:]
    events: list[Event] = []
    if (hidden := len(begins) - 1 - len(shown)) > 0:
        prompts = "prompt is" if hidden == 1 else "prompts are"
        events.append(Noticed(level="info", text=f"{hidden} earlier {prompts} not shown"))
    for begin in shown:
        end = begins[begins.index(begin) + 1]
        events += _told_shortly(messages[begin:end])
        events += _ending(begin, ends, messages[begin:end])
    return tuple(events)


def _ending(begin: int, ends: Ends, messages: Sequence[Message]) -> Iterator[Event]:
    """Say why the turn that began there ended, where it was not done."""
    end = ends.get(begin)
    if end is not None and end.reason != "done":
        yield replace(end, usage=Usage())
    elif end is None and begin in ends and not isinstance(messages[-1], AssistantMessage):
        yield Noticed(level="warning", text="ybs ended before this turn did")


def _told_shortly(messages: Sequence[Message]) -> Iterator[Event]:
    """Say what the person said, how many steps were taken, and the answer in a few lines."""
    answer, steps = "", 0
    for message in messages:
        match message:
            case UserMessage(origin="person" | "shell"):
                yield UserSaid(content=_shortened(message), origin=message.origin)
            case AssistantMessage():
                steps += len(message.calls)
                answer = message.text or answer
            case _:
                pass
    if steps:
        yield Noticed(level="info", text=f"{steps} step{'s' * (steps > 1)}")
    if answer:
        lines = answer[:_LONGEST_ANSWER].strip("\n").split("\n")
        is_cut = len(answer) > _LONGEST_ANSWER or len(lines) > MOST_ANSWER_LINES
        yield AssistantSaid(content="\n".join([*lines[:MOST_ANSWER_LINES], *["…"] * is_cut]))


def _last_beginning(messages: Sequence[Message]) -> int:
    """Return where the person last spoke after an answer that asked for nothing more; -1 for nowhere."""
    return next(reversed(_beginnings(messages)), -1)


def _beginnings(messages: Sequence[Message]) -> list[int]:
    """Return where the person spoke after an answer that asked for nothing more."""
    begins, is_open = list[int](), False
    for place, message in enumerate(messages):
        match message:
            case UserMessage(origin="person" | "shell") if not is_open:
                begins.append(place)
                is_open = True
            case AssistantMessage():
                is_open = bool(message.calls)
            case _:
                pass
    return begins


def _events(
    messages: Sequence[Message], results: dict[str, ToolResult], hidden: int, beside: Beside
) -> Iterator[Event | Envelope]:
    """Show all but the first `hidden` steps; what was said between those is left out too."""
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
                    yield from _step(call, results.get(call.id), number - hidden, beside)
                if message.stop_reason == "cut_off":
                    yield Noticed(level="info", text="it was stopped here")
            case _:
                pass
    yield from beside.get("", ())


def _step(
    call: ToolCall, result: ToolResult | None, number: int, beside: Beside
) -> Iterator[Event | Envelope]:
    """Show a step; those before the first that is shown have numbers below 1."""
    if number == 0:
        yield Noticed(level="info", text="earlier steps are left out")
    elif number > 0 and result is None:
        yield Noticed(level="warning", text=f"the session ended while {call.name} ran")
    elif number > 0 and result is not None:
        from ybs.tools.calls.describing import title_of  # only a session that goes on needs it

        title = title_of(call.name, bytes(call.arguments))
        yield ToolStarted(id=call.id, name=call.name, arguments=call.arguments, title=title)
        yield from beside.get(call.id, ())
        yield ToolFinished.of(result)


def _shortened(message: UserMessage) -> str:
    """Return the person's words without what was attached; of a command, the command."""
    if message.origin == "shell":
        return f"!{command_of(message.words)}"
    lines = message.words.strip("\n").split("\n")
    return "\n".join([*lines[:MOST_LINES], *["…"] * (len(lines) > MOST_LINES)])
