"""Tells what happens in a session to whoever listens: every event in its envelope, and to those who follow where the session stands."""

import os
from collections.abc import Callable, Sequence

from ybs.core.envelope import MAIN, Envelope, Sink
from ybs.core.events import Event, StateChanged


class Telling:
    """Numbers the events of one session and hands them to its sinks. `state` says where it stands, secrets masked."""

    def __init__(self, state: Callable[[], StateChanged]) -> None:
        #: The session's id.
        self.id = os.urandom(8).hex()
        self._state_now = state
        self._sinks: list[Sink] = []
        self._followers: list[Sink] = []
        self._count = 0
        self._state = StateChanged()

    def add(self, sink: Sink, *, follows: bool) -> Callable[[], None]:
        """Hand everything to a sink from now on, and where the session stands to one that follows; return the way to end that."""
        self._sinks.append(sink)
        if follows:
            self._followers.append(sink)
            self._state = StateChanged()
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

    def _tell(self, sinks: Sequence[Sink], event: Event, agent: str, started_by: str) -> None:
        self._count += 1
        envelope = Envelope(self.id, agent, event, started_by, self._count)
        for sink in tuple(sinks):
            sink(envelope)
