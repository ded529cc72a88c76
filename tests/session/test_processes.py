"""One session and its frontends in real processes: one process holds the session, others listen and answer over a socket."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from itertools import compress
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration
#: Holds a session. A frontend says first from which number on it listens, then what it wants.
HOLDER = """
import asyncio, json, sys
import msgspec
from ybs.core.ports import Answer
from ybs.session.hub import Hub
from ybs.session.inbox import InboxLine, Sender
from ybs.testing import ScriptedModel, call

async def main(path, project):
    end = asyncio.Event()
    model = ScriptedModel([call("delete_file", path="a"), "It is gone.", "Hello."])
    async with Hub() as hub:
        shared = hub.open(project, model=model, sandbox=False, mode="ask")

        async def serve(reader, writer):
            after = int(await reader.readline())
            telling = asyncio.create_task(tell(writer, after))
            async for line in reader:
                match json.loads(line):
                    case {"send": text}:
                        shared.session.inbox.submit(InboxLine(text=text, sender=Sender()))
                    case {"answer": name, "yes": yes}:
                        done = shared.session.questions.answer(name, Answer(is_allowed=yes))
                        writer.write(json.dumps({"answered": done}).encode() + b"\\n")
                    case _:
                        end.set()
            telling.cancel()
            await asyncio.wait((telling,))

        async def tell(writer, after):
            async for envelope in shared.feed.listen(after):
                writer.write(msgspec.json.encode(envelope) + b"\\n")
                await writer.drain()

        await asyncio.start_unix_server(serve, path)
        print("ready", flush=True)
        await end.wait()

asyncio.run(main(*sys.argv[1:]))
"""
#: A frontend: passes on what it is told, both ways.
LISTENER = """
import os, socket, sys, threading
with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    pump = lambda: [line.sendall(each) for each in iter(sys.stdin.buffer.readline, b"")]
    threading.Thread(target=pump, daemon=True).start()
    while data := line.recv(65536):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
os._exit(0)  # Python's own end stumbles over the lock of standard input, which the thread holds
"""


async def started(*arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", *arguments, stdin=PIPE, stdout=PIPE, limit=1 << 20
    )


class Frontend:
    """A listener in a process of its own, and what it has heard."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.heard: list[dict[str, Any]] = []
        self.answers: list[bool] = []

    @classmethod
    async def listening(cls, path: str, after: int = 0) -> "Frontend":
        made = cls(await started(LISTENER, path))
        made.say(after)
        return made

    def say(self, order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")

    async def until(self, is_it: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Return the next thing that it hears of which this is true."""
        assert self.process.stdout is not None
        async with asyncio.timeout(20):
            while line := await self.process.stdout.readline():
                told: dict[str, Any] = json.loads(line)
                if "answered" in told:
                    self.answers.append(told["answered"])
                else:
                    self.heard.append(told)
                if is_it(told):
                    return told
        raise AssertionError("it hears no more")

    @property
    def whole(self) -> list[dict[str, Any]]:
        """Return what it heard but for pieces, and for where the session stood."""
        kinds = (each["event"]["type"] for each in self.heard)
        are_whole = [not kind.endswith("_delta") and kind != "state" for kind in kinds]
        return list(compress(self.heard, are_whole))


def asked(told: dict[str, Any]) -> bool:
    return bool(told.get("event", {}).get("questions"))


def answered(told: dict[str, Any]) -> bool:
    return "answered" in told


def said(told: dict[str, Any]) -> tuple[str, str]:
    event = told.get("event", {})
    return event.get("type", ""), event.get("content", "")


async def test_processes_that_listen_to_a_session_hear_the_same_and_one_answer_counts(
    project: Path, tmp_path: Path
):
    (project / "a").write_text("text")
    path = str(tmp_path / "socket")
    holder = await started(HOLDER, path, str(project))
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"ready\n"
    one, other = await Frontend.listening(path), await Frontend.listening(path)
    await asyncio.gather(*(each.until(lambda _told: True) for each in (one, other)))
    one.say({"send": "delete it"})
    questions = [(await each.until(asked))["event"]["questions"][0] for each in (one, other)]
    assert questions[0] == questions[1]
    assert questions[0]["title"] == "Delete a"
    name = questions[0]["id"]
    other.say({"answer": name, "yes": True})
    await other.until(answered)
    one.say({"answer": name, "yes": False})
    await one.until(answered)
    assert (other.answers, one.answers) == ([True], [False])
    for each in (one, other):
        await each.until(lambda told: said(told)[0] == "turn_end")
    assert not (project / "a").exists()
    numbers = [each["number"] for each in one.heard]
    assert numbers == sorted(set(numbers))
    assert one.heard == other.heard
    place = one.whole[2]["number"]
    late = await Frontend.listening(path, after=place)
    other.say({"send": "hello"})
    for each in (one, other, late):
        await each.until(lambda told: said(told) == ("assistant", "Hello."))
    assert one.heard == other.heard
    assert late.whole == [each for each in one.whole if each["number"] > place]
    one.say({"end": True})
    assert await asyncio.wait_for(holder.wait(), 10) == 0
    for each in (one, other, late):
        assert await asyncio.wait_for(each.process.wait(), 10) == 0
