"""What the session remembers of a turn: its events summed up, and what it used."""

from msgspec import Struct

from ybs.core.events import AssistantSaid, Event, ToolFinished, TurnFinished
from ybs.core.messages import Text, Usage, UserMessage


class TurnUse(Struct, frozen=True, kw_only=True):
    """What one turn used: the words it began with, the model, the tokens and the time."""

    words: str
    model: str
    usage: Usage
    seconds: float


class Tally:
    """What the session remembers of a turn's events."""

    def __init__(self) -> None:
        self.text = ""
        self.refusals = 0
        self.context_tokens = 0
        self.finished: TurnFinished | None = None

    def add(self, event: Event) -> None:
        """Count an event."""
        match event:
            case AssistantSaid():
                self.text = event.content
                if event.usage.input_tokens:
                    self.context_tokens = event.usage.input_tokens + event.usage.output_tokens
            case ToolFinished(is_refused=True):
                self.refusals += 1
            case TurnFinished():
                self.finished = event
            case _:
                pass


def words_of(message: UserMessage) -> str:
    """Return the words of a message without the files that were attached to it."""
    return next((part.text for part in message.content if isinstance(part, Text)), "")
