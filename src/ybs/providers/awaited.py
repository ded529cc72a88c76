"""A model whose answers are waited for, and somebody uses that time."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing

from ybs.core.events import Event
from ybs.core.ports import Model, Request
from ybs.core.wrapper import ModelWrapper


class AwaitedModel(ModelWrapper):
    """Wraps a Model. `waiting` is entered while a request has gone out and nothing of the answer has come."""

    def __init__(self, model: Model, waiting: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__(model)
        self._waiting = waiting

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the wrapped model's answer."""
        async with aclosing(self._model.stream(request)) as events:
            with self._waiting():
                first = await anext(events, None)
            if first is not None:
                yield first
                async for event in events:
                    yield event
