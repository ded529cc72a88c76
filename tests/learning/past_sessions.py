"""Sessions that are written as ybs writes them, with what was asked in each and what was done for it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Raw, json

from ybs.core.events import (
    Event,
    FilesRestored,
    SessionStarted,
    TextStreamed,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.transcripts.line import encoded

BEGUN = datetime(2026, 3, 2, 9, tzinfo=UTC)

CHANGELOG = (
    ("run_shell", {"command": "cd /home/ada/app && git log --oneline v1..HEAD"}),
    ("read_file", {"path": "CHANGELOG.md"}),
    ("edit_file", {"path": "CHANGELOG.md", "old_text": "a", "new_text": "b"}),
)


def turn(
    words: str,
    calls: Sequence[tuple[str, dict[str, str]]] = (),
    *,
    steered: str = "",
    is_undone: bool = False,
    is_ended: bool = True,
    typed: str | None = None,
) -> list[Event]:
    """Return the events of one turn."""
    events: list[Event] = [UserSaid(content=words, typed=typed)]
    for number, (name, arguments) in enumerate(calls):
        given = Raw(json.encode(arguments))
        events.append(ToolStarted(id=f"c{number}", name=name, arguments=given))
        events.append(ToolFinished(id=f"c{number}", name=name, success=True, output="fine"))
    if steered:
        events.append(UserSaid(content=steered))
    if is_ended:
        events.append(TurnFinished(reason="done"))
    if is_undone:
        events.append(FilesRestored(checkpoints=("1",)))
    return events


def write(folder: Path, name: str, day: float, *turns: list[Event], agent: str = "main") -> Path:
    """Write a session of some turns that began so many days after `BEGUN`; more turns are added to one that is there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    at = BEGUN + timedelta(days=day)
    events: list[Event] = (
        [] if path.exists() else [SessionStarted(session=name, folder="/home/ada/app")]
    )
    number = len(path.read_bytes().splitlines()) if path.exists() else 0
    for each in turns:
        events += each
    assert not any(isinstance(each, TextStreamed) for each in events)
    path.touch(mode=0o600)
    with path.open("ab") as file:
        for event in events:
            number += 1
            file.write(encoded(event, number=number, parent=number - 1, at=at, agent=agent))
    return path
