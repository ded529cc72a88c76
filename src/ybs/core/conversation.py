"""A history that is always valid to send: every tool call has its one answer, in order, before anyone speaks."""

from collections.abc import Sequence
from typing import assert_never

from ybs.core.events import AssistantSaid, Event, TextStreamed
from ybs.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
)

CANCELLED = "Cancelled before it finished. Nothing is known about its effect."


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

    def close_open_calls(self, reason: str = CANCELLED) -> tuple[ToolResult, ...]:
        """Answer every open call with `reason`, as an error, and return these results."""
        results = tuple(
            ToolResult(call_id=call.id, name=call.name, output=reason, is_error=True)
            for call in self.open_calls
        )
        for result in results:
            self.append(result)
        return results

    def replace(self, messages: Sequence[Message], *, system: str | None = None) -> None:
        """Put another history in place of this one (compaction, undo, resume)."""
        if system is not None:
            self.system = system
        self._messages, self._open = [], {}
        for message in messages:
            self.append(message)


class Draft:
    """An answer in the making: it keeps what was streamed, so that a cut-off answer is not lost."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._pieces: list[str] = []
        self._whole: AssistantMessage | None = None

    def add(self, event: Event) -> None:
        """Take an event of the model's stream."""
        match event:
            case TextStreamed():
                self._pieces.append(event.text)
            case AssistantSaid():
                self._whole = event.message
            case _:
                pass

    @property
    def is_cut_off(self) -> bool:
        """Tell whether text had come and the message never ended."""
        return self._whole is None and any(piece.strip() for piece in self._pieces)

    @property
    def message(self) -> AssistantMessage:
        """The message, or the text that had come of it.

        Unfinished tool calls and unsigned thinking could not be sent back, so they are left out.
        """
        if self._whole is not None:
            return self._whole
        content = (Text(text="".join(self._pieces)),) if self.is_cut_off else ()
        return AssistantMessage(content=content, stop_reason="cut_off", model=self._model)
