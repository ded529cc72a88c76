"""`ybs acp` as a process: the pipe belongs to the protocol, hostile editors change nothing, and nothing stays behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from processes import comes
from rows import every_row
from scripted import OpenAIServer
from ybs.frontends.acp.command import WITHOUT_SDK
from ybs.testing import call

#: The first one imports the SDK, which takes seconds on a busy machine.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]
SERVE = (sys.executable, "-m", "ybs", "acp")
INITIALIZE = {"protocolVersion": 1, "clientCapabilities": {}}


class Raw:
    """An editor that writes bytes, and reads what comes back line by line."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.told: list[dict[str, Any]] = []
        self.answers: dict[Any, dict[str, Any]] = {}

    async def send(self, *lines: Any) -> None:
        assert self.process.stdin
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            self.process.stdin.write(data + b"\n")
        await self.process.stdin.drain()

    async def answer(self, number: Any) -> dict[str, Any]:
        """Return the answer to what has this number; what is told before is kept."""
        assert self.process.stdout
        while True:
            if number in self.answers:
                return self.answers.pop(number)
            answer = json.loads(await self.process.stdout.readline())
            assert answer["jsonrpc"] == "2.0"
            if "method" in answer or answer["id"] is None:
                self.told.append(answer)
            else:
                self.answers[answer["id"]] = answer

    async def ask(self, number: int, method: str, params: Any) -> dict[str, Any]:
        await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return await self.answer(number)

    async def begin(self, folder: Path) -> str:
        assert (await self.ask(0, "initialize", INITIALIZE))["result"]["protocolVersion"] == 1
        opened = await self.ask(1, "session/new", {"cwd": str(folder), "mcpServers": []})
        return opened["result"]["sessionId"]

    async def leave(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return await self.process.wait()


@asynccontextmanager
async def serving(folder: Path, *words: str, **more: Any) -> AsyncIterator[Raw]:
    process = await asyncio.create_subprocess_exec(
        *SERVE,
        *words,
        cwd=folder,
        limit=50_000_000,
        stdin=PIPE,
        stderr=PIPE,
        **{"stdout": PIPE, **more},
    )
    try:
        yield Raw(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def settle(home: Path, server: OpenAIServer, **safety: Any) -> None:
    """Write settings that name the server."""
    folder = home / ".config" / "ybs"
    folder.mkdir(parents=True)
    model = {"provider": "openai", "model": "m", "endpoint": server.url}
    settings = {"llm": model, "safety": {"sandbox_enabled": False, **safety}}
    (folder / "config.json").write_text(json.dumps(settings))


def test_initialize_is_answered_before_the_sdk_is_loaded(project: Path):
    code = (
        "import sys; from ybs.frontends.acp.handshake import Handshake; from ybs.session.options import Options\n"
        "from pathlib import Path; import ybs.frontends.acp.command\n"
        "print(Handshake(Options.of(Path.cwd(), {}))({'protocolVersion': 1})['result']['protocolVersion'])\n"
        "print([n for n in ('acp', 'pydantic', 'ybs.session.session', 'prompt_toolkit', 'httpx2') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1\n[]\n", "")


@every_row(
    ("line", "code"),
    [
        (b"nonsense", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": ', -32700),
        (b"[" * 100_000, -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (b'"text"', -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "session/list"}', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "result": {}}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": []}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "session/list"}', -32600),
        (b'{"jsonrpc": "2.0", "id": [1], "result": {}}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "error": 5}', -32600),
    ],
)
def test_lines_that_make_no_sense_are_answered(line: bytes, code: int) -> None:
    from ybs.frontends.acp.command import EditorPipe
    from ybs.frontends.json_rpc import Senseless, message_of

    with pytest.raises(Senseless) as error:
        EditorPipe.take(message_of(line), set())
    assert error.value.answer["error"]["code"] == code


async def test_nonsense_in_the_midst_of_a_session_changes_nothing(project: Path, home: Path):
    async with OpenAIServer(["Still here."]) as server:
        settle(home, server)
        async with serving(project) as editor:
            session = await editor.begin(project)
            await editor.send(
                b"nonsense", b"", b"[1]", b"x" * 40_000_000,
                {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "none"}},
                {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 5}},
                {"jsonrpc": "2.0", "id": 99, "result": {"late": True}},
                {"jsonrpc": "2.0", "method": "session/cancel", "params": {"wrong": 1}},
            )  # fmt: skip
            for number, (method, params, code) in enumerate(
                (
                    ("session/prompt", {"sessionId": session, "prompt": "text"}, -32602),
                    ("session/prompt", {"sessionId": "none", "prompt": []}, -32002),
                    ("session/delete", {"sessionId": session}, -32601),
                    ("terminal/create", {"command": "ls"}, -32601),
                    ("_own/thing", {}, -32601),
                    ("initialize", {"protocolVersion": "one"}, -32602),
                    ("session/new", {"cwd": 5, "mcpServers": []}, -32602),
                ),
                10,
            ):
                answer = await editor.ask(number, method, params)
                assert answer["error"]["code"] == code, method
            prompt = [{"type": "text", "text": "Are you there?"}]
            done = await editor.ask(50, "session/prompt", {"sessionId": session, "prompt": prompt})
            assert done["result"]["stopReason"] == "end_turn"
            errors = [each["error"]["code"] for each in editor.told if "error" in each]
            assert errors == [-32700, -32600, -32600]
            assert await editor.leave() == 0


async def test_a_flood_of_requests_is_refused_and_the_session_goes_on(project: Path, home: Path):
    async with OpenAIServer(["Still here."]) as server:
        settle(home, server)
        async with serving(project) as editor:
            session = await editor.begin(project)
            flood = [
                {"jsonrpc": "2.0", "id": n, "method": "session/list", "params": {"cursor": "x"}}
                for n in range(100, 1_400)
            ]
            sending = asyncio.create_task(editor.send(*flood))
            answers = [await editor.answer(number) for number in range(100, 1_400)]
            await sending
            codes = {each["error"]["code"] for each in answers}
            assert codes <= {-32600, -32602}
            assert -32602 in codes
            prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}
            done = await editor.ask(5_000, "session/prompt", prompt)
            assert done["result"]["stopReason"] == "end_turn"
            assert await editor.leave() == 0


