"""Ten MCP servers: what they add to the start and to the first request, and what a call costs beside the SDK's own."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from extensions import CHARS_OF_TOKEN
from lab import YBS, Lab, Row, interleave, make_project, median
from msgspec import Raw
from terminal_start import start

SERVERS, TOOLS = 10, 8
SERVER = """
import json, sys
TOOLS = [{"name": "work_on_%d" % n, "description": "Does the work of number %d with one file, and says what came of it." % n,
          "inputSchema": {"type": "object", "required": ["path"], "properties": {"path": {"type": "string", "description": "relative to the project"}}}}
         for n in range(8)]
def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": json.dumps(params["arguments"])}]}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answer(asked["method"], asked.get("params"))
        reply = {"result": result} if result else {"error": {"code": -32601, "message": "unknown"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **reply}), flush=True)
"""
GIVEN = {"path": "README.md"}


def measure(lab: Lab, rounds: int) -> list[Row]:
    home = lab.folder / "home"
    bare_bytes = lab.ybs("turns0").requests[0]["body_bytes"]
    install(home)
    lab.plain(YBS, "mcp", "test")  # each is asked once what it offers
    with_bytes = lab.ybs("turns0").requests[0]["body_bytes"]

    def bare(run: Callable[[], object]) -> object:
        with without(home):
            return run()

    runs = interleave(
        rounds,
        chat=lambda: start(lab)[0],
        bare_chat=lambda: bare(lambda: start(lab)[0]),
        once=lambda: lab.ybs("turns0").ended.cpu_seconds,
        bare_once=lambda: bare(lambda: lab.ybs("turns0").ended.cpu_seconds),
    )
    ms = {name: median(times) * 1000 for name, times in runs.items()}
    calls = asyncio.run(call_times(lab, max(rounds, 9) * 10))
    ms |= {name: median(times) * 1000 for name, times in calls.items()}
    grown = (with_bytes - bare_bytes) / CHARS_OF_TOKEN
    many = f"{SERVERS} servers of {TOOLS} tools"
    return [
        Row("CPU until the first prompt with them / without", ms["chat"] / ms["bare_chat"], "x", 1.1, many),
        Row("the same without", ms["bare_chat"], "ms"),
        Row("CPU of a run with one request with them / without", ms["once"] / ms["bare_once"], "x"),
        Row(f"tokens of the first request for them, {CHARS_OF_TOKEN} characters each", grown, "tokens", 1_500),
        Row("a call, beyond one by the SDK alone", ms["call"] - ms["sdk"], "ms", 2),
        Row("a call by the SDK alone", ms["sdk"], "ms"),
    ]  # fmt: skip


def install(home: Path) -> None:
    """Put the servers into a home."""
    file = home / "servers/server.py"
    file.parent.mkdir(parents=True)
    file.write_text(SERVER)
    entry = {"command": sys.executable, "args": ["-I", str(file)]}
    settings = home / ".config/ybs/config.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    servers = {f"server-{number}": entry for number in range(SERVERS)}
    settings.write_text(json.dumps({"mcpServers": servers}))


@contextmanager
def without(home: Path) -> Iterator[None]:
    """Take them out of the settings for a while."""
    file = home / ".config/ybs/config.json"
    aside = file.with_name("aside.json")
    file.rename(aside)
    try:
        yield
    finally:
        aside.rename(file)


async def call_times(lab: Lab, rounds: int) -> dict[str, list[float]]:
    """Time calls of one tool by ybs, checks and all, and by the SDK alone, in turns."""
    from mcp import Client, StdioServerParameters

    from ybs.agent.toolbox import make_toolbox, with_foreign
    from ybs.config.host import Host
    from ybs.core.messages import ToolCall
    from ybs.core.ports import Answer
    from ybs.session.options import Options
    from ybs.session.settings import environment_of, load_settings

    project = lab.folder / "called"
    make_project(project)
    host = Host.of({**os.environ, "HOME": str(lab.folder / "home")})
    options = Options(host=host, folder=project, allow=("mcp__*",))
    environment = environment_of(options, load_settings(options), _yes(Answer))
    toolbox = with_foreign(make_toolbox(environment), (), environment, ())
    await toolbox.open(lambda _event: None)
    call = ToolCall(
        id="1", name="mcp__server-3__work_on_7", arguments=Raw(json.dumps(GIVEN).encode())
    )
    words = [str(lab.folder / "home/servers/server.py")]
    times: dict[str, list[float]] = {"call": [], "sdk": []}
    async with Client(StdioServerParameters(command=sys.executable, args=["-I", *words])) as client:
        for _ in range(rounds):
            began = time.perf_counter()
            result = await toolbox.run(call, lambda _event: None)
            times["call"].append(time.perf_counter() - began)
            if result.is_error or json.loads(result.output) != GIVEN:
                raise SystemExit(f"the call failed: {result.output}")
            began = time.perf_counter()
            await client.call_tool("work_on_7", GIVEN)
            times["sdk"].append(time.perf_counter() - began)
    await toolbox.aclose()
    await environment.aclose()
    return times


def _yes(answer: Any) -> Any:
    async def confirm(_question: Any) -> Any:
        return answer(is_allowed=True)

    return confirm
