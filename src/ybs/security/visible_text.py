"""A model wrapper that makes invisible characters visible: signs stand in their place."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ybs.core.events import Event, Noticed
from ybs.core.memo import Memo
from ybs.core.messages import AssistantMessage, Image, Message, Text, ToolResult, UserMessage
from ybs.core.ports import Model, Request, ToolSpec
from ybs.core.wrapper import ModelWrapper
from ybs.security.marks import marked, marked_data, note_of


class VisibleTextModel(ModelWrapper):
    """Wraps a Model. The model's own earlier words go back to it as they came."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._known: Memo[Message, Message] = Memo()
        self._tools: Memo[ToolSpec, ToolSpec] = Memo()

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the answer to the request with visible text; report first what the new message hid."""
        clean = visible_request(request, self._known, self._tools)
        new = request.messages[-1] if request.messages else None
        if not isinstance(new, UserMessage) or clean.messages[-1] is new:
            return self._model.stream(clean)
        count = sum(marked(part.text)[1] for part in new.content if isinstance(part, Text))
        return self._noticed(clean, f"In the message {note_of(count)}.")

    async def _noticed(self, request: Request, text: str) -> AsyncGenerator[Event, None]:
        yield Noticed(level="warning", text=text)
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                yield event


def visible_request(
    request: Request,
    known: Memo[Message, Message] | None = None,
    tools: Memo[ToolSpec, ToolSpec] | None = None,
) -> Request:
    """Return the request with signs; the parts that need none are the same objects."""
    messages = (known or Memo()).each(request.messages, _message)
    return Request(
        marked(request.system)[0], messages, (tools or Memo()).each(request.tools, _spec)
    )


def _message(message: Message) -> Message:
    if isinstance(message, AssistantMessage):
        return message
    if isinstance(message, ToolResult):
        text, count = marked(message.output)
        return replace(message, output=text) if count else message
    parts = tuple(_part(part) for part in message.content)
    is_same = all(new is old for new, old in zip(parts, message.content, strict=True))
    return message if is_same else replace(message, content=parts)


def _part(part: Text | Image) -> Text | Image:
    if isinstance(part, Image):
        return part
    text, count = marked(part.text)
    return Text(text=text) if count else part


def _spec(spec: ToolSpec) -> ToolSpec:
    """Tools of other people's servers describe themselves."""
    description, count = marked(spec.description)
    schema = bytes(spec.parameters)
    if not count and schema.isascii() and b"\\u" not in schema:
        return spec
    parameters, more = marked_data(msgspec.json.decode(schema))
    if not count + more:
        return spec
    encoded = Raw(msgspec.json.encode(parameters))
    return replace(spec, description=description, parameters=encoded)