@pytest.mark.parametrize("how", ["leaves", "dies"])
async def test_an_editor_that_goes_ends_its_turns(project: Path, home: Path, how: str):
    async with OpenAIServer([call("run_shell", command="touch began; sleep 63.21")]) as server:
        settle(home, server, mode="bypass")
        reading, writing = os.pipe()
        async with serving(project, stdout=writing) as editor:
            os.close(writing)
            with os.fdopen(reading, "rb") as told:
                await editor.send(
                    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
                )
                new = {"cwd": str(project), "mcpServers": []}
                await editor.send(
                    {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": new}
                )
                session = await asyncio.to_thread(_opened, told)
                prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "sleep"}]}
                message = {"jsonrpc": "2.0", "id": 9, "method": "session/prompt"}
                await editor.send({**message, "params": prompt})
                assert await comes((project / "began").exists, 20)
                if how == "dies":  # both ends of its pipes are closed at once
                    told.close()
                assert await asyncio.wait_for(editor.leave(), 20) == 0
    assert not _runs("sleep 63.21")
    transcripts = list((home / ".config/ybs/sessions").glob("*.jsonl"))
    assert "interrupted" in transcripts[0].read_text()


def _opened(told: BinaryIO) -> str:
    for line in told:
        if json.loads(line).get("id") == 1:
            return json.loads(line)["result"]["sessionId"]
    raise AssertionError("no session was opened")


def _runs(words: str) -> bool:
    command = ["pgrep", "-f", words]
    return bool(subprocess.run(command, capture_output=True, text=True).stdout)


async def test_an_editor_that_does_not_read_holds_nothing_up(project: Path, home: Path):
    many = "word " * 2_000
    async with OpenAIServer([many] * 40) as server:
        settle(home, server)
        async with serving(project) as editor:
            session = await editor.begin(project)
            for number in range(40):
                prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
                message = {"jsonrpc": "2.0", "id": 10 + number, "method": "session/prompt"}
                await editor.send({**message, "params": prompt})
            assert await asyncio.wait_for(editor.leave(), 30) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_a_signal_ends_it_cleanly(project: Path, home: Path, number: int, code: int):
    async with OpenAIServer([]) as server:
        settle(home, server)
        async with serving(project) as editor:
            await editor.begin(project)
            editor.process.send_signal(number)
            assert await asyncio.wait_for(editor.process.wait(), 20) == code
            assert editor.process.stderr
            assert await editor.process.stderr.read() == b""


def test_without_the_sdk_one_sentence_says_how_to_get_it(project: Path):
    code = (
        "import sys; sys.modules['acp'] = None; from ybs.cli import main; sys.exit(main(['acp']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{WITHOUT_SDK}\n")


async def test_what_goes_wrong_stands_in_the_log_without_words_of_the_editor(project, home):
    async with OpenAIServer([]) as server:
        settle(home, server)
        async with serving(project) as editor:
            await editor.begin(project)
            params = {"sessionId": {"very": "secret words"}}
            await editor.send({"jsonrpc": "2.0", "method": "session/cancel", "params": params})
            await editor.ask(5, "session/list", {})
            assert await editor.leave() == 0
        async with serving(project, "--incognito") as editor:
            await editor.begin(project)
            await editor.send({"jsonrpc": "2.0", "method": "session/cancel", "params": params})
            await editor.ask(5, "session/list", {})
            log = home / ".local/state/ybs/acp.log"
            size = log.stat().st_size
            assert await editor.leave() == 0
    text = log.read_text()
    assert "ValidationError" in text
    assert "secret words" not in text
    assert len(text) == size
