"""The text protocol around the answers of one model; what writes and reads it is loaded where it is needed."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from ybs.core.events import AssistantSaid, Event, TextStreamed, ToolCallStreamed
from ybs.core.messages import AssistantMessage, Text, ToolResult
from ybs.core.ports import Request

if TYPE_CHECKING:
    from ybs.providers.text_protocol import Writer

#: A model that writes this many answers with calls as text, and none with a real one between, is asked for text from then on.
_ENOUGH: Final = 2
#: Without one of these there is no call in a text.
_SIGNS: Final = ("{", "<function=", "<<<<<<<")


class TextCalls:
    """Writes requests as text and reads the calls in the text of answers."""

    def __init__(self) -> None:
        self._writer: Writer | None = None
        self._count = 0
        self._has_called = False

    @property
    def is_preferred(self) -> bool:
        """Whether the model keeps writing its calls as text although it was given tools."""
        return self._count >= _ENOUGH

    def written(self, request: Request, window: int) -> Request:
        """Return a request with its tools, calls and results as text."""
        if self._writer is None:
            from ybs.providers.text_protocol import Writer

            self._writer = Writer()
        return self._writer.written(request, window)

    async def noticed(
        self, stream: AsyncGenerator[Event, None], request: Request
    ) -> AsyncGenerator[Event, None]:
        """Pass an answer on; where its text is a call, it becomes one.

        Only for a server nearby: the models of others call functions, so that a call in their text is shown, not asked for.
        """
        async with aclosing(stream) as events:
            async for event in events:
                if isinstance(event, AssistantSaid):
                    event = self._noticed(event, request)
                yield event

    def _noticed(self, said: AssistantSaid, request: Request) -> AssistantSaid:
        if said.message.calls:
            self._count, self._has_called = 0, True
        if self._has_called:  # it can, so what looks like a call in its text is only shown
            return said
        message = _with_calls(said.message, request)
        self._count += bool(message.calls)
        return AssistantSaid.of(message) if message.calls else said

    async def read(
        self, stream: AsyncGenerator[Event, None], request: Request
    ) -> AsyncGenerator[Event, None]:
        """Pass an answer on with the calls in its text as calls; what may be one is not shown as text."""
        from ybs.providers.text_protocol import Held

        held = Held()
        async with aclosing(stream) as events:
            async for event in events:
                match event:
                    case TextStreamed():
                        if shown := held.add(event.text):
                            yield TextStreamed(text=shown)
                        if held.is_endless:
                            yield AssistantSaid.of(_cut_off(held.shown))
                            return
                    case AssistantSaid():
                        message = _with_calls(event.message, request)
                        if rest := held.rest(message.text):
                            yield TextStreamed(text=rest)
                        for call in message.calls:
                            arguments = call.invalid or bytes(call.arguments).decode()
                            yield ToolCallStreamed(id=call.id, name=call.name, text=arguments)
                        yield AssistantSaid.of(message)
                    case _:
                        yield event


def _cut_off(text: str) -> AssistantMessage:
    """Return an answer that was ended because it said the same over and over; half a call in it is not one."""
    return AssistantMessage(content=(Text(text=text),) if text else (), stop_reason="length")


def _with_calls(message: AssistantMessage, request: Request) -> AssistantMessage:
    if message.has_failed or not any(sign in message.text for sign in _SIGNS):
        return message
    from ybs.providers.text_protocol import with_calls

    results = [each.output for each in request.messages if isinstance(each, ToolResult)]
    return with_calls(message, {tool.name for tool in request.tools}, results)
