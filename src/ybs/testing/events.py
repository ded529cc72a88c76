"""RecordedEvents: an Emit that remembers."""

from typing import TypeVar

from ybs.core.events import Event, TextStreamed

Kind = TypeVar("Kind")


class RecordedEvents:
    """A list of what happened. Hand it over where an `Emit` is wanted."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        """Remember an event."""
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
