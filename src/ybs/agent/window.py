"""The model's window: how much of it a request takes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.json import encode
from msgspec.structs import replace

from ybs.core.messages import Message, Usage
from ybs.core.ports import Model, Request, ToolSpec
from ybs.providers.watched import WatchedModel
from ybs.small_models.unseen import SurveyFilter

if TYPE_CHECKING:
    from ybs.core.events import Noticed
    from ybs.providers.registry import ProviderModel
    from ybs.providers.tokens import TokenCounter

#: A token has about so many bytes, and a guess is good enough as long as it is below this share of the room.
_BYTES: Final = 4
_FAR_BELOW: Final = 0.3


class Window:
    """Counts as one model does. `specs` are the tools that go with every request."""

    def __init__(
        self, provider: str, model: "ProviderModel", specs: Callable[[], Sequence[ToolSpec]]
    ) -> None:
        self._provider, self._model, self._specs = provider, model, specs
        self._surveys = SurveyFilter()
        self._counter: TokenCounter | None = None
        #: Whether the last request took so much of the window that its size should be certain.
        self._fills = False
        self._has_asked = False

    @property
    def counter(self) -> "TokenCounter":
        """What counts tokens as the model in use does."""
        if self._counter is None:
            from ybs.providers.tokens import TokenCounter  # not before an answer
            from ybs.tools.reading.images import pixels_of

            self._counter = TokenCounter(self._provider, self._model.name, picture_size=pixels_of)
        return self._counter

    @property
    def room(self) -> int:
        """How many tokens a request may have: the window less the longest answer."""
        return self._model.window - self._model.max_tokens

    def size_of(self, system: str, messages: Sequence[Message]) -> int:
        """Return the likely tokens of a request with these messages and the tools."""
        return self.tokens(Request(system, messages, self._specs()))

    def tokens(self, request: Request) -> int:
        """Return the likely tokens of a request; a guess as long as nothing was counted and there is much room.

        So nothing is loaded that counts before the first request has been sent.
        """
        request = self._sent(request)
        if self._counter is None:
            try:
                guess = len(encode(request)) // _BYTES
            except UnicodeEncodeError:  # half a character, as a broken terminal sends it
                return self.counter.tokens(request)
            if guess < _FAR_BELOW * self.room:
                return guess
        return self.counter.tokens(request)

    def counted(self, request: Request) -> int:
        """Return the tokens of a request that the provider has counted all of; else 0."""
        counter, request = self._counter, self._sent(request)
        return counter.tokens(request) if counter and counter.is_counted(request) else 0

    def watching(self, model: Model) -> Model:
        """Wrap a model so that the counter learns from its answers, and its server is asked for the window in time."""
        return WatchedModel(model, self._learn, before=self._ask_in_time)

    def _learn(self, request: Request, usage: Usage) -> None:
        self.counter.learn(self._sent(request), usage)
        self._fills = usage.input_tokens >= _FAR_BELOW * self.room

    async def _ask_in_time(self) -> "Noticed | None":
        """Ask the server once the size should be certain; return what the person should know of it, once it was asked."""
        if self._fills:
            await self.ask()
        if not self._has_asked:
            return None
        from ybs.providers.remote import RemoteModel  # loaded with the first one

        return self._model.assumption() if isinstance(self._model, RemoteModel) else None

    async def ask(self) -> None:
        """Ask the model's server how large the window is, and what else it tells, once. Never fails."""
        if not self._has_asked:
            self._has_asked = True
            await self._model.detect_window()

    def _sent(self, request: Request) -> Request:
        """Return a request as models are sent it."""
        messages = self._surveys.left(request.messages)
        return request if messages is request.messages else replace(request, messages=messages)
