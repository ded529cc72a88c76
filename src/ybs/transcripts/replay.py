"""Fold events into the conversation and the facts of a session, live and from a file alike."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import assert_never

from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.core.conversation import Conversation
from ybs.core.envelope import MAIN
from ybs.core.events import (
    AssistantSaid,
    Compacted,
    ConfirmationAnswered,
    ConfirmationAsked,
    Event,
    FilesChanged,
    FilesRestored,
    Noticed,
    PromptRead,
    Replaced,
    RequestRetried,
    RequestStarted,
    Rewound,
    SessionEnded,
    SessionStarted,
    StateChanged,
    SystemPrompted,
    TextStreamed,
    ThinkingStreamed,
    Titled,
    ToolCallStreamed,
    ToolFinished,
    ToolPrinted,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import AssistantMessage, Message, ToolCall, ToolResult
from ybs.transcripts.facts import SessionFacts
from ybs.transcripts.past_turns import PastTurns


class _Compaction(Struct, frozen=True):
    """What stood before a compaction, and what has stood in its place since."""

    before: list[Message]
    after: list[Message]

    def kept_in(self, now: list[Message]) -> "_Compaction | None":
        """Return what of it is still in force in a conversation that was cut or replaced; None for nothing."""
        if now[: len(self.after)] == self.after:
            return self
        if not now or self.after[: len(now)] != now:
            return None
        gone = self.after[
            len(now) :
        ]  # it was cut among the last turns, which the compaction had kept
        places = [place for place, each in enumerate(self.before) if each == gone[0]]
        same = gone.count(gone[0])
        return _Compaction(self.before[: places[-same]], now) if same <= len(places) else None


class Replay(SessionFacts):
    """The state that events leave. Feed every event, in order, with the number of its line.

    A rewind cuts the conversation; what was spent, and what changed in files, stays. The conversation is the main
    agent's: of a sub-agent only what it used is counted.
    """

    def __init__(self) -> None:
        super().__init__()
        #: The turns that can be taken back.
        self.past_turns = PastTurns()
        self._conversation = Conversation()
        self._results: dict[str, ToolResult] = {}
        #: The line that brought each message, and the last line that brought none before the first.
        self._lines: list[int] = []
        self._line_before_all = self._last_line = 0
        self._compactions: list[_Compaction] = []

    def add(self, event: Event, number: int = 0, *, agent: str = MAIN) -> None:
        """Take an event."""
        super().add(event, agent=agent)
        if agent == MAIN:
            self._say(event)
            self.past_turns.add(event, self._conversation.messages)
        self._last_line = number
        count = len(self._conversation.messages)
        self._lines += [number] * (count - len(self._lines))
        if not count:
            self._line_before_all = number

    @property
    def messages(self) -> list[Message]:
        """The conversation. Calls of its last answer may be open."""
        return [*self._conversation.messages, *self._waiting()]

    @property
    def system(self) -> str:
        """The system prompt."""
        return self._conversation.system

    def restorable(self) -> list[Message] | None:
        """Return what stood before the last compaction with what was said since; None where there was none."""
        if not self._compactions:
            return None
        last = self._compactions[-1]
        return [*last.before, *self.messages[len(last.after) :]]

    def line_of(self, keeps: int) -> int:
        """Return the line to go back to so that the first `keeps` messages are there."""
        if keeps <= 0:
            return self._line_before_all
        if keeps >= len(self._lines):
            return self._last_line
        # What was told behind the last message that stays, such as the end of its turn, stays too.
        first_gone = self._lines[keeps]
        return first_gone if self._lines[keeps - 1] == first_gone else first_gone - 1

    def count_until(self, number: int) -> int:
        """Return how many messages the lines up to that one brought."""
        if number >= self._last_line:
            return len(self.messages)  # with results that stand in no line of their own yet
        return bisect_right(self._lines, number)

    def _say(self, event: Event) -> None:
        match event:
            case SystemPrompted():
                self._conversation.instruct(event.content)
            case UserSaid() | AssistantSaid():
                self._take_results()
                self._conversation.append(event.message)
            case ToolStarted():
                self._take_call(event)
            case ToolFinished():
                self._answer(event.result)
            case Compacted() | Replaced() | Rewound():
                self._rewrite(event)
            case (
                TextStreamed()
                | ThinkingStreamed()
                | ToolCallStreamed()
                | ToolPrinted()
                | RequestStarted()
                | RequestRetried()
                | PromptRead()
                | ConfirmationAsked()
                | ConfirmationAnswered()
                | Noticed()
                | TurnFinished()
                | SessionStarted()
                | SessionEnded()
                | StateChanged()
                | Titled()
                | FilesChanged()
                | FilesRestored()
            ):
                pass  # not in the conversation
            case _:
                assert_never(event)

    def _take_call(self, event: ToolStarted) -> None:
        """Take a call that no answer holds: its line is damaged, or was written in the specification's own form (6.5).

        It belongs to the answer right before it, if nothing stands between, or is one by itself.
        """
        messages = self._conversation.messages
        if any(call.id == event.id for call in self._conversation.open_calls):
            return
        is_object = bytes(event.arguments).lstrip()[:1] == b"{"
        arguments = event.arguments if is_object else Raw(b"{}")
        call = ToolCall(id=event.id, name=event.name, arguments=arguments)
        answer = AssistantMessage(content=(call,), stop_reason="tool_calls")
        if messages and isinstance(last := messages[-1], AssistantMessage) and not self._results:
            answer = replace(last, content=(*last.content, call), stop_reason="tool_calls")
            self._conversation.cut(len(messages) - 1)
        self._take_results()
        self._conversation.append(answer)

    def _answer(self, result: ToolResult) -> None:
        """Keep a result until all are there: they come as they finish, and stand in the order asked."""
        names = {call.id: call.name for call in self._conversation.open_calls}
        still_open = names.keys() - self._results.keys()
        if result.call_id in still_open:
            if not result.name:  # the specification's own form has none
                result = replace(result, name=names[result.call_id])
            self._results[result.call_id] = result
            if len(still_open) == 1:
                self._take_results()

    def _take_results(self) -> None:
        for result in self._waiting():
            self._conversation.append(result)
        self._results.clear()

    def _waiting(self) -> list[ToolResult]:
        if not self._results:
            return []
        calls = self._conversation.open_calls
        return [self._results[call.id] for call in calls if call.id in self._results]

    def _rewrite(self, event: Compacted | Replaced | Rewound) -> None:
        self._take_results()
        before = list(self._conversation.messages)
        if isinstance(event, Rewound):
            keeps = max(event.keeps, 0)
            self._conversation.cut(keeps)
            del self._lines[keeps:]
        else:
            self._fill(event.messages)
            self._lines.clear()
        after = list(self._conversation.messages)
        if isinstance(event, Compacted):
            self._compactions.append(_Compaction(before, after))
            return
        while self._compactions:  # each stands in what was before the next one
            if kept := self._compactions.pop().kept_in(after):
                self._compactions.append(kept)
                break

    def _fill(self, messages: Iterable[Message]) -> None:
        """Put other messages in the place of the conversation; those that a hand has spoiled are left out."""
        self._conversation.replace(())
        for message in messages:
            try:
                self._conversation.append(message)
            except ValueError:  # a result that nobody asked for
                continue
