"""A model that a Python program hands in, as sessions need it."""

from collections.abc import AsyncGenerator

from ybs.core.events import Event
from ybs.core.ports import Model, Request
from ybs.providers.registry import ProviderModel


class InProcessModel(ProviderModel):
    """A model that a program hands in, with what a session expects of a provider's model besides.

    The session does not close it: whoever made it does, and may hand it to several sessions.
    """

    def __init__(self, model: Model, most_tokens: int) -> None:
        self._model, self._most_tokens = model, most_tokens

    @property
    def name(self) -> str:
        """The model's own name."""
        return self._model.name

    @property
    def window(self) -> int:
        """The model's own window, in tokens."""
        return self._model.window

    @property
    def max_tokens(self) -> int:
        """The part of the window that is kept free for an answer: `llm.max_tokens`, a quarter of the window at most."""
        return max(1, min(self._most_tokens, self.window // 4))

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Return the model's own stream."""
        return self._model.stream(request)

    async def warm_up(self) -> None:
        """Do nothing: a model is ready when it is handed in."""

    async def detect_window(self) -> int:
        """Return the model's own window: there is no server to ask."""
        return self.window

    async def list_models(self) -> list[str]:
        """Return the name of this model alone."""
        return [self.name]

    async def aclose(self) -> None:
        """Do nothing: whoever made the model closes it."""
