"""A real `ybs serve` with a scripted model behind it, and clients of it: the one of examples/serve, and a bare socket."""

import asyncio
import importlib.util
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scripted import OpenAIServer

YBS = str(Path(sys.executable).with_name("ybs"))
EXAMPLES = Path(__file__).parents[1] / "examples" / "serve"


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("serve_client", EXAMPLES / "client.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = _example()


@contextmanager
def short_home() -> Generator[Path]:
    """Make a home folder whose path is short: clients of the test's own name the socket in it, and systems take 100 bytes."""
    with TemporaryDirectory(prefix="ybs-") as name:
        yield Path(name)


class Serving:
    """A server's process, which may be started again after a kill."""

    def __init__(
        self, home: Path, project: Path, model: OpenAIServer, words: Sequence[str] = ()
    ) -> None:
        self.home, self.project, self.model, self.words = home, project, model, words
        self.state = home / ".local" / "state" / "ybs" / "serve"
        self.socket = self.state / "serve.sock"
        self.process: asyncio.subprocess.Process | None = None

    @property
    def opening(self) -> dict[str, Any]:
        """What opens a session with the scripted model."""
        model = {"provider": "openai", "model": "m", "endpoint": self.model.url}
        return {"folder": str(self.project), "sandbox": False, **model}

    @property
    def environ(self) -> dict[str, str]:
        """The variables of the server and of commands that look for it."""
        return {**os.environ, "HOME": str(self.home), "OPENAI_API_KEY": "k"}

    async def start(self) -> None:
        """Start it, and wait until it serves."""
        self.process = await asyncio.create_subprocess_exec(
            YBS, "serve", *self.words, env=self.environ, stderr=asyncio.subprocess.PIPE
        )
        assert self.process.stderr is not None
        async with asyncio.timeout(20):
            line = await self.process.stderr.readline()
        assert b"serving at" in line, line + await self.process.stderr.read()

    async def kill(self) -> None:
        """Kill it as a machine without memory does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def end(self) -> int:
        """End it, and return its exit code."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.terminate()
        async with asyncio.timeout(20):
            return await self.process.wait()

    async def client(self, token: str = "") -> Any:
        """Connect the client of the example."""
        return await example.Client.connect(self.socket, token)

    async def bare(self, *, greets: bool = False) -> "Bare":
        """Connect to the socket and say nothing, or `hello` alone."""
        bare = Bare(*await asyncio.open_unix_connection(str(self.socket), limit=1 << 27))
        if greets:
            assert "result" in await bare.ask("hello", version=1)
        return bare


class Bare:
    """A connection that sends what a test writes, and reads lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def read(self) -> Any:
        """Return the next message; None at the end."""
        async with asyncio.timeout(30):
            line = await self.reader.readline()
        return json.loads(line) if line else None

    async def ask(self, method: str, **params: Any) -> Any:
        """Send a request and return the next message."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        await self.send(json.dumps(message).encode() + b"\n")
        return await self.read()

    async def code(self, data: bytes) -> int:
        """Send bytes and return the code of the error that comes."""
        await self.send(data)
        return (await self.read())["error"]["code"]

    async def close(self) -> None:
        """Go."""
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


@asynccontextmanager
async def served(
    home: Path, project: Path, *script: Any, words: Sequence[str] = ()
) -> AsyncGenerator[Serving]:
    """Run a server whose model plays a script."""
    async with OpenAIServer(list(script)) as model:
        serving = Serving(home, project, model, words)
        await serving.start()
        try:
            yield serving
        finally:
            await serving.end()


async def until(client: Any, kind: str, **fields: Any) -> dict[str, Any]:
    """Return the next line that tells a client of an event of a type, with these fields."""
    async with asyncio.timeout(30):
        async for method, params in client.told():
            line = params.get("line", {})
            wanted = {"type": kind, **fields}
            if method == "event" and all(line.get(n) == value for n, value in wanted.items()):
                return line
    raise AssertionError(f"no {kind} came")


async def asked(client: Any) -> dict[str, Any]:
    """Return the question that a client hears of next."""
    while not (questions := (await until(client, "state")).get("questions")):
        pass
    return questions[0]


async def until_there(path: Path) -> None:
    """Wait until another process has made a file."""
    async with asyncio.timeout(10):
        while not os.path.exists(path):  # noqa: ASYNC110, ASYNC240, PTH110 - another process makes it
            await asyncio.sleep(0.01)
