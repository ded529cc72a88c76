"""What the gateway itself costs: `python bench/gateway.py [--sessions 200] [--seconds 20]`. Exit status 1 where a limit is missed.

As many private chats as sessions write to one bot, whose platform and model are servers of this process; the model takes a second for
each call. Counted are, for each message, the time from the platform's update to the first request for it, and from the model's last
byte to the message at the platform; their sum is ybs's own delay. `first` messages open their sessions, `later` ones go on in them, each spread
evenly over the seconds; `at once` they all come in one moment. Memory is resident memory of the gateway and its children, CPU its own time for each message.
A restart is timed from the start of the process, after a kill in the midst of turns, to the first request.

`--workers 1 2 4` instead: so many gateways share a PostgreSQL database and the turns of 24 chats, each two at once, so that the model is what is
waited for. Printed is how long all take, and the ratio to the first number of gateways.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))  # for its scripted servers

from process import memory_below

from chat_faults import GatewayProcess
from chat_platform import ChatPlatform
from postgres import postgres

MODEL_SECONDS = 1.0
SHARED_CHATS, SHARED_AT_ONCE = 24, 2
MOST_DELAY, MOST_MEGABYTES, MOST_RESTART = 0.5, 2.0, 2.0
CHUNK = "data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": "{}"}}]}) + "\n\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


class Model:
    """A model that answers `done N` to `task N`, a second later; it notes when each request came, and when its answer was over."""

    def __init__(self) -> None:
        self.came, self.ended = dict[str, float](), dict[str, float]()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=1_000)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(b"post"):  # which models there are
            writer.write(
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            writer.close()
            return
        length = re.search(rb"content-length: *(\d+)", head)
        body = await reader.readexactly(int(length[1])) if length else b""
        name = (re.findall(r"task (\w+)", body.decode()) or [""])[-1]
        self.came.setdefault(name, time.time())
        await asyncio.sleep(MODEL_SECONDS)
        text = CHUNK.replace("{}", f"done {name}")
        end = 'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
        self.ended[name] = time.time()
        writer.write(HEAD + text.encode() + end.encode())
        await writer.drain()
        writer.close()


class Chats:
    """What persons write, and when the answers came."""

    def __init__(self, gateway: GatewayProcess, model: Model, sessions: int) -> None:
        self.gateway, self.platform = gateway, gateway.platform
        self.model, self.sessions = model, sessions
        self.wrote = dict[str, float]()

    async def write(self, kind: str, seconds: float) -> list[str]:
        """Have each chat write once, over so many seconds."""
        names = list[str]()
        for chat in range(1, self.sessions + 1):
            names.append(f"{kind}{chat}")
            self.wrote[names[-1]] = time.time()
            self.platform.say(f"task {names[-1]}", chat=chat, person=chat)
            await asyncio.sleep(seconds / self.sessions)
        return names

    def answered(self) -> dict[str, float]:
        """Return when each answer stood in its chat."""
        found = dict[str, float]()
        for sent in self.platform.sent:
            for name in re.findall(r"^done (\w+)", sent.text):
                found.setdefault(name, sent.edited_at[-1] if sent.edited_at else sent.at)
        return found

    def pid(self) -> int:
        """Return the gateway's process."""
        assert self.gateway.process is not None
        return self.gateway.process.pid

    async def measured(self, kind: str, seconds: float) -> float:
        """Write, wait for all answers, print the delays and return the 95th percentile of their sums."""
        used = cpu_seconds(self.pid())
        names = await self.write(kind, seconds)
        await until(lambda: {*names} <= self.answered().keys(), 300)
        came, ended, answered = self.model.came, self.model.ended, self.answered()
        before = [came[name] - self.wrote[name] for name in names]
        after = [answered[name] - ended[name] for name in names]
        both = [sum(each) for each in zip(before, after, strict=True)]
        line = "  ".join(f"{_p95(each):6.3f}" for each in (before, after, both))
        cpu = (cpu_seconds(self.pid()) - used) / len(names)
        rest = f"median {statistics.median(both):.3f} s   CPU {1_000 * cpu:.0f} ms"
        print(f"{kind:8} p95 in, out, both: {line} s   {rest}", flush=True)
        return _p95(both)


async def until(is_so: Callable[[], bool], seconds: float) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(seconds):
        while not is_so():  # noqa: ASYNC110 - others set what it looks at
            await asyncio.sleep(0.01)


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


