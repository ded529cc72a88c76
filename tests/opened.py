"""A session with everything real: the project's own tools, a scripted server in place of a provider."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from scripted import OpenAIServer, ScriptedServer
from ybs.commands.open import SlashCommands
from ybs.core.envelope import Sink
from ybs.core.events import Emit
from ybs.session.session import Session
from ybs.testing import RecordedEvents

Opened: TypeAlias = tuple[Session, RecordedEvents]
Open: TypeAlias = Callable[..., Opened]


def events_to(emit: Emit) -> Sink:
    """Return a sink that passes events on without their envelopes."""
    return lambda envelope: emit(envelope.event)


@pytest.fixture
def open_session(project: Path) -> Open:
    """Open a session on a server; keywords are those of `Session.open`.

    Commands run without a sandbox, so that it is the same on every machine; test_sandbox.py has it on.
    """

    def open_on(server: ScriptedServer, **options: Any) -> Opened:
        provider = {"provider": "openai", "endpoint": server.url, "model": "scripted"}
        session = Session.open(
            project, **{**provider, "sandbox": False, "commands": SlashCommands(), **options}
        )
        events = RecordedEvents()
        session.subscribe(events)
        return session, events

    return open_on


@pytest.fixture
def playing(open_session: Open) -> Callable[..., Any]:
    """Open a session on a server that plays a script, as `open_session` does, and close both; with them go the session's events."""

    @asynccontextmanager
    async def played(
        script: Any, **options: Any
    ) -> AsyncGenerator[tuple[Session, RecordedEvents, OpenAIServer]]:
        async with OpenAIServer(script) as server:
            session, events = open_session(server, **options)
            async with session:
                yield session, events, server

    return played
