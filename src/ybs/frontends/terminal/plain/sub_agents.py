"""What sub-agents do, told in whole sentences with the name in front."""

from collections.abc import Callable

from ybs.core.events import (
    Compacted,
    ConfirmationAnswered,
    ConfirmationAsked,
    Event,
    Noticed,
    RequestRetried,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from ybs.frontends.terminal.plain.sentences import Sentences, fold_line
from ybs.frontends.terminal.sub_agents import SubAgent, SubAgents, end_words
from ybs.frontends.terminal.words import duration, one_line


class SubAgentSentences:
    """Makes sentences of the events of sub-agents: when each begins and ends, and of its calls.

    `sentences` makes what tells the calls of one agent, by its name.
    """

    def __init__(self, clock: Callable[[], float], sentences: Callable[[str], Sentences]) -> None:
        self._clock, self._make = clock, sentences
        self._sub_agents = SubAgents(clock)
        self._sentences: dict[str, Sentences] = {}

    def of(self, name: str, event: Event) -> str:
        """Return the sentence for an event of a sub-agent; "" where there is nothing to tell."""
        was_working = name in self._sub_agents.working
        agent = self._sub_agents.add(name, event)
        if agent is not None and not was_working:
            return fold_line(
                f"{name} begins{f': {agent.task}' * bool(agent.task)}".rstrip(".") + "."
            )
        if isinstance(event, TurnFinished):
            self._sentences.pop(name, None)
            return self._end(agent, event) if agent is not None else ""
        return self._made(name).of(event) if _is_told(event) else ""

    def _made(self, name: str) -> Sentences:
        if name not in self._sentences:
            self._sentences[name] = self._make(name)
        return self._sentences[name]

    def _end(self, agent: SubAgent, event: TurnFinished) -> str:
        used = f"{agent.figures(', ')}, {duration(agent.took_seconds(event, self._clock()))}"
        if event.reason == "done":
            return fold_line(f"{agent.name} is done: {used}.")
        why = one_line(end_words(event)).rstrip(".")
        return fold_line(f"{agent.name} ended early, {why}: {used}.")


def _is_told(event: Event) -> bool:
    """Return whether the event is about a call, or worth a line of its own. The rest is the sub-agent's own matter."""
    match event:
        case ToolStarted() | ToolFinished():
            return True
        case ConfirmationAsked() | ConfirmationAnswered() | Compacted() | RequestRetried():
            return True
        case Noticed():
            return event.level != "info"
        case _:
            return False
