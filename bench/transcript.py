"""Transcripts: writing a line down, loading a long session, listing a thousand of them.

CPU time; what a disk and a cold cache take is not ybs's own. The writing is without the wait for the disk.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lab import Lab, Row, median
from msgspec import Raw, json

from ybs.core.events import (
    AssistantSaid,
    Event,
    SessionEnded,
    SessionStarted,
    SystemPrompted,
    Titled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import Text, ToolCall, Usage
from ybs.transcripts.log import Log
from ybs.transcripts.reading import read
from ybs.transcripts.store import SessionStore

EVENTS, SESSIONS = 10_000, 1_000
#: Of a thousand sessions so many broke off: they are read whole.
BROKEN_OFF = 10
MOST_ADD_MS, MOST_LOAD_SECONDS, MOST_LIST_SECONDS = 1.0, 0.3, 0.2


def measure(lab: Lab, rounds: int) -> list[Row]:
    folder = lab.folder / "sessions"
    path = folder / "session-20260118-143022.jsonl"
    events = list(session(EVENTS))
    added = [timed(lambda: write(path, events)) for _ in range(rounds)]
    if len(read(path).chain) != len(events):
        raise SystemExit("transcript: not all lines can be read, so the times mean nothing")
    loaded = [timed(lambda: read(path)) for _ in range(rounds)]
    size = path.stat().st_size / 1_000_000
    path.unlink()
    total = make_sessions(folder) / 1_000_000
    if len(SessionStore(folder).sessions()) != SESSIONS:
        raise SystemExit("transcript: not all sessions are listed, so the times mean nothing")
    listed = [timed(lambda: SessionStore(folder).sessions()) for _ in range(rounds)]
    return [
        Row("write one line, CPU time", median(added) / len(events) * 1000, "ms", MOST_ADD_MS),
        Row(
            f"load {len(events):,} events, CPU time",
            median(loaded) * 1000,
            "ms",
            MOST_LOAD_SECONDS * 1000,
            f"{size:.0f} MB",
        ),
        Row(
            f"list {SESSIONS:,} sessions, CPU time",
            median(listed) * 1000,
            "ms",
            MOST_LIST_SECONDS * 1000,
            f"{total:.0f} MB, {BROKEN_OFF} of them broke off",
        ),
    ]


def timed(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def write(path: Path, events: list[Event]) -> None:
    path.unlink(missing_ok=True)
    log = Log(path)
    for event in events:
        log.add(event)
    log.close()


def make_sessions(folder: Path) -> int:
    """Make sessions of one to some thirty turns, as people have them; return their bytes."""
    total = 0
    for number in range(SESSIONS):
        turns = 1 + number * 7 % 31
        events = list(session(turns * 12))
        path = folder / f"session-20260101-{number:06}.jsonl"
        write(path, events[:-2] if number % (SESSIONS // BROKEN_OFF) == 0 else events)
        when = 1_767_225_600 + number * 977 % SESSIONS
        os.utime(path, (when, when))
        total += path.stat().st_size
    return total


def session(most: int) -> Iterator[Event]:
    """Yield at least so many events of a session that reads, edits and runs commands."""
    config = {"provider": "openai", "model": "m", "mode": "ask", "sandbox": "on"}
    yield SessionStarted(session="s", folder="/home/somebody/project", config=config)
    yield SystemPrompted(content="You are a coding agent.\n" * 150)
    count = 2
    while count < most:
        yield UserSaid(content=f"Please make change {count}, then run the checks.")
        for step in range(3):
            yield from call(f"call_{count}_{step}")
        yield AssistantSaid(content="Done: the change is made. " * 20, model="m", usage=USAGE)
        yield TurnFinished(reason="done", steps=4, usage=USAGE, duration_seconds=9.5)
        count += 12
    yield Titled(title="Make the changes and run the checks")
    yield SessionEnded(reason="quit", message_count=count // 12 * 8)


USAGE = Usage(input_tokens=9_000, output_tokens=300, cached_tokens=8_000, cost_usd=0.01)


def call(name: str) -> Iterator[Event]:
    arguments = Raw(json.encode({"path": "src/app.py", "start_line": 1}))
    asked = ToolCall(id=name, name="read_file", arguments=arguments)
    text = "I look at the file first."
    parts = (Text(text=text), asked)
    yield AssistantSaid(content=text, parts=parts, stop_reason="tool_calls", model="m", usage=USAGE)
    yield ToolStarted(id=name, name=asked.name, arguments=arguments)
    output = "".join(f"{n:>4}  value = function({n})\n" for n in range(60))
    yield ToolFinished(
        id=name,
        name=asked.name,
        success=True,
        output=output,
        summary="60 lines",
        display=Raw(json.encode({"path": "src/app.py", "lines": 60})),
        duration_seconds=0.01,
    )
