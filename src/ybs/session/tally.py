"""The tally of a turn: its events summed up, and its usage."""

from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ybs.core import events
from ybs.core.changes import FileChange
from ybs.core.envelope import MAIN
from ybs.core.events import Event
from ybs.core.messages import Usage
from ybs.session.injection import as_typed
from ybs.transcripts.facts import Consumption, TurnLine

if TYPE_CHECKING:
    from collections.abc import Sequence


class TurnUse(Struct, frozen=True, kw_only=True):
    """What one turn used: the first of its words, the model, the tokens and the time."""

    words: str
    model: str
    usage: Usage
    seconds: float


def uses_of(turns: "Sequence[TurnLine]") -> list[TurnUse]:
    """Return the usage of a transcript's turns."""
    return [
        TurnUse(
            words=as_typed(turn.words),
            model=turn.model,
            usage=turn.finished.usage + turn.others,
            seconds=turn.finished.duration_seconds,
        )
        for turn in turns
    ]


class Tally:
    """What the session remembers of a turn's events."""

    def __init__(self, others: Consumption | None = None, model: str = "") -> None:
        self.text = ""
        #: The model that answered last, at first in an earlier turn: of a model that picks a model, the one that it picked.
        self.model = model
        self.refusals = 0
        self.usage = Usage()
        #: What sub-agents have used, in earlier turns too, and was not counted yet.
        self.others = others or Consumption()
        self.finished: events.TurnFinished | None = None
        #: What the person was asked and has not answered, and how long they have been asked something.
        self._open: set[str] = set()
        self._asked_at = self._asked_seconds = 0.0

    def take_usage(self) -> Usage:
        """Return the usage of an ended turn, its sub-agents included; they are not counted again."""
        return (self.finished.usage if self.finished else self.usage) + self.others.take()

    @property
    def worked_seconds(self) -> float:
        """How long the turn took without the time in which the person was asked."""
        took = self.finished.duration_seconds if self.finished else 0.0
        return max(0.0, took - self._asked_seconds)

    def add(self, event: Event, *, agent: str = MAIN) -> None:
        """Count an event. Of a sub-agent it is what it used, what was refused, and its questions."""
        if agent != MAIN and isinstance(event, events.AssistantSaid | events.TurnFinished):
            self.others.add(event, agent)
            return
        match event:
            case events.AssistantSaid():
                self.text, self.model = event.content, event.model or self.model
                self.usage += event.usage
            case events.SessionStarted():  # perhaps with another model
                self.model = ""
            case events.ToolFinished(is_refused=True):
                self.refusals += 1
            case events.ConfirmationAsked():
                self._asked_at = self._asked_at if self._open else monotonic()
                self._open.add(event.id)
            case events.ConfirmationAnswered():
                self._close({event.id})
            case events.TurnFinished():
                self._close(self._open)
                self.finished = event
            case _:
                pass

    def _close(self, answered: set[str]) -> None:
        """Count the time up to here, where nothing is asked any more."""
        was_open, self._open = bool(self._open), self._open - answered
        if was_open and not self._open:
            self._asked_seconds += monotonic() - self._asked_at


#: Texts of so many characters are kept; the oldest go first.
MOST_CHARS: Final = 2_000_000
TOO_OLD: Final = "the difference is no longer stored"


class TurnChanges(Struct, kw_only=True):
    """What one turn did: changes of files in order, and how many commands it ran."""

    files: list[FileChange]
    commands: int = 0


class Changes:
    """Watches a session's events."""

    def __init__(self) -> None:
        self._turns: list[TurnChanges] = []
        self._now = TurnChanges(files=[])
        self._chars = 0

    @property
    def turns(self) -> list[TurnChanges]:
        """The turns that changed files or ran commands, oldest first; a running one is the last."""
        return [turn for turn in (*self._turns, self._now) if turn.files or turn.commands]

    @property
    def running(self) -> TurnChanges:
        """What has been changed since the last turn ended."""
        return self._now

    def add(self, event: Event, *, is_main: bool = True) -> None:
        """Note what the event changed. A turn of a sub-agent is part of the main agent's."""
        match event:
            case (
                events.ToolFinished(name="run_shell", is_refused=False)
                | events.UserSaid(origin="shell")
            ):
                self._now.commands += 1
            case events.ToolFinished(success=True) if event.changes:
                self._now.files += event.changes
                self._chars += sum(map(_size, event.changes))
                self._forget()
            case events.TurnFinished() if is_main:
                if self._now.files or self._now.commands:
                    self._turns.append(self._now)
                self._now = TurnChanges(files=[])
            case _:
                pass

    def _forget(self) -> None:
        """Drop the oldest texts until the rest fits; which files they were of is still known."""
        if self._chars <= MOST_CHARS:
            return
        for turn in (*self._turns, self._now):
            for place, change in enumerate(turn.files):
                self._chars -= _size(change)
                turn.files[place] = change.without_texts(TOO_OLD)
                if self._chars <= MOST_CHARS:
                    return


def _size(change: FileChange) -> int:
    return len(change.before or "") + len(change.after or "")
