"""A history that is always valid to send: every tool call has its one answer, in order, before anyone speaks."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import assert_never

from msgspec import structs

from ybs.core.errors import ModelError
from ybs.core.events import AssistantSaid, Event, RequestRetried, RequestStarted, TextStreamed
from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.remedies import Remedy

_NONE: Mapping[str, ToolResult] = {}
CANCELLED = "Cancelled before it finished. It may have done part of its work."


class Conversation:
    """The system prompt and the messages of one session, oldest first."""

    def __init__(self, system: str = "", messages: Sequence[Message] = ()) -> None:
        self.system = system
        self._messages: list[Message] = []
        self._open: dict[str, ToolCall] = {}
        for message in messages:
            self.append(message)

    @property
    def messages(self) -> Sequence[Message]:
        """The messages so far. Not to be changed by the caller."""
        return self._messages

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the last answer that have no result yet."""
        return tuple(self._open.values())

    def append(self, message: Message) -> None:
        """Add a message. Open calls are closed first when somebody speaks instead of answering them.

        Raises ValueError for a result of a call that is not open.
        """
        match message:
            case ToolResult():
                if self._open.pop(message.call_id, None) is None:
                    raise ValueError(f"no open tool call has the id {message.call_id!r}")
                self._messages.append(message)
            case AssistantMessage():
                self.close_open_calls()
                if not message.content:
                    return  # an empty message cannot be sent back to most providers
                self._messages.append(message)
                self._open = {call.id: call for call in message.calls}
            case UserMessage():
                self.close_open_calls()
                self._messages.append(message)
            case _:
                assert_never(message)

    def close_open_calls(self, results: Mapping[str, ToolResult] = _NONE) -> list[ToolResult]:
        """Answer every open call, in the order asked, with its result or as cancelled.

        `results` are by call id. Returns those that had to be made up.
        """
        made_up: list[ToolResult] = []
        for call in self.open_calls:
            result = results.get(call.id)
            if result is None:
                result = ToolResult(
                    call_id=call.id, name=call.name, output=CANCELLED, is_error=True
                )
                made_up.append(result)
            self.append(result)
        return made_up

    def cut(self, keeps: int) -> None:
        """Keep so many messages, the oldest. Calls of the last answer are open where their results are gone."""
        begin = keeps = max(min(keeps, len(self._messages)), 0)
        while begin and isinstance(self._messages[begin - 1], ToolResult):
            begin -= 1
        begin = max(begin - 1, 0)
        newest, self._messages[begin:], self._open = self._messages[begin:keeps], [], {}
        for message in newest:
            self.append(message)

    def instruct(self, system: str) -> None:
        """Have another system prompt from now on."""
        self.system = system

    def replace(self, messages: Sequence[Message], *, system: str | None = None) -> None:
        """Put another history in place of this one (compaction, undo, resume)."""
        if system is not None:
            self.system = system
        self._messages, self._open = [], {}
        for message in messages:
            self.append(message)


class Draft:
    """An answer in the making: it keeps what was streamed, so that a cut-off answer is not lost.

    A request that is sent again begins a new answer. Of one that broke off the text counts only where no later one has any.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._pieces: list[str] = []
        self._broken_off = ""
        self._whole: AssistantMessage | None = None

    def add(self, event: Event) -> Event:
        """Take an event of the model's stream and return it, with every call's id its own."""
        if isinstance(event, TextStreamed):
            self._pieces.append(event.text)
        elif isinstance(event, AssistantSaid):
            said = event.message
            self._whole = with_own_ids(said)
            return event if self._whole is said else AssistantSaid.of(self._whole)
        elif isinstance(event, RequestStarted | RequestRetried):
            self._broken_off = self._text
            self._pieces.clear()  # those of one that was given up are not this one's
            if isinstance(event, RequestStarted):  # of a model that picks a model
                self._model = event.model
        return event

    @property
    def _text(self) -> str:
        """What had come of an answer that never ended."""
        text = "".join(self._pieces)
        return text if text.strip() else self._broken_off

    @property
    def is_cut_off(self) -> bool:
        """Whether text had come and the message never ended."""
        return self._whole is None and bool(self._text)

    @property
    def message(self) -> AssistantMessage:
        """The message, or the text that had come of it.

        Unfinished tool calls and unsigned thinking could not be sent back, so they are left out.
        """
        if self._whole is not None:
            return self._whole
        content = (Text(text=self._text),) if self.is_cut_off else ()
        return AssistantMessage(content=content, stop_reason="cut_off", model=self._model)

    def check(self) -> None:
        """Raise ModelError for an answer that was refused, or ended for a reason that is not known to be good."""
        if not self.message.has_failed:
            return
        model, detail = self.message.model or "the model", self.message.stop_detail
        if self.message.stop_reason == "refusal":
            why = f" ({detail})" if detail else ""
            raise ModelError(
                f"The answer was refused by {model} or a filter of its provider{why}.",
                remedies=(Remedy("do", "ask in other words"), Remedy("change_model")),
            )
        ended = f"its server ended it with {detail or 'no reason'}"
        raise ModelError(
            f"The answer of {model} is not complete: {ended}.",
            remedies=(Remedy("try_again"), Remedy("change_model")),
        ).known(temporary=True)


def with_own_ids(message: AssistantMessage) -> AssistantMessage:
    """Return the message with no two calls of one id; the same message where that holds already."""
    ids = [call.id for call in message.calls]
    if len(set(ids)) == len(ids):
        return message
    taken = set(ids)
    seen: set[str] = set()
    numbers: dict[str, Iterator[int]] = {}
    content: list[AssistantPart] = []
    for part in message.content:
        if isinstance(part, ToolCall) and part.id in seen:
            left = numbers.setdefault(part.id, count(2))
            new_id = next(name for n in left if (name := f"{part.id}_{n}") not in taken)
            part = structs.replace(part, id=new_id)
        if isinstance(part, ToolCall):
            seen.add(part.id)
        content.append(part)
    return structs.replace(message, content=tuple(content))
