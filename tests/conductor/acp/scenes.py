"""A session whose main agent hands a task to another agent, a real program that follows a script."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conductor_cast import delegated, of_agent, results
from ybs.core.events import TextStreamed
from ybs.core.ports import Answer, Question
from ybs.session.session import Session
from ybs.testing import RecordedEvents, ScriptedModel

AGENT = Path(__file__).parents[2] / "acp_agent.py"
TASK = delegated({"task": "do it", "kind": "other"})


class Scene:
    """A session whose main agent hands one task to another agent, which follows a script."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.asked: list[Question] = []
        self.answer: Callable[[Question], Answer] = lambda _: Answer(is_allowed=True)
        self.events = RecordedEvents()
        self.session: Session | None = None

    async def confirm(self, question: Question) -> Answer:
        self.asked.append(question)
        return self.answer(question)

    def open(self, *steps: Any, agent: Any = None, **options: Any) -> Session:
        entry = {
            "command": [sys.executable, str(AGENT)],
            "env": {"SCRIPT": json.dumps(steps), "PYTHONDONTWRITEBYTECODE": "1"},
            **(agent or {}),
        }
        overrides = {"agents.offer": "always", "agents.acp": {"other": entry}}
        model = ScriptedModel([options.pop("task", TASK), "done", "done"], window=200_000)
        session = Session.open(
            self.project,
            model=model,
            confirm=self.confirm,
            overrides={**overrides, **options.pop("overrides", {})},
            **{"mode": "auto", "trust": True, **options},
        )
        session.subscribe(self.events)
        self.session = session
        return session

    async def play(self, *steps: Any, **options: Any) -> str:
        """Have the agent play its steps; return the result that the main agent reads."""
        async with self.open(*steps, **options) as session:
            await session.send("go")
        return results(self.events)[0].output

    @property
    def said(self) -> str:
        """All that the other agent said."""
        return "".join(each.text for each in self.told(TextStreamed))

    def told(self, kind: type[Any]) -> list[Any]:
        return [each for each in of_agent(self.events, "other-1") if isinstance(each, kind)]
