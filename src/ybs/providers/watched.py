"""Models that are listened to: the usage of an answer is told to who counts tokens, and its waiting is made use of."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing

from ybs.core.events import AssistantSaid, Event, Noticed
from ybs.core.messages import Usage
from ybs.core.ports import Model, Request
from ybs.core.wrapper import ModelWrapper


class WatchedModel(ModelWrapper):
    """Wraps a Model. `learn` is told every request with the usage of its answer, never before it is sent; `before` is waited for before each, and what it says is told to the person."""

    def __init__(
        self,
        model: Model,
        learn: Callable[[Request, Usage], None],
        before: Callable[[], Awaitable[Noticed | None]] | None = None,
    ) -> None:
        super().__init__(model)
        self._learn, self._before = learn, before

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the wrapped model's answer."""
        if self._before is not None and (note := await self._before()):
            yield note
        sent = Request(request.system, tuple(request.messages), request.tools)
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if isinstance(event, AssistantSaid):
                    self._learn(sent, event.usage)
                yield event


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
