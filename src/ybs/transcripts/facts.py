"""What holds for a whole session, whatever is rewound: its turns, its tokens, its changes in files."""

from typing import Final

from msgspec import Struct

from ybs.core.events import (
    AssistantSaid,
    Event,
    FilesChanged,
    FilesRestored,
    SessionStarted,
    Titled,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import Usage

#: Characters of a turn's words that are kept: a line shows fewer.
MOST_WORDS: Final = 1_000


class TurnLine(Struct, frozen=True, kw_only=True):
    """One turn that has ended: the first of its words, the model that answered, and how it ended."""

    words: str
    model: str
    finished: TurnFinished


class Facts:
    """What the events of a session tell of it; those of rewound turns too."""

    def __init__(self) -> None:
        self.title = ""
        self.started: SessionStarted | None = None
        self.config: dict[str, str] = {}
        self.last_answer = ""
        self.turns: list[TurnLine] = []
        #: What the turns that ended have used, and what the answers since then have.
        self._used = self._open = Usage()
        self._words: str | None = None
        self._model = ""
        self._changes: dict[str, FilesChanged] = {}
        self._undone: set[str] = set()

    @property
    def usage(self) -> Usage:
        """What was used, by summaries within turns too."""
        return self._used + self._open

    @property
    def checkpoints(self) -> list[FilesChanged]:
        """What turns changed in files and was not undone."""
        return [change for name, change in self._changes.items() if name not in self._undone]

    def add(self, event: Event) -> None:
        """Take an event."""
        match event:
            case SessionStarted():
                self.started = self.started or event
                self.config = event.config
                self._words, self._model = None, ""
                self._count(Usage())  # a crash ended the turn before
            case Titled():
                self.title = event.title
            case FilesChanged() | FilesRestored():
                self._add_change(event)
            case UserSaid() | AssistantSaid() | TurnFinished():
                self._add_turn(event)
            case _:
                pass

    def _add_turn(self, event: UserSaid | AssistantSaid | TurnFinished) -> None:
        match event:
            case UserSaid():
                if self._words is None:
                    self._words = event.message.words[:MOST_WORDS]
            case AssistantSaid():
                self._open += event.usage
                self.last_answer = event.content or self.last_answer
                self._model = event.model or self._model
            case TurnFinished():
                self._count(event.usage)
                words = self._words or ""
                self.turns.append(TurnLine(words=words, model=self._model, finished=event))
                self._words, self._model = None, ""

    def _count(self, told: Usage) -> None:
        """Take what the end of a turn tells of it where that is more: summaries are no answers."""
        more = told.input_tokens > self._open.input_tokens
        self._used += told if more else self._open
        self._open = Usage()

    def _add_change(self, event: FilesChanged | FilesRestored) -> None:
        if isinstance(event, FilesChanged):
            self._changes[event.checkpoint] = event
            self._undone.discard(event.checkpoint)
        elif event.is_redo:
            self._undone.difference_update(event.checkpoints)
        else:
            self._undone.update(event.checkpoints)
