"""Calls that ybs makes ahead for a small model, and whose results no model is sent: a survey of the project."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from msgspec.structs import replace

from ybs.core.events import Event
from ybs.core.memo import alike
from ybs.core.messages import AssistantMessage, Message, ToolResult
from ybs.core.ports import Model, Request
from ybs.core.wrapper import ModelWrapper

#: What stands in the ids of these calls.
UNSEEN: Final = "ahead_survey_"


def without_unseen(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages that models are sent; the same object where that is all of them.

    Every call has its result, so it is enough to look at the results.
    """
    ids = [each.call_id for each in messages if isinstance(each, ToolResult)]
    if UNSEEN not in "\n".join(ids):
        return messages
    return [message for message in messages if not _is_unseen(message)]


class SurveyFilter:
    """Leaves surveys out of a conversation that grows: messages that had none the last time are not looked at again."""

    def __init__(self) -> None:
        self._clean: list[Message] = []

    def left(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return what `without_unseen` returns."""
        new = messages[alike(self._clean, messages) :]
        if without_unseen(new) is not new:
            return without_unseen(messages)
        self._clean = [*messages]
        return messages


class HidingModel(ModelWrapper):
    """A Model that is sent no surveys, which a small model before it may have left in the conversation."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._surveys = SurveyFilter()

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the answer."""
        messages = self._surveys.left(request.messages)
        if messages is not request.messages:
            request = replace(request, messages=messages)
        return self._model.stream(request)


def _is_unseen(message: Message) -> bool:
    if isinstance(message, ToolResult):
        return UNSEEN in message.call_id
    return isinstance(message, AssistantMessage) and any(UNSEEN in c.id for c in message.calls)
