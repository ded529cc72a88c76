"""The envelope of an event: which agent of which session tells it.

An agent emits plain events to its `Emit`. Whoever builds the agent makes that `Emit` put each into an `Envelope`, which
every `Sink` takes.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

from ybs.core.events import Event

#: The agent that the person talks with. A sub-agent has another name, unique in its session.
MAIN: Final = "main"


class Envelope(Struct, frozen=True):
    """An event with its origin: the id of the session, or the name of the transcript that it was read from, and the name of the agent.

    `started_by` is the id of the call that started a sub-agent; empty where no call did, as with the main agent.
    `number` counts the events of a session from 1 on; 0 where it was read from a transcript.
    """

    session: str
    agent: str
    event: Event
    started_by: str = ""
    number: int = 0

    @property
    def is_main(self) -> bool:
        """Whether the event is of the session's main agent."""
        return self.agent == MAIN


#: Takes the events of all agents of a session.
Sink: TypeAlias = Callable[[Envelope], None]
