"""RecordedEvents: an Emit and a Sink that remembers."""

from typing import TypeVar

from ybs.core.envelope import Envelope
from ybs.core.events import Event, TextStreamed

Kind = TypeVar("Kind")


class RecordedEvents:
    """A list of what happened. Hand it over where an `Emit` or a `Sink` is wanted.

    `envelopes` are those that came in one, `events` all of them, out of their envelopes.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.envelopes: list[Envelope] = []

    def __call__(self, event: Event | Envelope) -> None:
        """Remember an event."""
        if isinstance(event, Envelope):
            self.envelopes.append(event)
            event = event.event
        self.events.append(event)

    def of(self, kind: type[Kind]) -> list[Kind]:
        """List the events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def names(self) -> list[str]:
        """The kinds of the events, in order."""
        return [type(event).__name__ for event in self.events]

    @property
    def text(self) -> str:
        """The streamed text, put together."""
        return "".join(event.text for event in self.of(TextStreamed))
