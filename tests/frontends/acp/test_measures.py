"""What `ybs acp` may cost: an answer to `initialize`, a first update, a long session that is loaded, a session that does nothing.

Times are those of the processor, and each is compared with a yardstick of the same minute, as a busy machine has slower processors: a bare Python that
loads asyncio (some 0.07 s on an idle machine where `initialize` has 0.2 s), and the same session read without an editor (0.13 s where 0.5 s are allowed).
"""

import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import pytest
from msgspec import Raw

from hosts import host_at
from saving import save
from ybs.core.envelope import Envelope
from ybs.core.events import (
    AssistantSaid,
    Event,
    SessionEnded,
    TextStreamed,
    Titled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import Text, ToolCall
from ybs.session.session import Session
from ybs.testing import ScriptedModel
from ybs.transcripts.store import SessionStore

pytestmark = [pytest.mark.slow, pytest.mark.scale, pytest.mark.timeout(120)]
NAME = "session-20260101-000000"


class Raws:
    """An editor that counts what the agent spends."""

    def __init__(self, folder: Path, home: Path) -> None:
        settings = {"llm": {"provider": "ollama", "model": "m", "endpoint": "http://127.0.0.1:9"}}
        file = home / ".config" / "ybs" / "config.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings))
        self.process = subprocess.Popen(
            (sys.executable, "-m", "ybs", "acp"), cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )  # fmt: skip
        self.folder, self.number = str(folder), 0

    def __enter__(self) -> "Raws":
        return self

    def __exit__(self, *_: object) -> None:
        self._stdin.close()
        assert self.process.wait(20) == 0
        assert self.process.stdout
        self.process.stdout.close()

    @property
    def _stdin(self) -> TextIO:
        assert self.process.stdin
        return self.process.stdin

    def ask(self, method: str, **params: Any) -> float:
        """Ask for something, and return how many seconds of the processor it took."""
        before, self.number = self.seconds, self.number + 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self._stdin.write(json.dumps(message) + "\n")
        self._stdin.flush()
        assert self.process.stdout
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.number and "method" not in answer:
                assert "result" in answer, answer
                break
        return self.seconds - before

    @property
    def seconds(self) -> float:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def history(count: int) -> list[Event]:
    events: list[Event] = []
    arguments = Raw(b'{"path":"a"}')
    while len(events) < count:
        call = ToolCall(id=f"c{len(events)}", name="read_file", arguments=arguments)
        events += [
            UserSaid(content="words"),
            AssistantSaid(content="I look.", parts=(Text(text="I look."), call), stop_reason="tool_calls"),
            ToolStarted(id=call.id, name=call.name, arguments=arguments),
            ToolFinished(id=call.id, name=call.name, success=True, output="some lines\n" * 5),
            AssistantSaid(content="It says this and that."),
            TurnFinished(reason="done", steps=2),
        ]  # fmt: skip
    return [*events, Titled(title="t"), SessionEnded(reason="user_exit", message_count=2)]


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_initialize_and_the_load_of_ten_thousand_events_are_quick(project: Path, home: Path):
    store = SessionStore(host_at(home).sessions_folder)
    save(store, NAME, *history(10_000), project=str(project))
    lines = (store.folder / f"{NAME}.jsonl").read_bytes().splitlines()
    started = min(_spent_by_python() for _ in range(3))
    decoded, read, took = list[float](), list[float](), list[float]()
    with Raws(project, home) as editor:
        editor.ask("initialize", protocolVersion=1)
        assert editor.seconds <= 3 * started
        where = {"cwd": str(project), "mcpServers": []}
        editor.ask("session/new", **where)
        for _ in range(5):
            began = time.process_time()
            assert len([json.loads(each) for each in lines]) > 10_000
            decoded.append(time.process_time() - began)
            began = time.process_time()
            assert len(store.read(NAME).lines) > 10_000
            read.append(time.process_time() - began)
            took.append(editor.ask("session/load", sessionId=NAME, **where))
            editor.ask("session/close", sessionId=NAME)
        assert min(read) <= 6 * min(decoded)
        assert min(took) <= 4 * min(read)


def _spent_by_python() -> float:
    """Return how many seconds of the processor a Python takes that loads asyncio and does nothing."""
    before = os.times()
    subprocess.run((sys.executable, "-c", "import asyncio"), check=True)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


async def test_a_first_update_costs_little_beyond_the_sessions_own_way(clients: Any, project: Path):
    words, rounds = ["Hello there."], 20
    session = Session.open(project, model=ScriptedModel(words * rounds), sandbox=False)
    alone = [await _first(session) for _ in range(rounds)]
    await session.close()
    told: list[float] = []

    class Clock(clients.Editor):
        async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
            if update.session_update == "agent_message_chunk" and not self.updates:
                told.append(time.process_time())
            await super().session_update(session_id, update, **more)

    async with clients.edited(project, *words * rounds, editor=Clock()) as editor:
        opened = await editor.new(project)
        await editor.say(opened, "hi")
        began: list[float] = []
        told.clear()
        for _ in range(rounds - 1):
            editor.updates.clear()
            began.append(time.process_time())
            await editor.say(opened, "hi")
    told = [end - start for start, end in zip(began, told, strict=True)]
    assert min(told) - min(alone) <= 0.005  # the editor's side is in it too


async def _first(session: Session) -> float:
    first: list[float] = []

    def hear(envelope: Envelope) -> None:
        if isinstance(envelope.event, TextStreamed):
            first.append(time.process_time())

    leave, began = session.subscribe(hear), time.process_time()
    await session.send("hi")
    leave()
    return first[0] - began


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
async def test_a_session_that_does_nothing_takes_little_memory(clients: Any, project: Path):
    async with clients.edited(project) as editor:
        await editor.new(project)
        gc.collect()
        before = _megabytes()
        for _ in range(50):
            await editor.new(project)
        gc.collect()
        assert (_megabytes() - before) / 50 <= 3  # 0.1


def _megabytes() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
