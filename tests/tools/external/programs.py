"""Programs that serve as tools, and a session's environment that has them."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from msgspec import Raw

from hosts import this_host
from trusting import put
from ybs.agent.environment import ToolEnvironment
from ybs.agent.toolbox import make_toolbox, with_foreign
from ybs.core.events import Event, Noticed
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Question
from ybs.session.options import Options
from ybs.session.settings import environment_of, load_settings
from ybs.tools.external import catalogue

FOLDER = ".config/ybs/tools"


def script(body: str, described: dict[str, Any] | None = None, *, shell: str = "/bin/sh") -> str:
    """Return a shell script that describes itself and then does something."""
    said = json.dumps(described or {"description": "A tool."})
    return f"#!{shell}\nif [ \"$1\" = --schema ]; then cat <<'E'\n{said}\nE\nexit\nfi\n{body}\n"


def install(home: Path, name: str, body: str, described: dict[str, Any] | None = None) -> Path:
    """Put a script into the person's folder of tools."""
    return put(home, f"{FOLDER}/{name}", script(body, described), 0o755)


class Played:
    """The tools of a session, and what the person was asked and told."""

    def __init__(self, environment: ToolEnvironment) -> None:
        self.environment = environment
        self.questions: list[Question] = []
        self.events: list[Event] = []
        self.answer = Answer(is_allowed=True)
        environment.gate.confirm = self._confirm
        self.toolbox = with_foreign(make_toolbox(environment), (), environment, ())

    async def _confirm(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer

    @property
    def names(self) -> list[str]:
        """The tools on offer that are not built in."""
        own = {spec.name for spec in make_toolbox(self.environment).specs()}
        return [spec.name for spec in self.toolbox.specs() if spec.name not in own]

    @property
    def notices(self) -> list[str]:
        """What the person was told."""
        return [event.text for event in self.events if isinstance(event, Noticed)]

    async def run(self, name: str, **arguments: Any) -> ToolResult:
        """Call a tool."""
        call = ToolCall(id="1", name=name, arguments=Raw(json.dumps(arguments).encode()))
        return await self.toolbox.run(call, self.events.append)


@asynccontextmanager
async def playing(
    project: Path, mode: str = "ask", *, seconds: float = 30, **settings: Any
) -> AsyncGenerator[Played]:
    """Open the tools of a project's folder in the real sandbox. Programs have `seconds` to describe themselves."""
    with patch.object(catalogue, "DESCRIBE_SECONDS", seconds):
        async with _playing(project, mode, settings) as played:
            yield played


@asynccontextmanager
async def _playing(project: Path, mode: str, settings: dict[str, Any]) -> AsyncGenerator[Played]:
    overrides = {"safety.mode": mode, **settings}
    options = Options(host=this_host(), folder=project, overrides=overrides)
    environment = environment_of(options, load_settings(options))
    if environment.sandbox.backend.name != "bubblewrap":
        pytest.skip(f"NOT TESTED: {environment.sandbox.backend.why}")
    played = Played(environment)
    await environment.external_tools.load(30)  # however busy the machine is
    await played.toolbox.open(played.events.append)
    try:
        yield played
    finally:
        await played.toolbox.aclose()
        await environment.aclose()
