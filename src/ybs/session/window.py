"""The model's window: how much of it a request takes, and what keeps the conversation within it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.json import encode

from ybs.compaction.compaction import Compaction
from ybs.core.messages import Message
from ybs.core.ports import Model, Request
from ybs.providers.watched import WatchedModel

if TYPE_CHECKING:
    from ybs.providers.tokens.estimate import TokenCounter
    from ybs.session.wiring import Rooms

#: A token has about so many bytes, and a guess is good enough as long as it is below this share of the room.
_BYTES: Final = 4
_FAR_BELOW: Final = 0.3


class Window:
    """Counts as the model in use does. `compaction` is the guard that sets older parts aside."""

    def __init__(self, rooms: "Rooms") -> None:
        self._rooms = rooms
        self._counter: TokenCounter | None = None
        self.compaction = Compaction(
            threshold=rooms.loaded.config.context.compaction_threshold,
            room=lambda: self.room,
            size=self.tokens,
            specs=rooms.toolbox.specs,
            keep_output=self._keep_output,
        )
        self.compaction.limits = rooms.limits
        self.compaction.mask = self._mask
        self.compaction.rules = rooms.surroundings.rules

    @property
    def counter(self) -> "TokenCounter":
        """What counts tokens as the model in use does."""
        if self._counter is None:
            from ybs.providers.tokens.estimate import TokenCounter  # not before an answer
            from ybs.tools.reading.images import pixels_of

            name = self._rooms.model.name
            self._counter = TokenCounter(self._rooms.provider, name, picture_size=pixels_of)
        return self._counter

    def forget(self) -> None:
        """Forget what was learned of a model: another one is in use."""
        self._counter = None

    @property
    def room(self) -> int:
        """How many tokens a request may have: the window less the longest answer."""
        model = self._rooms.model
        return model.window - model.max_tokens

    def size_of(self, system: str, messages: Sequence[Message]) -> int:
        """Return the likely tokens of a request with these messages and the session's tools."""
        return self.tokens(Request(system, messages, self._rooms.toolbox.specs()))

    def tokens(self, request: Request) -> int:
        """Return the likely tokens of a request; a guess as long as nothing was counted and there is much room.

        So nothing is loaded that counts before the first request has been sent.
        """
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
        counter = self._counter
        return counter.tokens(request) if counter and counter.is_counted(request) else 0

    def watching(self, model: Model) -> Model:
        """Wrap a model so that the counter learns from its answers."""
        return WatchedModel(model, lambda request, usage: self.counter.learn(request, usage))

    def _mask(self, message: Message) -> Message:
        """Mask the secrets in a message that is about to be cut. The report is of what a model was to see."""
        from ybs.security.firewall.report import Report
        from ybs.security.firewall.structs import masked

        firewall = self._rooms.secrets.firewall
        kept, firewall.report = firewall.report, Report()
        try:
            return masked(firewall, message, "a summary")
        finally:
            firewall.report = kept

    def _keep_output(self, text: str) -> str:
        """Write a tool's output where tools can read it; return the path, or "" where nothing may be written."""
        rooms = self._rooms
        if not rooms.incognito.may_write:
            return ""
        return rooms.workspace.shells.outputs.keep(rooms.secrets.firewall.mask(text))
