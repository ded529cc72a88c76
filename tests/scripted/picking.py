"""PickingModel: a Model that picks one of several Models for each request, as a router does."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from ybs.core.events import Event, RequestStarted
from ybs.core.ports import Model, Request


class PickingModel:
    """Passes each request on to `models[pick(request)]` and tells which one that is."""

    def __init__(
        self, models: Sequence[Model], pick: Callable[[Request], int], *, name: str = "picking"
    ) -> None:
        self.name, self.window = name, min(model.window for model in models)
        self._models, self._pick = models, pick

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Name the model that is picked, then stream its answer."""
        model = self._models[self._pick(request)]
        yield RequestStarted(model=model.name)
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                yield event
