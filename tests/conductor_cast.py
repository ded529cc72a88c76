"""A cast of agents in one session: a script for the main one, and one for each task."""

from pathlib import Path
from typing import Any

from ybs.core.events import ToolFinished
from ybs.session.session import Session
from ybs.testing import RecordedEvents, ScriptedModel, call

ALWAYS = {"agents.offer": "always"}


def delegated(*tasks: dict[str, Any]) -> Any:
    """Make the call that delegates these tasks."""
    return call("delegate", tasks=list(tasks))


def is_sub_agents(request: Any) -> bool:
    """Return whether a request is one of a sub-agent."""
    # A small model reads what is its own alone behind the rules, with the first words.
    return any("You are a sub-agent" in each for each in (request.system, request.messages[0].text))


def of_agent(events: RecordedEvents, name: str) -> list[Any]:
    """Return the events of an agent."""
    return [each.event for each in events.envelopes if each.agent == name]


def results(events: RecordedEvents, tool: str = "delegate") -> list[ToolFinished]:
    """Return the results of a tool, whoever called it."""
    found = [each.event for each in events.envelopes]
    return [each for each in found if isinstance(each, ToolFinished) and each.name == tool]


def opened(project: Path, model: Any, **options: Any) -> tuple[Session, RecordedEvents]:
    """Open a session with a model of the test's."""
    overrides = {**ALWAYS, **options.pop("overrides", {})}
    session = Session.open(project, model=model, sandbox=False, overrides=overrides, **options)
    events = RecordedEvents()
    session.subscribe(events)
    return session, events


class Cast:
    """A model with a script for the main agent and one for each task of a sub-agent, found by its words."""

    def __init__(self, main: list[Any], **tasks: list[Any]) -> None:
        self.scripts = {"main": list(main), **{key: list(each) for key, each in tasks.items()}}
        self.requests: dict[str, list[Any]] = {key: [] for key in self.scripts}
        self.model = ScriptedModel([self.play] * 200, window=200_000)

    async def play(self, request: Any) -> Any:
        words = request.messages[0].text
        keys = [key for key in self.scripts if key != "main" and key in words.split()]
        is_short = len(request.system) < 600  # small models are not told what they are
        key = keys[0] if is_sub_agents(request) or (keys and is_short) else "main"
        self.requests[key].append(request)
        entry = self.scripts[key].pop(0)
        return await entry(request) if callable(entry) and not isinstance(entry, str) else entry
