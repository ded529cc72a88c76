"""Sub-agents: ten beside each other against one, memory and start of each, and what a question about many files costs the main agent."""

import asyncio
import gc
import json
import os
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from lab import Lab, Row, median

from ybs.config.host import Host
from ybs.core.envelope import Envelope
from ybs.core.events import RequestStarted, ToolStarted
from ybs.session.session import Session
from ybs.testing import ScriptedModel, answer, call

ANSWER_SECONDS = 1.0
SEVERAL, IDLE = 10, 20
FILES, READ = 2_000, 10
LINES = 120
#: A token has about so many bytes.
BYTES = 4


def measure(lab: Lab, rounds: int) -> list[Row]:
    project = lab.folder / "many"
    make_many(project)
    host = Host.of({**os.environ, **lab.environment})
    return asyncio.run(rows(host, project, max(1, rounds // 3)))


async def rows(host: Host, project: Path, rounds: int) -> list[Row]:
    await timed(host, project, 1)  # what is loaded once
    times = {1: [], SEVERAL: []}
    for _ in range(rounds):
        for count, found in times.items():
            found.append(await timed(host, project, count))
    one, ten = median(times[1]), median(times[SEVERAL])
    megabytes, start_ms = await idle(host, project)
    plain = await tokens(host, project, explores=False)
    explored = await tokens(host, project, explores=True)
    return [
        Row(f"{SEVERAL} sub-agents beside each other / one, {ANSWER_SECONDS:g} s per answer", ten / one, "x", 1.3),
        Row("one", one * 1000, "ms"),
        Row(f"memory of each of {IDLE} that wait for an answer", 1000 * megabytes, "kB", 3_000),
        Row("start of each, from the call to its first request", start_ms, "ms", 5),
        Row(f"tokens of the main agent, {READ} of {FILES} files read by `explore` / by itself", 100 * explored / plain, "%", 25),
        Row("by itself", plain, "tokens"),
    ]  # fmt: skip


def make_many(project: Path) -> None:
    """Make a project of many files."""
    for number in range(FILES):
        file = project / f"src/part{number % 40}/module{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"VALUE_{number}_{line} = {line}\n" for line in range(LINES)))


def opened(host: Host, project: Path, **model: Any) -> Session:
    """Open a session that offers sub-agents, and asks nobody."""
    overrides = {"agents.offer": "always", "agents.max_parallel": 100, "session.auto_save": False}
    return Session.open(
        project, host=host, sandbox=False, mode="bypass", overrides=overrides, **model
    )


async def timed(host: Host, project: Path, count: int) -> float:
    """Return the seconds of a call that has so many sub-agents answer."""
    async with slow_server(count) as endpoint:
        session = opened(host, project, provider="openai", endpoint=endpoint, model="fake")
        async with session:
            began = time.perf_counter()
            outcome = await session.send("go")
            seconds = time.perf_counter() - began
    if outcome.text != f"{count} answers":
        raise SystemExit(f"the run failed: {outcome.text} {outcome.finished.message}")
    return seconds - 2 * ANSWER_SECONDS  # those of the main agent


@asynccontextmanager
async def slow_server(count: int):
    """Serve answers that take their time."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if head.startswith(b"GET"):  # which models and what window there are
                    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                    continue
                length = next(
                    int(line.split(b":")[1])
                    for line in head.splitlines()
                    if line.lower().startswith(b"content-length")
                )
                body = json.loads(await reader.readexactly(length))
                await asyncio.sleep(ANSWER_SECONDS)
                writer.write(streamed(said(body, count)))
                await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()


def said(body: dict[str, Any], count: int) -> dict[str, Any]:
    """Return what the server answers: the tasks, the result of one, or how many results there are."""
    messages = body["messages"]
    if "You are a sub-agent" in messages[0]["content"]:
        return {"content": "Found."}
    if messages[-1]["role"] == "tool":
        return {"content": f"{messages[-1]['content'].count('Found.')} answers"}
    tasks = [{"task": f"look at part {number}", "kind": "explore"} for number in range(count)]
    function = {"name": "delegate", "arguments": json.dumps({"tasks": tasks})}
    return {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]}


def streamed(delta: dict[str, Any]) -> bytes:
    """Return a whole response."""
    reason = "tool_calls" if "tool_calls" in delta else "stop"
    chunks = [
        {"choices": [{"index": 0, "delta": delta}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
    ]
    text = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"
    data = text.encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def is_sub_agents(request: Any) -> bool:
    return "You are a sub-agent" in request.system


def resident() -> float:
    """Return the megabytes that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def idle(host: Host, project: Path) -> tuple[float, float]:
    """Return the megabytes of a sub-agent that waits, and the milliseconds until it does."""
    waiting = asyncio.Barrier(IDLE + 1)
    go_on = asyncio.Event()

    async def hang(_request: Any) -> Any:
        await waiting.wait()
        await go_on.wait()
        return "Found."

    script = [delegated(1), "Found.", "done", delegated(IDLE), *[hang] * IDLE, "done"]
    session = opened(host, project, model=ScriptedModel(script, window=200_000))
    began, started = list[float](), list[float]()

    def listen(envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, ToolStarted) and event.name == "delegate":
            began.append(time.perf_counter())
        elif isinstance(event, RequestStarted) and not envelope.is_main:
            started.append(time.perf_counter())

    session.subscribe(listen)
    async with session:
        await session.send("load what is loaded once")
        gc.collect()
        before = resident()
        turn = asyncio.create_task(session.send("go"))
        await waiting.wait()
        gc.collect()
        grown = resident() - before
        go_on.set()
        await turn
    return grown / IDLE, (started[-1] - began[-1]) * 1000 / IDLE


def delegated(count: int) -> Any:
    """Make the call for so many sub-agents."""
    tasks = [{"task": f"look at part {number}", "kind": "explore"} for number in range(count)]
    return call("delegate", tasks=tasks)


async def tokens(host: Host, project: Path, *, explores: bool) -> float:
    """Return what the requests of the main agent have in all, where a question needs some files read."""
    reads = answer(*(call("read_file", path=f"src/part{n}/module{n}.py") for n in range(READ)))
    found = "\n".join(f"src/part{n}/module{n}.py:1 has VALUE_{n}_0 = 0." for n in range(READ))
    script = [delegated(1), reads, found, found] if explores else [reads, found]
    sizes: list[int] = []

    def played(entry: Any) -> Any:
        def play(request: Any) -> Any:
            if "You are a sub-agent" not in request.system:
                sizes.append(len(msgspec.json.encode(request)))
            return entry

        return play

    model = ScriptedModel([played(entry) for entry in script], window=200_000)
    async with opened(host, project, model=model) as session:
        outcome = await session.send("What are the first values of the first ten modules?")
    if outcome.text != found:
        raise SystemExit(f"the run failed: {outcome.text} {outcome.finished.message}")
    return sum(sizes) / BYTES
