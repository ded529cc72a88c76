"""A project and copies of it for sub-agents, as the tests of isolation use them."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Raw

from hosts import this_host
from ybs.agent.environment import Permissions, Person, ToolEnvironment
from ybs.conductor.home import Workplace
from ybs.conductor.merging import Merged
from ybs.conductor.overlay import Overlay
from ybs.conductor.workplaces import Isolation
from ybs.core.events import Event
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Effect, Question
from ybs.session.options import Options
from ybs.session.settings import load_settings
from ybs.session.undoing import Checkpoints

#: Whether the machine has a place in memory for what an incognito session may not keep on a disk.
HAS_MEMORY = os.path.ismount("/dev/shm")
DELEGATE = ToolCall(id="call-1", name="delegate", arguments=Raw(b"{}"))


class Keeping:
    """A hook that keeps what changes for an undo, as that of a session does."""

    name, loss = "undo", "the person cannot undo this"

    def __init__(self, environment: ToolEnvironment) -> None:
        self.checkpoints = Checkpoints(environment.roots, "session-1", may_write=True)
        self.paths: list[str] = []

    async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Keep what is about to change."""
        self.paths += paths
        await self.checkpoints.before_change(effect, paths)

    async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """See what has changed."""
        await self.checkpoints.after_change()


class Copies:
    """Copies of a project; `answer` is what the person says to each question."""

    def __init__(
        self, project: Path, overrides: Mapping[str, Any] | None = None, *, answer: bool = False
    ) -> None:
        settings = {"safety.mode": "auto", **(overrides or {})}
        options = Options(host=this_host(), folder=project, overrides=settings)
        self.project, self.answer = project, answer
        self.questions: list[Question] = []
        self.events: list[Event] = []
        self.environment = ToolEnvironment.of(
            project,
            load_settings(options),
            Permissions(has_sandbox=False),
            person=Person(confirm=self._confirm),
        )
        self.undo = Keeping(self.environment)
        self.isolation = Isolation(Workplace(self.environment, (self.undo,)))

    async def _confirm(self, question: Question) -> Answer:
        self.questions.append(question)
        return Answer(is_allowed=self.answer)

    async def open(self, agent: str = "general-1") -> Overlay:
        """Make a copy."""
        return await self.isolation.open(agent)

    async def merge(self, overlay: Overlay) -> Merged:
        """Merge a copy."""
        return await overlay.merge(DELEGATE, self.events.append)

    async def aclose(self) -> None:
        """Remove all copies."""
        await self.isolation.aclose()
        await self.environment.aclose()
        await asyncio.to_thread(self.undo.checkpoints.close)
