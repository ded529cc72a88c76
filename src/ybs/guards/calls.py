"""A bound on the calls of one answer: what a model asks for beyond it is left out, and it is told so."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from msgspec.structs import replace

from ybs.core.events import AssistantSaid, Event, Noticed
from ybs.core.messages import AssistantMessage, AssistantPart, ToolCall, UserMessage
from ybs.core.ports import Guard, Model, Request, Turn
from ybs.core.wrapper import ModelWrapper

#: Models that work side by side ask for ten or twenty; more in one answer is a model that repeats itself, or a hostile server.
MOST_CALLS: Final = 100
TOLD = (
    "Your last answer asked for {asked:,} calls. Only the first {most} were run; the others were left out and had no effect. "
    "Look at the results, then ask for what is still needed, fewer at a time."
)
NOTICED = "The model asked for {asked:,} calls in one answer; only the first {most} are run."


class CallLimit(Guard):
    """Leaves out the calls of an answer beyond the bound, before anything else sees them."""

    def __init__(self) -> None:
        self.asked = 0

    def bounding(self, model: Model) -> Model:
        """Return the model with answers of so many calls at most."""
        return _BoundedModel(model, self)

    async def before_step(self, turn: Turn) -> None:
        """Tell the model what became of the calls that were left out."""
        if asked := self.asked:
            self.asked = 0
            text = TOLD.format(asked=asked, most=MOST_CALLS)
            turn.say(UserMessage.of(text, origin="guard"))


class _BoundedModel(ModelWrapper):
    """A Model whose answers have so many calls at most."""

    def __init__(self, model: Model, limit: CallLimit) -> None:
        super().__init__(model)
        self._limit = limit

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream what the model streams, its message without the calls beyond the bound."""
        self._limit.asked = 0  # of a turn that was stopped
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if isinstance(event, AssistantSaid) and len(event.message.calls) > MOST_CALLS:
                    asked = self._limit.asked = len(event.message.calls)
                    text = NOTICED.format(asked=asked, most=MOST_CALLS)
                    yield Noticed(level="warning", text=text)
                    event = AssistantSaid.of(bounded(event.message))
                yield event


def bounded(message: AssistantMessage) -> AssistantMessage:
    """Return the message without its calls beyond the bound."""
    content: list[AssistantPart] = []
    count = 0
    for part in message.content:
        count += isinstance(part, ToolCall)
        if count <= MOST_CALLS or not isinstance(part, ToolCall):
            content.append(part)
    return replace(message, content=tuple(content))
