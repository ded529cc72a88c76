"""Saved sessions for tests."""

import os
import time
from pathlib import Path

from ybs.core.events import AssistantSaid, Event, SessionEnded, SessionStarted, Titled, UserSaid
from ybs.transcripts.log import Log
from ybs.transcripts.store import SessionStore

DAY = 86_400


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def started(project: str = "/p") -> SessionStarted:
    config = {"provider": "openai", "model": "m"}
    return SessionStarted(session="s", folder=project, config=config)


def save(
    store: SessionStore,
    name: str,
    *events: Event,
    project: str = "/p",
    title: str = "",
    age_days: float = 0,
) -> str:
    """Save a session that has ended; with `events`, one of those that has not."""
    said = [UserSaid(content=f"words of {name}"), AssistantSaid(content="yes", model="m")]
    ending = [Titled(title=title or f"Title of {name}"), SessionEnded(reason="q", message_count=2)]
    with_all = (started(project), *(events or (*said, *ending)))
    log = Log(store.folder / f"{name}.jsonl")
    for event in with_all:
        log.add(event)
    log.close()
    then = time.time() - age_days * DAY
    os.utime(log.path, (then, then))
    return name
