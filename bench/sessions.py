"""Fifty sessions of one project in one process, with three MCP servers: programs, memory, and a turn beside 49 busy ones."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import NamedTuple

from lab import Lab, Row, make_project, median

from ybs.core.events import Event
from ybs.core.messages import ToolResult
from ybs.core.ports import Answer, Question, Request
from ybs.session.hub import Hub
from ybs.session.session import Session
from ybs.testing import ScriptedModel, call

SESSIONS, SERVERS = 50, ("one", "two", "three")
#: So long each piece of an answer is waited for, as a model takes its time.
PIECE_SECONDS = 0.005
#: So much CPU time shows what the machine gives this process at the moment.
SPIN_SECONDS = 0.05
SERVER = """
import json, os, sys
TOOLS = [{"name": "who", "description": "Says who it is.", "inputSchema": {"type": "object", "properties": {}}}]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
            "tools/list": {"tools": TOOLS},
            "tools/call": {"content": [{"type": "text", "text": str(os.getpid())}]},
        }[asked["method"]]
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
TEXT = "The file has what was asked for. " * 20
TURN = [call("read_file", path="src/app.py"), TEXT]


def measure(lab: Lab, rounds: int) -> list[Row]:
    """Measure in a process of its own, whose memory is that of the sessions."""
    project, home = lab.folder / "fifty", lab.folder / "home"
    make_project(project)
    (home / "server.py").write_text(SERVER)
    entry = {
        "command": sys.executable,
        "args": ["-I", str(home / "server.py")],
        "approve": "always",
    }
    file = home / ".config/ybs/config.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"mcpServers": dict.fromkeys(SERVERS, entry)}))
    found = json.loads(
        lab.plain(sys.executable, __file__, str(project), str(rounds)).output.splitlines()[-1]
    )
    alone, beside = found["alone"], found["beside"]
    return [
        Row(f"programs of {len(SERVERS)} MCP servers", found["programs"], "", len(SERVERS)),
        Row("memory of a session that has taken a turn", found["session_kb"], "kB", 3000),
        Row(
            "a turn beside 49 busy ones / alone and the CPU of the others",
            beside / found["explained"],
            "x",
            1.5,
        ),
        Row("a turn alone", alone * 1000, "ms"),
        Row("a turn beside 49 busy ones", beside * 1000, "ms"),
        Row("CPU of the process meanwhile", found["cpu"] * 1000, "ms"),
    ]


class Paced(ScriptedModel):
    """It answers a piece at a time."""

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the answer."""
        async for event in super().stream(request):
            await asyncio.sleep(PIECE_SECONDS)
            yield event


async def yes(_question: Question) -> Answer:
    return Answer(is_allowed=True)


def opened(hub: Hub, project: str) -> Session:
    """Open a session whose first turn calls each server, and whose others read a file."""
    model = Paced([*(call(f"mcp__{name}__who") for name in SERVERS), TEXT, *(TURN * 400)])
    options = {"model": model, "sandbox": False, "mode": "bypass", "confirm": yes}
    return hub.open(project, **options).session


class Timed(NamedTuple):
    """How long a turn took, the CPU time of the process meanwhile, and how many seconds one of CPU takes on this machine now."""

    wall: float
    cpu: float
    pace: float


async def timed(session: Session) -> Timed:
    """Take a turn."""
    pace = pace_now()
    began, used = time.perf_counter(), time.process_time()
    await session.send("go")
    wall, cpu = time.perf_counter() - began, time.process_time() - used
    return Timed(wall, cpu, (pace + pace_now()) / 2)


def pace_now() -> float:
    began, used = time.perf_counter(), time.process_time()
    while time.process_time() - used < SPIN_SECONDS:
        pass
    return (time.perf_counter() - began) / SPIN_SECONDS


async def keep_busy(session: Session) -> None:
    while True:
        await session.send("go")


def programs_of(sessions: Iterable[Session]) -> set[str]:
    """Return the process ids that the servers of these sessions said."""
    said = (each for session in sessions for each in session.conversation.messages)
    return {each.output.strip() for each in said if isinstance(each, ToolResult)}


async def fifty(project: str, rounds: int) -> dict[str, float]:
    """Open the sessions, and return what was measured."""
    async with Hub() as hub:
        session = opened(hub, project)
        await session.send("go")  # what all of them share is loaded
        before, others = resident_kb(), [opened(hub, project) for _ in range(SESSIONS - 1)]
        for each in others:
            await each.send("go")
        session_kb = (resident_kb() - before) / len(others)
        programs = programs_of((session, *others))
        alone = [await timed(session) for _ in range(rounds)]
        working = [asyncio.create_task(keep_busy(each)) for each in others]
        await asyncio.sleep(1)
        beside = [await timed(session) for _ in range(rounds)]
        for task in working:
            task.cancel()
        await asyncio.wait(working)
    wall, own = median(each.wall for each in alone), median(each.cpu for each in alone)
    explained = median(wall + max(0.0, each.cpu - own) * each.pace for each in beside)
    return {
        "programs": len(programs),
        "session_kb": session_kb,
        "alone": wall,
        "beside": median(each.wall for each in beside),
        "explained": explained,
        "cpu": median(each.cpu for each in beside),
    }


def resident_kb() -> float:
    """Return what of this process is in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1000


if __name__ == "__main__":
    print(json.dumps(asyncio.run(fifty(sys.argv[1], int(sys.argv[2])))))
