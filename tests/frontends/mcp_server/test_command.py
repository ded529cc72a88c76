"""`ybs mcp serve` as a process: the pipe belongs to the protocol, hostile clients change nothing, and nothing stays behind."""

import asyncio
import json
import signal
import subprocess
import sys
from array import array
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from fcntl import ioctl
from pathlib import Path
from termios import FIONREAD
from typing import Any

import pytest

from processes import comes, is_running
from rows import every_row
from ybs.cli import main

#: The first one imports the SDK, which takes seconds on a busy machine.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]
SERVE = (sys.executable, "-m", "ybs", "mcp", "serve")
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


class Raw:
    """A client that writes bytes, and reads what comes back line by line."""

    def __init__(self, process: Process) -> None:
        self.process = process

    async def send(self, *lines: Any) -> None:
        assert self.process.stdin
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            self.process.stdin.write(data + b"\n")
            await self.process.stdin.drain()

    async def answer(self) -> dict[str, Any]:
        assert self.process.stdout
        answer = json.loads(await self.process.stdout.readline())
        assert answer["jsonrpc"] == "2.0"
        return answer

    async def ask(self, number: int, method: str, params: Any = None) -> dict[str, Any]:
        await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        return await self.answer()

    async def begin(self) -> None:
        assert (await self.ask(0, "initialize", INITIALIZE))["result"]["serverInfo"][
            "name"
        ] == "ybs"
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def call(self, number: int, name: str, **arguments: Any) -> dict[str, Any]:
        return await self.ask(number, "tools/call", {"name": name, "arguments": arguments})

    async def start(self, number: int, command: str) -> None:
        """Have a command run, and wait until it prints."""
        params = {"name": "run_shell", "arguments": {"command": command}}
        params["_meta"] = {"progressToken": number}
        assert (await self.ask(number, "tools/call", params))["method"] == "notifications/progress"

    async def leave(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return await self.process.wait()


@asynccontextmanager
async def serving(folder: Path, *words: str) -> AsyncIterator[Raw]:
    process = await asyncio.create_subprocess_exec(
        *SERVE, *words, cwd=folder, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        yield Raw(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_the_sdks_own_client_works_with_the_process(clients, project, generation):
    (project / "a").write_text("one\n")
    person = clients.Person("yes", "no")
    async with clients.as_process(project, generation, person=person) as client:
        assert client.protocol_version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[generation]
        assert "read_file" in {tool.name for tool in (await client.list_tools()).tools}
        reads = (client.call_tool("read_file", {"path": "a"}) for _ in range(5))
        assert {clients.text_of(each) for each in await asyncio.gather(*reads)} == {"1\tone"}
        for name, is_done in (("b", True), ("c", False)):
            result = await client.call_tool("write_file", {"path": name, "content": "x"})
            assert result.is_error is not is_done
            assert (project / name).exists() is is_done
    assert (project.parent / "errors").read_text() == ""


async def test_what_makes_no_sense_is_answered_and_changes_nothing(project: Path) -> None:
    (project / "a").write_text("one\n")
    async with serving(project) as client:
        await client.begin()
        for line, code, number in (
            (b"garbage", -32700, None),
            (b"\xff\xfe\x00", -32700, None),
            (b"[" * 100_000, -32700, None),
            (b"[]", -32600, None),
            (b"{}", -32600, None),
            (b'{"jsonrpc": "2.0", "id": 7, "method": 5}', -32600, 7),
            (b'{"jsonrpc": "1.0", "id": "x", "method": "ping"}', -32600, "x"),
            (b"x" * 50_000_000, -32600, None),
        ):
            await client.send(line)
            answer = await client.answer()
            assert (answer["error"]["code"], answer["id"]) == (code, number), line[:50]
        assert (await client.ask(1, "tools/fly"))["error"]["code"] == -32601
        assert (await client.ask(2, "tools/call", {"name": 5}))["error"]["code"] == -32602
        assert (await client.ask(3, "tools/call", {"name": "fly"}))["error"]["code"] == -32602
        await client.send(b"", b" \r", {"jsonrpc": "2.0", "id": 99, "result": {"content": []}})
        read = await client.call(4, "read_file", path="a")
        assert read["result"]["content"][0]["text"] == "1\tone"
        assert await client.leave() == 0
        assert client.process.stderr
        assert await client.process.stderr.read() == b""


def test_what_was_asked_before_the_end_of_input_is_answered(project: Path) -> None:
    (project / "a").write_text("one\n")
    with unread(project, calls=3) as process:
        out, err = process.communicate()  # which closes its input first
    answers = {each["id"]: each["result"] for each in map(json.loads, out.splitlines())}
    assert sorted(answers) == [0, 1, 2, 3]
    assert answers[3]["content"][0]["text"] == "1\tone"
    assert (err, process.returncode) == (b"", 0)


async def test_the_end_of_input_ends_it_and_what_it_has_started(project: Path) -> None:
    async with serving(project, "--mode", "auto") as client:
        await client.begin()
        await client.call(1, "run_shell", command="sleep 63.1", background=True)
        await client.start(2, "echo begun; sleep 63.2")
        assert is_running("sleep 63.1")
        assert is_running("sleep 63.2")
        assert await client.leave() == 0
    assert await comes(lambda: not is_running("sleep 63."))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_a_signal_ends_it_cleanly(project: Path, number: int, code: int) -> None:
    async with serving(project, "--mode", "auto") as client:
        await client.begin()
        await client.start(2, f"echo begun; sleep 64.{number}")
        client.process.send_signal(number)
        assert await client.process.wait() == code
        assert client.process.stderr
        assert b"Traceback" not in await client.process.stderr.read()
    assert await comes(lambda: not is_running(f"sleep 64.{number}"))


@contextmanager
def unread(project: Path, calls: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """Start it with a client that has sent its first messages and some calls, and reads nothing."""
    messages = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}]
    messages.append({"jsonrpc": "2.0", "method": "notifications/initialized"})
    params = {"name": "read_file", "arguments": {"path": "a"}}
    messages += [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        for number in range(1, calls + 1)
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(SERVE, cwd=project, **pipes) as process:
        assert process.stdin
        process.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in messages))
        process.stdin.flush()
        yield process


async def test_a_client_that_stops_reading_and_goes_does_not_hold_it_up(project: Path) -> None:
    (project / "a").write_text("x" * 8_000)
    with unread(project, calls=50) as process:
        assert process.stdin
        assert process.stdout
        pipe, size = process.stdout.fileno(), array("i", [0])

        def is_full() -> bool:
            ioctl(pipe, FIONREAD, size)
            return size[0] > 50_000

        assert await comes(is_full, seconds=50)
        process.stdin.close()
        assert process.wait() == 0


def test_a_client_that_closes_its_end_ends_it(project: Path) -> None:
    with unread(project) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.wait() == 0  # while its input is still open
        assert process.stderr.read() == b""


def test_nothing_but_the_protocol_reaches_standard_output(project: Path) -> None:
    code = (
        "import os, sys\n"
        "from ybs.frontends.tty import claim_stdio\n"
        "read_from, write_to = claim_stdio()\n"
        "os.write(1, b'stray ')\n"
        "print('print', flush=True)\n"
        "os.system('echo program; cat')\n"
        "write_to.write(os.read(read_from, 10).decode())\n"
        "write_to.flush()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"wire", capture_output=True, check=True, cwd=project
    )
    assert done.stdout == b"wire"
    assert done.stderr.split() == [b"stray", b"print", b"program"]


@every_row(
    ("words", "code", "said"),
    [
        (("--tools", "read_file, reed_file"), 2, "ybs: --tools: there is no tool 'reed_file'"),
        (("--allow", "reed_file"), 2, "there is no tool 'reed_file'"),
        (("--profile", "none"), 3, "there is no such profile"),
    ],
)
def test_what_makes_no_sense_stops_it_before_it_serves(words, code, said, project, capsys):
    assert main(["mcp", "serve", *words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
