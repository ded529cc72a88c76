"""Facts about a whole session, rewound turns included: its turns, its tokens, its changes in files."""

import re
from typing import Final

from msgspec import Struct

from ybs.core.envelope import MAIN
from ybs.core.events import (
    AssistantSaid,
    Event,
    FilesChanged,
    FilesRestored,
    SessionStarted,
    Titled,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.lazy import lazy
from ybs.core.messages import ToolCall, Usage

#: Begins the person's words that let a plan be carried out; the plan follows.
GO_AHEAD: Final = "Go ahead with this plan. You may change files and run commands now.\n\n"
#: Characters of a turn's words that are kept: a line shows fewer.
MOST_WORDS: Final = 1_000


class TurnLine(Struct, frozen=True, kw_only=True):
    """One turn that has ended: the first of its words, the model that answered, and how it ended.

    `others` is what the sub-agents used that ended meanwhile.
    """

    words: str
    model: str
    finished: TurnFinished
    others: Usage = Usage()


class Consumption:
    """What agents have used: the answers of each, or what the end of its turn tells where that is more."""

    def __init__(self) -> None:
        self._closed = Usage()
        self._open: dict[str, Usage] = {}

    @property
    def total(self) -> Usage:
        """What all of them have used."""
        return sum(self._open.values(), self._closed)

    def add(self, event: AssistantSaid | TurnFinished, agent: str) -> None:
        """Count an answer, or the end of a turn: summaries are not among the answers."""
        if isinstance(event, AssistantSaid):
            self._open[agent] = self._open.get(agent, Usage()) + event.usage
            return
        answers, told = self._open.pop(agent, Usage()), event.usage
        self._closed += told if told.input_tokens > answers.input_tokens else answers

    def close(self) -> None:
        """Take the turns that have no end as ended."""
        self._closed, self._open = self.total, {}

    def take(self) -> Usage:
        """Return what the turns that have ended used, and forget it."""
        taken, self._closed = self._closed, Usage()
        return taken


class SessionFacts:
    """What the events of a session tell of it; those of rewound turns too."""

    def __init__(self) -> None:
        self.title = ""
        self.started: SessionStarted | None = None
        self.config: dict[str, str] = {}
        self.last_answer = ""
        #: The plan that was proposed or agreed to last.
        self.plan = ""
        self.turns: list[TurnLine] = []
        self._used = Consumption()
        #: What sub-agents have used and no turn holds yet.
        self._others = Consumption()
        self._words: str | None = None
        self._model = ""
        #: The ids of all tool calls, of sub-agents too.
        self.call_ids: set[str] = set()
        self._changes: dict[str, FilesChanged] = {}
        self._undone: set[str] = set()

    @property
    def usage(self) -> Usage:
        """What was used by all agents, by summaries within turns too."""
        return self._used.total

    @property
    def checkpoints(self) -> list[FilesChanged]:
        """What turns changed in files and was not undone."""
        return [change for name, change in self._changes.items() if name not in self._undone]

    def add(self, event: Event, *, agent: str = MAIN) -> None:
        """Take an event. Of a sub-agent only what it used counts."""
        if isinstance(event, ToolStarted):
            self.call_ids.add(event.id)
        elif isinstance(event, AssistantSaid):
            self.call_ids.update(part.id for part in event.parts if isinstance(part, ToolCall))
        if isinstance(event, AssistantSaid | TurnFinished):
            self._used.add(event, agent)
            if agent != MAIN:
                self._others.add(event, agent)
        if agent == MAIN:
            self._add_main(event)

    def _add_main(self, event: Event) -> None:
        match event:
            case SessionStarted():
                self.started = self.started or event
                self.config = event.config
                self._words, self._model = None, ""
                self._used.close()  # a crash ended the turn before
                self._others = Consumption()
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
                if event.message.words.startswith(GO_AHEAD):
                    self.plan = event.message.words.removeprefix(GO_AHEAD)
                if self._words is None:
                    self._words = event.message.words[:MOST_WORDS]
            case AssistantSaid():
                self.last_answer = event.content or self.last_answer
                if "plan" in event.content.lower():
                    self.plan = plan_in(event.content) or self.plan
                self._model = event.model or self._model
            case TurnFinished():
                words, others = self._words or "", self._others.take()
                self.turns.append(
                    TurnLine(words=words, model=self._model, finished=event, others=others)
                )
                self._words, self._model = None, ""

    def _add_change(self, event: FilesChanged | FilesRestored) -> None:
        if isinstance(event, FilesChanged):
            self._changes[event.checkpoint] = event
            self._undone.discard(event.checkpoint)
        elif event.is_redo:
            self._undone.difference_update(event.checkpoints)
        else:
            self._undone.update(event.checkpoints)


_HEADING = lazy(
    r"^[ \t]*(?:#{1,6}[ \t]*)?[*_]{0,2}(?:(?:the|my|proposed|implementation|revised|updated) )?plan\b[^\n.?!]{0,40}$",
    re.IGNORECASE | re.MULTILINE,
)
_STEP = lazy(r"^[ \t]*(?:#{1,6}[ \t]*)?(?:\*\*)?(?:step[ \t]+)?\d{1,2}[.):]", re.I | re.M)
_LEAST_STEPS: Final = 2


def plan_in(text: str) -> str:
    """Return the part of an answer that stands under the last heading `Plan`; empty where there is none."""
    headings = list(_HEADING().finditer(text))
    if not headings:
        return ""
    plan = text[headings[-1].start() :].strip()
    return plan if "\n" in plan else ""


def proposed_plan(text: str) -> str:
    """Return the plan in an answer that was given in the mode `plan`.

    Models that write no heading are understood by their numbered steps, unless the answer ends in a question.
    """
    if plan := plan_in(text):
        return plan
    is_question = text.rstrip().endswith("?")
    return "" if is_question or len(_STEP().findall(text)) < _LEAST_STEPS else text.strip()