async def measure(sessions: int, seconds: float) -> int:
    """Take all measures, and return how many limits are missed."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="ybs-")))
        platform = await stack.enter_async_context(ChatPlatform())
        model: Any = await stack.enter_async_context(Model())
        gateway = GatewayProcess(folder / "home", platform, model, range(1, sessions + 1))
        chats = Chats(gateway, model, sessions)
        print(f"load {os.getloadavg()[0]:.1f}, {sessions} sessions, messages over {seconds:.0f} s")
        await gateway.start()
        try:
            await until(lambda: platform.polls > 1, 60)
            empty = megabytes(chats.pid())
            await chats.measured("first", seconds)
            await asyncio.sleep(2)
            each = (megabytes(chats.pid()) - empty) / sessions
            print(f"memory   {empty:.0f} MB without sessions, {each:.2f} MB for each idle one")
            later = await chats.measured("later", seconds)
            await chats.measured("atonce", 0.0)
            restart, cpu = await restarted(gateway, chats)
            print(f"restart  {restart:.2f} s to the first turn that is taken up; CPU {cpu:.2f} s")
        finally:
            await gateway.kill()
    limits = ((later, MOST_DELAY), (each, MOST_MEGABYTES), (restart, MOST_RESTART))
    missed = [(value, most) for value, most in limits if value > most]
    for value, most in missed:
        print(f"missed: {value:.2f} where {most} is the limit")
    return len(missed)


def megabytes(pid: int) -> float:
    """Return the memory of a gateway and its children."""
    return sum(memory_below(pid).values()) / 1_000_000


def cpu_seconds(pid: int) -> float:
    """Return the time that a process and its ended children have used."""
    facts = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return sum(map(int, facts[11:15])) / os.sysconf("SC_CLK_TCK")


async def shared(counts: list[int]) -> None:
    """Print how long numbers of gateways take for the same turns."""
    alone = dict[str, float]()
    for count in counts:
        took = await taken(count)
        alone = alone or took
        for kind, seconds in took.items():
            times = alone[kind] / seconds
            print(f"{count} gateways  {kind:6} {seconds:6.2f} s   {times:.2f} x", flush=True)


async def taken(count: int) -> dict[str, float]:
    """Return how many seconds gateways of one database take for turns that open sessions, and for later ones."""
    found, chats = dict[str, float](), range(1, SHARED_CHATS + 1)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="ybs-")))
        await asyncio.to_thread(folder.chmod, 0o711)  # the database is another user's
        server = stack.enter_context(postgres(folder / "database"))
        platform = await stack.enter_async_context(ChatPlatform())
        model: Any = await stack.enter_async_context(Model())
        for number in range(count):
            made = GatewayProcess(folder / f"m{number}", platform, model, chats, server.url)
            file = made.home / ".config/ybs/config.json"
            settings = json.loads(file.read_text())
            settings["gateway"]["turns_at_once"] = SHARED_AT_ONCE
            file.write_text(json.dumps(settings))
            await made.start()
            stack.push_async_callback(made.kill)
        await until(lambda: platform.polls > 1, 60)
        await until(lambda: server.ask("SELECT count(*) FROM workers") == str(count), 60)
        for kind in ("first", "later"):
            began = time.monotonic()
            for chat in chats:
                platform.say(f"task {kind}{chat}", chat=chat, person=chat)
            names = {f"{kind}{chat}" for chat in chats}
            ended = [f"done {name}" for name in names]
            await until(lambda ended=ended: _said(platform) >= {*ended}, 120)
            found[kind] = time.monotonic() - began
    return found


def _said(platform: ChatPlatform) -> set[str]:
    return {sent.text.rstrip(".") for sent in platform.sent}


async def restarted(gateway: GatewayProcess, chats: Chats) -> tuple[float, float]:
    """Kill the gateway in the midst of turns; return how many seconds after its start a turn of them is taken up, and its CPU time."""
    names = [f"kill{chat}" for chat in range(1, 11)]
    for chat, name in enumerate(names, 1):
        chats.platform.say(f"task {name}", chat=chat, person=chat)
    await until(lambda: {*names} <= chats.model.came.keys(), 60)
    await gateway.kill()
    chats.model.came.clear()
    began = time.time()
    await gateway.start()
    await until(lambda: bool(chats.model.came), 60)
    first, cpu = min(chats.model.came.values()) - began, cpu_seconds(chats.pid())
    await until(lambda: {*names} <= chats.answered().keys(), 120)
    return first, cpu


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the gateway.")
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0, help="the messages are spread over")
    parser.add_argument("--workers", type=int, nargs="+", help="gateways that share the turns")
    options = parser.parse_args()
    if options.workers:
        asyncio.run(shared(options.workers))
        return 0
    return 1 if asyncio.run(measure(options.sessions, options.seconds)) else 0


if __name__ == "__main__":
    sys.exit(main())
