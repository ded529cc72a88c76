"""A client of `ybs serve`: opens a session, sends words, draws what happens and answers questions.

    ybs serve &
    python client.py "What does this project do?"

Only the standard library is needed: the protocol is JSON-RPC 2.0, a message a line (`ybs serve --schema`).
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

SOCKET = Path(os.environ.get("YBS_SOCKET", Path.home() / ".local/state/ybs/serve/serve.sock"))


class Failed(Exception):
    """The server could not do it."""


class Client:
    """Calls methods, and yields what the server tells by itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._told: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, path: Path = SOCKET, token: str = "") -> "Client":
        """Connect to the server's socket, and say which version is spoken."""
        client = cls(*await asyncio.open_unix_connection(str(path), limit=100_000_000))
        try:
            await client.call("hello", version=1, client="example", token=token)
        except Failed:
            await client.close()
            raise
        return client

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method and return its result. Raises Failed."""
        number = len(self._waiting) + 1
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._writer.write(json.dumps(message).encode() + b"\n")
        return await answer

    async def told(self) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yield what the server tells."""
        while (message := await self._told.get()) is not None:
            yield message["method"], message["params"]

    async def close(self) -> None:
        """Leave; sessions go on."""
        self._writer.close()
        await asyncio.wait((self._reading,))

    async def _read(self) -> None:
        async for line in self._reader:
            message = json.loads(line)
            if "method" in message:
                self._told.put_nowait(message)
            elif "error" in message:
                self._waiting[message["id"]].set_exception(Failed(message["error"]["message"]))
            else:
                self._waiting[message["id"]].set_result(message["result"])
        for each in (each for each in self._waiting.values() if not each.done()):
            each.set_exception(Failed("The server has stopped."))
        self._told.put_nowait(None)


async def main(words: str) -> None:
    client = await Client.connect()
    where = {"folder": str(Path.cwd()), "environ": dict(os.environ)}
    session = (await client.call("open", **where))["session"]
    await client.call("subscribe", session=session)
    sent = asyncio.create_task(client.call("send", session=session, text=words))
    answered: set[str] = set()
    async for method, params in client.told():
        event = params.get("line", {})
        if event.get("type") == "text_delta":
            print(event["text"], end="", flush=True)
        for question in event.get("questions", ()):
            if question["id"] not in answered:
                answered.add(question["id"])
                yes = await asyncio.to_thread(input, f"\n{question['title']} [y/N] ") == "y"
                given = {"question": question["id"], "is_allowed": yes}
                await client.call("answer", session=session, **given)
        if method == "ended" or event.get("type") == "turn_end":
            break
    print(f"\n[{(await sent)['outcome']['finished']['reason']}]")
    await client.close()


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "What does this project do?"))
