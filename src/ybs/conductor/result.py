"""The result of a sub-agent: its last answer or progress, and its cost. Not its history."""

from collections.abc import Callable

from msgspec import Struct, field

from ybs.conductor.budget import Used
from ybs.core import events
from ybs.core.cutting import first_words
from ybs.core.errors import YbsError
from ybs.core.events import Event
from ybs.core.wording import listed, plural
from ybs.tools.calls.cut import cut

_MOST_CALLS, _MOST_FILES = 8, 20
_LONGEST_CALL = 80  # characters


class Report(Struct, kw_only=True):
    """How a sub-agent ended. `problem` says why it was not done; `text` is its last answer, or the last that it said."""

    name: str
    kind: str
    task: str = ""
    text: str = ""
    problem: str = ""
    used: Used = Used()
    seconds: float = 0.0
    files: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    #: Of what it changed in a copy of the project, what is in the project now.
    merged: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether it came to its end."""
        return not self.problem

    def told(self, most_chars: int, keep: Callable[[str], str]) -> str:
        """Return it as the model reads it. Of a long answer that is the beginning and the end; `keep` writes all of it down, and returns where."""
        text = self.text.strip()
        if len(text) > most_chars:
            path = keep(text)
            text = cut(text, most_chars, f"All of it: {path}" if path else "")
        lines = [f"[{self.name}: {self.state}; {self._figures}]"]
        if self.files:
            lines.append(f"Files changed: {listed(self.files, _MOST_FILES)}")
        lines += self.notes
        if self.problem and self.calls:
            last = "; ".join(self.calls[-_MOST_CALLS:])
            lines.append(f"It had done {plural(len(self.calls), 'call')}, the last: {last}")
        if self.problem and text:
            lines.append("Its last answer:")
        return "\n".join([*lines, text or "It said nothing."])

    @property
    def state(self) -> str:
        """How it ended, in a few words."""
        return f"not done: {self.problem}" if self.problem else "done"

    @property
    def _figures(self) -> str:
        used = (
            f"{plural(self.used.steps, 'step')}, {self.used.tokens:,} tokens, {self.seconds:.1f} s"
        )
        return f"{used}, ${self.used.cost_usd:.4f}" if self.used.cost_usd else used

    @property
    def display(self) -> dict[str, object]:
        """Return it as data."""
        return {
            "agent": self.name,
            "kind": self.kind,
            "done": self.is_done,
            "problem": self.problem,
            "steps": self.used.steps,
            "tokens": self.used.tokens,
            "cost_usd": self.used.cost_usd,
            "seconds": round(self.seconds, 3),
            "files": list(self.files),
        }


def problem_of(error: Exception) -> str:
    """Return what went wrong, as a report says it."""
    if isinstance(error, YbsError):
        return str(error)
    return f"internal error ({type(error).__name__}: {error})"


class Progress(Struct, kw_only=True):
    """What the events of a sub-agent tell so far."""

    task: str = ""
    said: str = ""
    #: What it does now, in a few words.
    doing: str = "waits for its turn"
    used: Used = Used()
    end: events.TurnFinished | None = None
    files: dict[str, None] = field(default_factory=dict[str, None])
    calls: list[str] = field(default_factory=list[str])

    @property
    def spent(self) -> Used:
        """What was used; what summaries and answers that were thrown away took is known at the end alone."""
        return self.used if self.end is None else Used.of(self.end.steps, self.end.usage)

    def add(self, event: Event) -> None:
        """Take an event."""
        self.doing = _doing(event) or self.doing
        match event:
            case events.UserSaid():
                self.task = self.task or event.content
            case events.AssistantSaid():
                self.said = event.content.strip() or self.said
                self.used += Used.of(1, event.usage)
            case events.ToolStarted():
                self.calls.append(_call_words(event))
            case events.ToolFinished(success=True):
                self.files |= dict.fromkeys(change.path for change in event.changes)
            case events.TurnFinished():
                self.end = event
            case _:
                pass


#: What an agent does from an event on.
_DOING: dict[type[Event], str] = {
    events.TextStreamed: "writes",
    events.ToolCallStreamed: "writes",
    events.ThinkingStreamed: "thinks",
    events.ToolFinished: "works",
    events.ConfirmationAnswered: "works",
}


def _doing(event: Event) -> str:
    """Return what an agent does from this event on; empty where that stays as it is."""
    match event:
        case events.RequestStarted():
            return f"waits for {event.model}"
        case events.ToolStarted():
            return _call_words(event)
        case events.ConfirmationAsked():
            return f"asks: {event.title}"
        case _:
            return _DOING.get(type(event), "")


def _call_words(event: events.ToolStarted) -> str:
    return first_words(event.title or event.name, _LONGEST_CALL)
