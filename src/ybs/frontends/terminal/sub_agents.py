"""The activity of sub-agents: a record of each running one, made of its events."""

from collections.abc import Callable
from typing import assert_never

from msgspec import Struct, field

from ybs.commands.advice import advised
from ybs.commands.figures import amount
from ybs.core import events
from ybs.core.events import Event
from ybs.core.wording import plural
from ybs.frontends.terminal.drawing.folds import KeptText
from ybs.frontends.terminal.words import one_line, reading_words, reason_of, verb
from ybs.tools.calls.describing import subject


class SubAgentView(Struct, eq=False):
    """One turn of a sub-agent: what it was asked, what it does now, and what it has used so far.

    `told` is what it did, a line for each call, and what it said.
    """

    name: str
    started_at: float
    task: str = ""
    activity: str = "begins"
    steps: int = 0
    tokens: int = 0
    calls: dict[str, str] = field(default_factory=dict[str, str])
    asked: set[str] = field(default_factory=set[str])
    asked_at: float = 0.0
    waited_seconds: float = 0.0
    told: KeptText = field(default_factory=KeptText)

    @property
    def doing(self) -> str:
        """What it does now, in a few words."""
        if self.asked:
            return "asks you"
        return "; ".join(self.calls.values()) or self.activity

    def figures(self, separator: str) -> str:
        """Return how many steps it took, and how many tokens."""
        used = [f"{amount(self.tokens)} tokens"] * bool(self.tokens)
        return separator.join([plural(self.steps, "step"), *used])

    def worked_seconds(self, now: float) -> float:
        """Return how long it has worked, without the time in which the person was asked."""
        waits = now - self.asked_at if self.asked else 0.0
        return max(0.0, now - self.started_at - self.waited_seconds - waits)

    def took_seconds(self, end: events.TurnFinished, now: float) -> float:
        """Return how long its turn took in all; `now` tells it where the event does not."""
        told = end.duration_seconds - self.waited_seconds
        return max(0.0, told) if end.duration_seconds else self.worked_seconds(now)


class SubAgents:
    """The sub-agents that work; `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.working: dict[str, SubAgentView] = {}

    def add(self, name: str, event: Event) -> SubAgentView | None:
        """Take an event of a sub-agent and return its record; None where it does not work.

        A turn begins with words or a request, and with its end the record is given away.
        """
        if name not in self.working and isinstance(event, events.UserSaid | events.RequestStarted):
            self.working[name] = SubAgentView(name, self._clock())
        agent = self.working.get(name)
        if agent is not None:
            self._note(agent, event)
        return agent

    def _note(self, agent: SubAgentView, event: Event) -> None:
        match event:
            case events.RequestStarted() | events.RequestRetried() | events.PromptRead():
                agent.activity = _request_words(event)
            case events.TextStreamed() | events.ThinkingStreamed() | events.ToolCallStreamed():
                agent.activity = (
                    "thinks" if isinstance(event, events.ThinkingStreamed) else "writes"
                )
            case events.UserSaid() | events.AssistantSaid() | events.Noticed():
                _say(agent, event)
            case events.ToolStarted() | events.ToolFinished():
                _call(agent, event)
            case events.ConfirmationAsked() | events.ConfirmationAnswered():
                self._ask(agent, event)
            case events.TurnFinished():  # it knows what summaries took as well
                agent.steps = max(agent.steps, event.steps)
                used = event.usage.input_tokens + event.usage.output_tokens
                agent.tokens = max(agent.tokens, used)
                del self.working[agent.name]
            case (
                events.ToolPrinted()
                | events.SystemPrompted()
                | events.Compacted()
                | events.Rewound()
                | events.Replaced()
                | events.Titled()
                | events.SessionStarted()
                | events.SessionEnded()
                | events.StateChanged()
                | events.FilesChanged()
                | events.FilesRestored()
            ):
                pass  # not for one line
            case _:
                assert_never(event)

    def _ask(
        self, agent: SubAgentView, event: events.ConfirmationAsked | events.ConfirmationAnswered
    ) -> None:
        now = self._clock()
        if isinstance(event, events.ConfirmationAsked):
            agent.asked_at = agent.asked_at if agent.asked else now
            agent.asked.add(event.id)
        elif event.id in agent.asked:
            agent.asked.remove(event.id)
            agent.waited_seconds += 0.0 if agent.asked else now - agent.asked_at


def end_words(event: events.TurnFinished) -> str:
    """Return why the turn of a sub-agent ended before it was done."""
    return advised(event.message, event.remedies) or "stopped"


def _request_words(event: events.RequestStarted | events.RequestRetried | events.PromptRead) -> str:
    if isinstance(event, events.PromptRead):
        return reading_words(event)
    if isinstance(event, events.RequestStarted):
        return f"waits for {one_line(event.model)}"
    return f"tries again: {one_line(reason_of(event.message))}"


def _say(
    agent: SubAgentView, event: events.UserSaid | events.AssistantSaid | events.Noticed
) -> None:
    match event:
        case events.UserSaid():
            agent.task = agent.task or one_line(event.content)
        case events.Noticed():
            agent.told.add(f"{event.text}\n")
        case events.AssistantSaid():
            agent.steps += 1
            agent.tokens += event.usage.input_tokens + event.usage.output_tokens
            if said := event.content.strip():
                agent.told.add(f"{said}\n")


def _call(agent: SubAgentView, event: events.ToolStarted | events.ToolFinished) -> None:
    if isinstance(event, events.ToolStarted):
        agent.calls[event.id] = f"{verb(event.name)} {subject(bytes(event.arguments))}".strip()
        return
    call = agent.calls.pop(event.id, verb(event.name))
    agent.asked.discard(event.id)
    agent.activity = "works"
    what = event.summary or event.output.strip().partition("\n")[0]
    state = "" if event.success else "refused: " if event.is_refused else "failed: "
    agent.told.add(f"{call}: {state}{one_line(what)}\n")
