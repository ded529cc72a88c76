"""Feed of a session's events to listeners: at once (`Telling`), and kept by number for those who come later (`Feed`)."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Self

from ybs.core import events
from ybs.core.envelope import MAIN, Envelope, Sink
from ybs.core.errors import YbsError
from ybs.core.events import Event

#: So many events may wait for a listener; one that is further behind is dropped.
MOST_WAITING: Final = 10_000
#: Events that others make whole: a listener that comes later gets those alone.
PIECES = (
    events.PromptRead,
    events.TextStreamed,
    events.ThinkingStreamed,
    events.ToolCallStreamed,
    events.ToolPrinted,
)


class Telling:
    """Numbers the events of one session and hands them to its sinks. `state` says where it stands, secrets masked."""

    def __init__(self, state: Callable[[], events.StateChanged]) -> None:
        #: The session's id.
        self.id = os.urandom(8).hex()
        self._state_now = state
        self._sinks: list[Sink] = []
        self._followers: list[Sink] = []
        self._count = 0
        self._state = events.StateChanged()
        #: Called when anything may have changed, also what the state does not say.
        self.watchers: list[Callable[[], None]] = []

    def add(self, sink: Sink, *, follows: bool) -> Callable[[], None]:
        """Hand everything to a sink from now on, and where the session stands to one that follows; return the way to end that."""
        self._sinks.append(sink)
        if follows:
            self._followers.append(sink)
            self._state = events.StateChanged()
            self.state()

        def leave() -> None:
            self._sinks.remove(sink)
            if follows:
                self._followers.remove(sink)

        return leave

    def event(self, event: Event, agent: str = MAIN, started_by: str = "") -> None:
        """Tell an event."""
        self._tell(self._sinks, event, agent, started_by)

    def state(self) -> None:
        """Tell where the session stands, if that has changed."""
        if self._followers and (state := self._state_now()) != self._state:
            self._state = state
            self._tell(self._followers, state, MAIN, "")
        for changed in self.watchers:
            changed()

    def _tell(self, sinks: Sequence[Sink], event: Event, agent: str, started_by: str) -> None:
        self._count += 1
        envelope = Envelope(self.id, agent, event, started_by, self._count)
        for sink in tuple(sinks):
            sink(envelope)


class FellBehind(YbsError):
    """A listener did not read for too long. It may listen again from the `number` that it had on."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"More than {MOST_WAITING:,} events waited to be read, so they are no longer sent."
        )
        self.number = number


class Listener:
    """Yields the envelopes of a session in their order, until the session ends. Raises FellBehind."""

    def __init__(self, earlier: list[Envelope], leave: "Callable[[Listener], None]") -> None:
        self._waiting = deque(earlier)
        self._leave = leave
        self._more: asyncio.Future[None] | None = None
        self._has_ended = self._fell_behind = False
        #: The number of the last event that was read.
        self.number = 0

    def put(self, envelope: Envelope) -> None:
        """Take an event; where too many wait, it and they are let go."""
        self._waiting.append(envelope)
        if len(self._waiting) > MOST_WAITING:
            self._fell_behind = True
            self._waiting.clear()
            self.close()
        self._wake()

    def end(self) -> None:
        """Tell that no more events come."""
        self._has_ended = True
        self._wake()

    def close(self) -> None:
        """Listen no longer; who reads at this moment gets no more."""
        self._leave(self)
        self.end()

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Envelope:
        """Wait for the next event."""
        while not self._waiting:
            if self._fell_behind:
                raise FellBehind(self.number)
            if self._has_ended:
                raise StopAsyncIteration
            self._more = asyncio.get_running_loop().create_future()
            await self._more
        envelope = self._waiting.popleft()
        self.number = envelope.number
        return envelope


class Feed:
    """Takes the events of a session; see `Session.subscribe` with `follows`."""

    def __init__(self) -> None:
        self._kept: list[Envelope] = []
        #: The pieces of what is not whole yet, and where the session stands.
        self._pieces: list[Envelope] = []
        self._state: list[Envelope] = []
        self._listeners: set[Listener] = set()
        self._sinks: list[Sink] = []
        self._has_ended = False
        #: The number of the last event.
        self.number = 0

    def __call__(self, envelope: Envelope) -> None:
        """Keep an event and pass it on. It waits for nobody."""
        self.number = envelope.number
        match envelope.event:
            case events.StateChanged():
                self._state = [envelope]
            case event if isinstance(event, PIECES):
                self._pieces.append(envelope)
            case _:
                self._pieces = [each for each in self._pieces if not _makes_whole(envelope, each)]
                self._kept.append(envelope)
        for listener in tuple(self._listeners):
            listener.put(envelope)
        for sink in tuple(self._sinks):
            sink(envelope)

    def earlier(self, after: int = 0) -> list[Envelope]:
        """Return the events behind that number: not the pieces that a later one holds whole, and of all states the last."""
        kept = (*self._kept, *self._pieces, *self._state)
        return sorted((each for each in kept if each.number > after), key=lambda each: each.number)

    def follow(self, sink: Sink, after: int = 0) -> Callable[[], None]:
        """Hand a sink the events behind that number, those to come at once as they come; return the way to end that."""
        for each in self.earlier(after):
            sink(each)
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    def listen(self, after: int = 0) -> Listener:
        """Listen to all events behind that number: those that were, and those to come, at the listener's own pace."""
        listener = Listener(self.earlier(after), self._listeners.discard)
        if self._has_ended:
            listener.end()
        else:
            self._listeners.add(listener)
        return listener

    def end(self) -> None:
        """Tell all listeners that no more events come."""
        self._has_ended = True
        for listener in tuple(self._listeners):
            listener.end()
        self._listeners.clear()


def _makes_whole(envelope: Envelope, piece: Envelope) -> bool:
    """Return whether an event holds what the piece was one of, or gives it up."""
    if envelope.agent != piece.agent:
        return False
    match envelope.event:
        case events.ToolFinished(id=call):
            return isinstance(piece.event, events.ToolPrinted) and piece.event.id == call
        case events.AssistantSaid() | events.RequestStarted():
            return not isinstance(piece.event, events.ToolPrinted)
        case events.TurnFinished():
            return True
        case _:
            return False
